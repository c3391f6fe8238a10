#include "atunner/vgpu/run_grid.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/hardware/surroundings.h"
#include "atunner/vgpu/timeline/in_order.h"
#include "atunner/vgpu/warps/grid_progress.h"
#include "atunner/vgpu/warps/work.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Blocks that run side by side with `first_block`, itself included, as linear indices: its
/// cluster, or every `stride`-th block of a cooperative grid.
std::vector<uint64_t> BlocksBeside(const Launch& launch, uint64_t first_block, uint64_t stride) {
  const Dim3& g = launch.shape.grid;
  const Dim3& c = launch.cluster;
  std::vector<uint64_t> blocks;
  if (launch.cooperative) {
    for (uint64_t i = first_block; i < g.Count(); i += stride) blocks.push_back(i);
    return blocks;
  }
  const uint64_t x0 = first_block % g.x / c.x * c.x;
  const uint64_t y0 = first_block / g.x % g.y / c.y * c.y;
  const uint64_t z0 = first_block / g.x / g.y / c.z * c.z;
  for (uint64_t z = 0; z < c.z; ++z) {
    for (uint64_t y = 0; y < c.y; ++y) {
      for (uint64_t x = 0; x < c.x; ++x) blocks.push_back(((z0 + z) * g.y + y0 + y) * g.x + x0 + x);
    }
  }
  return blocks;
}

/// The first block of each set of co-scheduled blocks that a launch runs: of all, or of those that
/// contain a selected block. Empty if each block runs alone and all run.
std::vector<uint64_t> FirstBlocks(const Launch& launch, const std::vector<uint64_t>& selected,
                                  uint64_t workers) {
  std::vector<uint64_t> firsts;
  const uint64_t total = launch.shape.grid.Count();
  const bool single = launch.cluster.Count() == 1;
  if (launch.cooperative && selected.empty()) {
    for (uint64_t i = 0; i < std::min(workers, total); ++i) firsts.push_back(i);
    return firsts;
  }
  if (selected.empty() && single) return {};
  const auto add = [&](uint64_t block) {
    firsts.push_back(single ? block : BlocksBeside(launch, block, 0).front());
  };
  if (selected.empty()) {
    for (uint64_t i = 0; i < total; ++i) add(i);
  }
  for (uint64_t block : selected) {
    if (block < total) add(block);
  }
  std::ranges::sort(firsts);
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  return firsts;
}

/// A random order of `total` sets of blocks: sets change places within windows of as many as the
/// device holds at once, and those start in any order on a GPU. Blocks that wait for blocks with
/// smaller numbers may rely on nothing beyond that. Empty = ascending.
std::vector<uint32_t> RandomOrder(uint64_t total, uint64_t window, uint64_t seed) {
  constexpr uint64_t kMost = uint64_t{1} << 26;
  if (seed == 0 || total > kMost || window < 2) return {};
  std::vector<uint32_t> order(total);
  std::iota(order.begin(), order.end(), 0u);
  Random random(seed);
  uint64_t end = 1 + random.Below(window);  // the first is shorter, so that borders move
  for (uint64_t begin = 0; begin < total; begin = end, end += window) {
    for (uint64_t i = std::min(end, total) - 1; i > begin; --i)
      std::swap(order[i], order[begin + random.Below(i - begin + 1)]);
  }
  return order;
}

/// Threads of the host that a launch may use. How often blocks poll for each other depends on their
/// order, so that a cooperative launch that counts runs on one thread.
uint64_t HostThreads(const Launch& launch, const ExecOptions& options) {
  if (launch.cooperative && options.count) return 1;
  return options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
}

/// Machine instructions that op_cost.def expects for what ran.
uint64_t AssumedInstructions(const BlockState& x) {
  uint64_t instructions = x.timing.predicated_off;
  uint64_t times = 0;  // of the basic block at hand
  for (size_t i = 0; i < x.counting.executed.size(); ++i) {
    times += x.counting.basic_blocks[i].times;
    instructions += (x.counting.executed[i].times + times) * x.kernel->tracks[i].cost.issue;
  }
  return instructions;
}

/// Adds the hazards of a thread's blocks to the outcome of the launch.
void Merge(const BlockState& x, const LaunchOutcome& outcome, LaunchOutcome& into) {
  for (const Hazard& hazard : x.log.hazards) {
    const auto same = std::ranges::find_if(into.hazards, [&](const Hazard& h) {
      return h.kind == hazard.kind && h.where == hazard.where;
    });
    if (same == into.hazards.end())
      into.hazards.push_back(hazard);
    else
      same->count += hazard.count;
  }
  if (!x.log.hazards.empty()) {
    into.kind = LaunchOutcome::Kind::kFaulted;
    into.message = x.log.hazards.front().where + ": " + x.log.hazards.front().detail;
  } else if (outcome.kind != LaunchOutcome::Kind::kCompleted &&
             into.kind == LaunchOutcome::Kind::kCompleted) {
    into.kind = outcome.kind;
    into.message = outcome.message;
  }
}

class GridRunner {
 public:
  GridRunner(Launch& launch, const ExecOptions& options, ExecResult& result, const GridLog* log)
      : launch_(launch),
        options_(options),
        result_(result),
        log_(log),
        firsts_(FirstBlocks(launch, options.blocks, HostThreads(launch, options))),
        all_(firsts_.empty() && options.blocks.empty()),
        single_(launch.cluster.Count() == 1 && (!launch.cooperative || !options.blocks.empty())),
        total_(all_ ? launch.shape.grid.Count() : firsts_.size()),
        order_(RandomOrder(total_,
                           std::min(launch.resident_blocks, kMaxCoScheduled) /
                               std::max<uint64_t>(launch.cluster.Count(), 1),
                           options.block_order)),
        workers_(std::min<uint64_t>(HostThreads(launch, options), total_)),
        most_joined_(std::min(launch.resident_blocks, kMaxCoScheduled) -
                     std::min(launch.resident_blocks, workers_)),
        limits_(LimitsOf(options, log)),
        progress_(static_cast<uint32_t>(workers_)) {}

  uint64_t Run() {
    launch_.parallel = workers_ > 1;
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < workers_; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    result_.counts.global.common_load_sectors = common_.size();
    for (const auto& [begin, end] : written_.Merged())
      result_.outcome.written.push_back({begin, end});
    return assumed_;
  }

 private:
  /// The state of one thread of the host.
  struct Worker {
    std::deque<BlockState> states;  ///< a deque, because blocks point to their states
    CoScheduledBlocks blocks;
    LaunchOutcome outcome;
    uint64_t instructions = 0;
    uint64_t ended = 0;  ///< EndOf() its latest block
  };

  void Work() {
    Worker worker;
    if (launch_.cooperative && workers_ > 1) worker.blocks.grid = &progress_;
    if (single_)
      worker.blocks.next = [this, &worker](uint64_t& block) { return Join(worker, block); };
    while (!stop_) {
      const uint64_t i = next_++;
      if (i >= total_) break;
      RunFrom(worker, i);
    }
    Collect(worker);
  }

  static RunLimits LimitsOf(const ExecOptions& options, const GridLog* log) {
    RunLimits limits;
    limits.deadline = SystemClock().Now() + options.deadline_seconds;
    limits.budget = std::min(options.max_warp_instructions_per_block,
                             options.max_warp_instructions);
    limits.weights = options.weights;
    limits.work = options.work_limit;
    if (log != nullptr) {
      limits.budget = log->budget;
      limits.turn = log->turn;
    } else if (limits.weights != nullptr && limits.work != ~uint64_t{0}) {
      // Small enough that a block does not do much more than its limit.
      constexpr uint64_t kTurns = 256, kLeast = 64;
      limits.turn = static_cast<uint32_t>(
          std::clamp<uint64_t>(limits.work / kTurns, kLeast, kTurn));
    }
    return limits;
  }

  uint64_t FirstBlock(uint64_t i) const {
    const uint64_t set = order_.empty() ? i : order_[i];
    return all_ ? set : firsts_[set];
  }

  BlockState* State(Worker& worker, uint64_t i) {
    if (i == worker.states.size()) Prepare(worker.states.emplace_back(), launch_);
    return &worker.states[i];
  }

  /// The next block of the grid joins those that wait for it; nullptr if there is none, or too many
  /// have joined.
  BlockState* Join(Worker& worker, uint64_t& block) {
    if (joined_++ >= most_joined_) return --joined_, nullptr;
    const uint64_t i = next_++;
    if (i >= total_) return --joined_, nullptr;
    block = FirstBlock(i);
    return State(worker, worker.blocks.members.size());
  }

  /// Runs the i-th set of co-scheduled blocks.
  void RunFrom(Worker& worker, uint64_t i) {
    CoScheduledBlocks& blocks = worker.blocks;
    const uint64_t first = FirstBlock(i);
    blocks.blocks = single_ ? std::vector<uint64_t>{first} : BlocksBeside(launch_, first, workers_);
    const uint64_t members = blocks.blocks.size();
    blocks.members.clear();
    for (uint64_t m = 0; m < members; ++m) blocks.members.push_back(State(worker, m));
    RunCoScheduled(blocks, limits_, worker.outcome);
    joined_ -= blocks.members.size() - members;
    uint64_t executed = 0;
    for (const BlockState* member : blocks.members) executed += member->progress.instructions;
    worker.instructions += executed;
    const bool exhausted = (executed_ += executed) > options_.max_warp_instructions;
    if (exhausted && worker.outcome.kind == LaunchOutcome::Kind::kCompleted) {
      worker.outcome.kind = LaunchOutcome::Kind::kTimeout;
      worker.outcome.message = "the launch executed more than " +
                               std::to_string(options_.max_warp_instructions) +
                               " instructions of warps";
    }
    if (log_ != nullptr) Note(worker);
    for (const BlockState* x : blocks.members) worker.ended = std::max(worker.ended, EndOf(*x));
    const bool found = std::ranges::any_of(
        worker.states, [](const BlockState& x) { return !x.log.hazards.empty(); });
    const bool failed = (found && !launch_.options.keep_going) ||
                        worker.outcome.kind != LaunchOutcome::Kind::kCompleted;
    const bool ended = std::ranges::any_of(blocks.members,
                                           [](const BlockState* x) { return x->stop; });
    if (failed) stop_ = true;
    if (blocks.grid != nullptr) blocks.grid->Leave(!failed && !ended);
    if (i % 256 == 255 && SystemClock().Now() > limits_.deadline && i + 1 < total_) {
      worker.outcome.kind = LaunchOutcome::Kind::kTimeout;
      worker.outcome.message = "the launch did not end within its limit";
      stop_ = true;
    }
  }

  /// Notes what the blocks that have just run did, and forgets their counts.
  void Note(Worker& worker) {
    constexpr uint64_t kStart = 64;  // instructions whose time the start of a block takes
    uint64_t instructions = 0;
    for (size_t m = 0; m < worker.blocks.members.size(); ++m) {
      BlockState& x = *worker.blocks.members[m];
      const auto work = WorkOf(x, *log_->weights);
      log_->work->amount[x.block] = work.amount;
      log_->work->kind[x.block] = work.kind;
      std::ranges::fill(x.counting.executed, Tally{});
      std::ranges::fill(x.counting.basic_blocks, Tally{});
      instructions += x.progress.instructions + kStart;
    }
    const uint64_t all = logged_ += instructions;
    if (all <= log_->budget || worker.outcome.kind != LaunchOutcome::Kind::kCompleted) return;
    worker.outcome.kind = LaunchOutcome::Kind::kTimeout;
    worker.outcome.message = "more work than is counted";
    stop_ = true;
  }

  /// Adds what a thread's blocks did to the result.
  void Collect(const Worker& worker) {
    const std::lock_guard lock(mutex_);
    result_.outcome.warp_instructions += worker.instructions;
    result_.elapsed_ns = std::max(result_.elapsed_ns, worker.ended);
    for (const BlockState& x : worker.states) {
      CollectCounts(x, result_.counts, result_.lines);
      common_.Meet(x.counting.common_sectors);
      assumed_ += AssumedInstructions(x);
      if (options_.weights != nullptr) result_.work += WorkOf(x, *options_.weights).amount;
      result_.outcome.blocks_executed += x.counting.total.blocks;
      result_.outcome.printed += x.record.printed;
      written_.Add(x.record.written);
      Merge(x, worker.outcome, result_.outcome);
    }
  }

  Launch& launch_;
  const ExecOptions& options_;
  ExecResult& result_;
  const GridLog* const log_;
  const std::vector<uint64_t> firsts_;
  const bool all_;                     ///< every block is the first of its set
  const bool single_;                  ///< sets have one block, which others may join
  const uint64_t total_;               ///< sets of co-scheduled blocks
  const std::vector<uint32_t> order_;  ///< in which sets start; empty = ascending
  const uint64_t workers_;
  const uint64_t most_joined_;
  const RunLimits limits_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> executed_{0};  ///< warp instructions
  std::atomic<uint64_t> logged_{0};    ///< warp instructions of the blocks that were noted
  std::atomic<uint64_t> joined_{0};    ///< blocks that run besides the first of their set
  std::atomic<bool> stop_{false};
  GridProgress progress_;
  std::mutex mutex_;
  CommonSectors common_;
  WriteLog written_;
  uint64_t assumed_ = 0;
};

}  // namespace

uint64_t RunGrid(Launch& launch, const ExecOptions& options, ExecResult& result,
                 const GridLog* log) {
  if (launch.options.timed) launch.timing = TimingsOf(launch);
  return GridRunner(launch, options, result, log).Run();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
