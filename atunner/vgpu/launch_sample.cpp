#include "atunner/vgpu/launch_sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "atunner/base/digest.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/timing/scaled_counts.h"

namespace atunner::vgpu {
namespace {

constexpr uint64_t kSampledBlocks = 10;
constexpr uint64_t kLeastSampled = 3;
// Bytes of arguments of the sampled blocks: with more work per block, fewer are sampled.
constexpr double kSampledBytes = 256 << 20;
// Bytes of arguments per block or cluster from which on a sample of one is enough.
constexpr double kHugeBytes = 128 << 20;
constexpr uint64_t kUnevenBlocks = 100;
// Bytes of arguments up to which a cooperative grid runs completely, in a second or two.
constexpr double kWholeBytes = 32 << 20;
// Bytes that are kept while a slice runs, because it changes them.
constexpr uint64_t kKeptBytes = uint64_t{256} << 20;
// Warp instructions of the slice of a launch: a second or two, of kernels whose blocks do much.
// Instructions and not seconds, so that results do not depend on the load of the machine.
constexpr uint64_t kSliceInstructions = uint64_t{1} << 27;
// Warp instructions of one kind's blocks that are executed with a timeline: a second.
constexpr uint64_t kTimedInstructions = uint64_t{1} << 22;
constexpr size_t kMostKinds = 12;
constexpr uint64_t kMostSideBySide = 4096;

/// Random sample of blocks, one from each of several equal ranges of the grid, so that blocks with
/// less work at its end are represented. All blocks of a sampled block's cluster run, so that fewer
/// are drawn from grids of clusters.
std::vector<uint64_t> Draw(uint64_t total, uint64_t cluster, uint64_t most, uint64_t least,
                           Random& random) {
  const uint64_t wanted = std::max<uint64_t>(least, most / std::max<uint64_t>(cluster, 1));
  if (total <= wanted * cluster) return {};
  std::vector<uint64_t> blocks;
  for (uint64_t i = 0; i < wanted; ++i) {
    const uint64_t begin = total * i / wanted;
    blocks.push_back(begin + random.Below(total * (i + 1) / wanted - begin));
  }
  return blocks;
}

/// True if the work of the sampled blocks differs so much that the sample is not representative,
/// and more blocks are affordable.
bool IsUneven(const ExecResult& sample) {
  constexpr double kTimes = 1.5;
  constexpr uint64_t kMostInstructions = uint64_t{1} << 21;
  const double mean = sample.counts.path[0] /
                      static_cast<double>(std::max<uint64_t>(sample.counts.blocks, 1));
  return sample.counts.longest_path[0] > kTimes * mean && sample.counts.issued < kMostInstructions;
}

/// Contents of allocations, to be put back.
class Kept {
 public:
  Kept(const Memory& memory, const std::vector<uint64_t>& allocations) {
    for (const uint64_t address : allocations) {
      const auto range = memory.Find(address);
      if (!range) continue;
      bytes_ += range->end - range->base;
      if (!fits()) return;
      const auto* from = reinterpret_cast<const std::byte*>(range->base);
      contents_.emplace_back(range->base,
                             std::vector<std::byte>(from, from + (range->end - range->base)));
    }
  }
  bool fits() const { return bytes_ <= kKeptBytes; }
  void PutBack() const {
    for (const auto& [address, bytes] : contents_)
      std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
  }

 private:
  uint64_t bytes_ = 0;
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> contents_;
};

/// Blocks that do about the same.
struct Kind {
  std::vector<uint64_t> blocks;  ///< ascending
  std::vector<uint64_t> drawn;   ///< ascending
  double amount = 0;             ///< work of all its blocks
  // What the drawn blocks have done:
  double done = 0;
  Counts counts;
};

class Sampler {
 public:
  Sampler(const SampledLaunch& launch, const ExecOptions& exec)
      : launch_(launch), exec_(exec), blocks_(launch.shape.grid.Count()), random_(Secret(launch)) {}

  LaunchSample Take() {
    if (!RunsWhole(launch_.shape, launch_.footprint)) exec_.blocks = FirstDraw();
    if (exec_.blocks.empty() && (launch_.shape.cooperative || blocks_ == 1)) return Plain();
    probe_ = Probe(KeptBranches::kThatDiffer);
    const bool turns = probe_ != nullptr && probe_->slice().takes_turns;
    if (exec_.blocks.empty() && !turns) return Plain();
    Survey();
    LaunchSample sample = kinds_.empty() ? Plain() : ByKinds();
    if (unknown_) sample.unknown_work = static_cast<double>(blocks_);
    if (probe_ != nullptr) sample.stored = probe_->slice().stored;
    return sample;
  }

 private:
  /// What code cannot know when it is written: the contents of the arguments, which follow from the
  /// seed of the run.
  static uint64_t Secret(const SampledLaunch& launch) {
    constexpr uint64_t kLooked = 4096;
    uint64_t secret = launch.shape.grid.Count();
    for (size_t at = 0; at + 8 <= launch.params.size(); at += 8) {
      uint64_t address = 0;
      std::memcpy(&address, launch.params.data() + at, sizeof address);
      const auto range = launch.memory.Find(address);
      if (!range) continue;
      const uint64_t bytes = std::min(kLooked, range->end - range->base);
      const Digest digest = DigestOf({reinterpret_cast<const char*>(range->base), bytes});
      secret = Mix64(secret ^ digest.low);
    }
    return secret;
  }

  /// The first sample of a launch.
  std::vector<uint64_t> FirstDraw() {
    const auto blocks = static_cast<double>(blocks_);
    const auto enough = static_cast<uint64_t>(kSampledBytes * blocks /
                                              std::max(launch_.footprint, 1.0));
    // A few persistent blocks may process a huge task: one of them, or one cluster, takes seconds.
    const bool huge = launch_.footprint * static_cast<double>(launch_.cluster) >
                      kHugeBytes * blocks;
    return Draw(blocks_, launch_.cluster, std::min(kSampledBlocks, enough),
                huge ? 1 : kLeastSampled, random_);
  }

  bool alone() const { return launch_.cluster == 1 && !launch_.shape.cooperative; }

  /// Runs the sample `exec_.blocks`. If its blocks differ much, more are run; not if blocks run
  /// together with others that are not in the sample.
  LaunchSample Plain() {
    LaunchSample sample;
    sample.result = Run(exec_);
    sample.executed = exec_.blocks;
    if (exec_.blocks.empty() || !alone() || !sample.result.outcome.completed() ||
        !IsUneven(sample.result))
      return sample;
    ExecOptions further = exec_;
    further.blocks = Draw(blocks_, 1, kUnevenBlocks, kLeastSampled, random_);
    std::erase_if(further.blocks,
                  [&](uint64_t block) { return std::ranges::binary_search(exec_.blocks, block); });
    if (further.blocks.empty()) return sample;
    ExecResult more = Run(further);
    if (!more.outcome.completed()) {
      sample.result = std::move(more);
      return sample;
    }
    Add(more, sample.result);
    sample.executed.insert(sample.executed.end(), further.blocks.begin(), further.blocks.end());
    std::ranges::sort(sample.executed);
    return sample;
  }

  ExecResult Run(const ExecOptions& exec) const {
    return launch_.program.Run(launch_.entry, launch_.shape, launch_.params, exec);
  }

  static void Add(const ExecResult& more, ExecResult& to) {
    const uint64_t common = std::min(to.counts.global.common_load_sectors,
                                     more.counts.global.common_load_sectors);
    to.counts += more.counts;
    to.counts.global.common_load_sectors = common;
    to.outcome.blocks_executed += more.outcome.blocks_executed;
  }

  // The work of all blocks.

  std::unique_ptr<WorkProbe> Probe(KeptBranches branches) const {
    auto probe = launch_.program.Probe(launch_.entry, launch_.params, branches);
    if (!probe || !(*probe)->slice().unknown.empty()) return nullptr;
    return std::move(*probe);
  }

  /// Runs a slice for all blocks, and undoes what it wrote. False if the work is not known then.
  bool RunSlice(const WorkProbe& probe, uint64_t budget, WorkLog& log) const {
    const Kept kept(launch_.memory, probe.slice().written);
    if (!kept.fits()) return false;
    WorkOptions options;
    options.threads = probe.slice().shares_memory ? 1 : exec_.threads;
    options.side_by_side = probe.slice().takes_turns;
    options.budget = budget;
    options.deadline_seconds = exec_.deadline_seconds;
    const bool completed = probe.Run(launch_.shape, launch_.params, options, log).completed();
    kept.PutBack();
    return completed;
  }

  /// Finds the kinds of blocks; none if all do the same.
  void Survey() {
    if (probe_ != nullptr && probe_->slice().alike) return;
    unknown_ = true;
    if (probe_ == nullptr || launch_.shape.cooperative) return;
    const bool turns = probe_->slice().takes_turns;
    if (turns && (blocks_ > std::min(launch_.at_once, kMostSideBySide) || !alone())) return;
    WorkLog log;
    if (!RunSlice(*probe_, kSliceInstructions, log)) return;
    const bool same = std::ranges::all_of(log.kind,
                                          [&](uint64_t kind) { return kind == log.kind[0]; });
    if (!alone() && !same) return;
    unknown_ = false;
    if (same && !turns) return;
    RefineAmounts(log);
    SortIntoKinds(log, turns);
  }

  /// Replaces the work of the slice by that of the whole kernel, where that can be counted.
  void RefineAmounts(WorkLog& log) {
    std::unique_ptr<WorkProbe> exact = Probe(KeptBranches::kAll);
    WorkLog all;
    if (exact == nullptr || !RunSlice(*exact, kSliceInstructions, all)) return;
    probe_ = std::move(exact);
    log.amount = std::move(all.amount);
  }

  void SortIntoKinds(const WorkLog& log, bool turns) {
    amount_ = log.amount;
    for (uint64_t& amount : amount_) amount = std::max<uint64_t>(amount, 1);
    std::map<uint64_t, std::vector<uint64_t>> by_kind;
    for (uint64_t block = 0; block < blocks_; ++block) by_kind[log.kind[block]].push_back(block);
    std::vector<std::vector<uint64_t>> groups;
    if (turns || by_kind.size() > kMostKinds) {
      groups = ByAmount();
    } else {
      for (auto& [kind, blocks] : by_kind) groups.push_back(std::move(blocks));
    }
    for (auto& group : groups) {
      Kind kind;
      kind.blocks = std::move(group);
      for (uint64_t block : kind.blocks) kind.amount += static_cast<double>(amount_[block]);
      kind.drawn = DrawOf(kind.blocks);
      kinds_.push_back(std::move(kind));
    }
  }

  /// Equal parts of the grid by amount of work, and the block with the most.
  std::vector<std::vector<uint64_t>> ByAmount() const {
    constexpr uint64_t kParts = 8;
    std::vector<uint64_t> order(blocks_);
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::ranges::stable_sort(order, {}, [&](uint64_t block) { return amount_[block]; });
    std::vector<std::vector<uint64_t>> parts = {{order.back()}};
    order.pop_back();
    const uint64_t count = std::min<uint64_t>(kParts, order.size());
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<uint64_t> part(order.begin() + static_cast<long>(order.size() * i / count),
                                 order.begin() + static_cast<long>(order.size() * (i + 1) / count));
      std::ranges::sort(part);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  std::vector<uint64_t> DrawOf(const std::vector<uint64_t>& blocks) {
    const auto share = static_cast<double>(blocks.size()) / static_cast<double>(blocks_);
    const auto wanted = std::clamp<uint64_t>(
        static_cast<uint64_t>(std::llround(share * kSampledBlocks)), 1, blocks.size());
    std::vector<uint64_t> drawn;
    for (uint64_t i = 0; i < wanted; ++i) {
      const uint64_t begin = blocks.size() * i / wanted;
      drawn.push_back(blocks[begin + random_.Below(blocks.size() * (i + 1) / wanted - begin)]);
    }
    return drawn;
  }

  // Timed blocks of each kind.

  LaunchSample ByKinds() {
    LaunchSample sample;
    const bool shares = probe_->slice().shares_memory;
    const Kept kept(launch_.memory, probe_->slice().written);
    const bool completed = shares && !probe_->slice().takes_turns ? RunInOrder(sample)
                                                                  : RunByKind(kept, sample);
    kept.PutBack();
    if (completed) Combine(sample);
    if (shares) sample.executed.clear();  // all begin anew
    std::ranges::sort(sample.executed);
    return sample;
  }

  /// Runs blocks up to `limit` of work together.
  bool RunTimed(std::vector<uint64_t> blocks, uint64_t limit, Kind& kind, LaunchSample& sample) {
    ExecOptions exec = exec_;
    exec.blocks = std::move(blocks);
    exec.weights = &probe_->weights();
    exec.work_limit = limit;
    ExecResult result = Run(exec);
    if (!result.outcome.completed()) {
      sample.result.outcome = std::move(result.outcome);
      return false;
    }
    const bool whole = limit == ~uint64_t{0};
    for (uint64_t block : exec.blocks) kind.done += whole ? static_cast<double>(amount_[block]) : 0;
    if (!whole) kind.done += static_cast<double>(result.work);
    kind.counts += result.counts;
    sample.result.outcome.blocks_executed += result.outcome.blocks_executed;
    if (whole)
      sample.executed.insert(sample.executed.end(), exec.blocks.begin(), exec.blocks.end());
    return true;
  }

  /// The work after which a block of the sample is stopped.
  uint64_t LimitOf(uint64_t block) const {
    const uint64_t most = std::min(amount_[block], kTimedInstructions);
    return probe_->slice().takes_turns || most < amount_[block] ? most : ~uint64_t{0};
  }

  bool RunByKind(const Kept& kept, LaunchSample& sample) {
    const bool turns = probe_->slice().takes_turns;
    for (Kind& kind : kinds_) {
      const bool together = std::ranges::all_of(
          kind.drawn, [&](uint64_t block) { return LimitOf(block) == ~uint64_t{0}; });
      if (together) {
        if (!RunTimed(kind.drawn, ~uint64_t{0}, kind, sample)) return false;
        continue;
      }
      for (uint64_t block : kind.drawn) {
        if (turns) kept.PutBack();
        if (!RunTimed({block}, LimitOf(block), kind, sample)) return false;
        if (kind.done >= static_cast<double>(kTimedInstructions)) break;
      }
    }
    return true;
  }

  /// Runs all blocks in their order, those that are not drawn by the slice, so that the drawn ones
  /// find memory as the launch leaves it to them.
  bool RunInOrder(LaunchSample& sample) {
    std::map<uint64_t, Kind*> drawn;
    for (Kind& kind : kinds_) {
      for (uint64_t block : kind.drawn) drawn[block] = &kind;
    }
    uint64_t next = 0;
    for (const auto& [block, kind] : drawn) {
      WorkOptions options;
      options.threads = 1;
      options.budget = 2 * kSliceInstructions;
      for (; next < block; ++next) options.blocks.push_back(next);
      ++next;
      WorkLog log;
      if (!options.blocks.empty()) {
        sample.result.outcome = probe_->Run(launch_.shape, launch_.params, options, log);
        if (!sample.result.outcome.completed()) return false;
      }
      if (!RunTimed({block}, LimitOf(block), *kind, sample)) return false;
    }
    return true;
  }

  /// Counts of the whole grid, and the shares of its blocks.
  void Combine(LaunchSample& sample) {
    Counts& total = sample.result.counts;
    uint64_t common = ~uint64_t{0};
    std::vector<std::pair<double, double>> rates;  // path and instructions per unit of work
    for (Kind& kind : kinds_) {
      const double done = std::max(kind.done, 1.0);
      rates.emplace_back(kind.counts.path[1] / done,
                         static_cast<double>(kind.counts.issued) / done);
      common = std::min(common, kind.counts.global.common_load_sectors);
      total += Scaled(kind.counts, kind.amount / done);
    }
    total.global.common_load_sectors = common;
    total.blocks = blocks_;
    sample.counted = static_cast<double>(blocks_);
    const double path = std::max(total.path[1] / sample.counted, 1e-9);
    const double issued = std::max(static_cast<double>(total.issued) / sample.counted, 1e-9);
    sample.shares.resize(blocks_);
    for (size_t k = 0; k < kinds_.size(); ++k) {
      for (uint64_t block : kinds_[k].blocks) {
        const auto amount = static_cast<double>(amount_[block]);
        sample.shares[block] = {static_cast<float>(rates[k].first * amount / path),
                                static_cast<float>(rates[k].second * amount / issued)};
      }
    }
  }

  const SampledLaunch& launch_;
  ExecOptions exec_;
  const uint64_t blocks_;
  Random random_;
  bool unknown_ = false;
  std::unique_ptr<WorkProbe> probe_;
  std::vector<uint64_t> amount_;  ///< per block, by the probe's weights
  std::vector<Kind> kinds_;
};

}  // namespace

uint64_t ClusterSize(const ptx::Function& function, const LaunchShape& shape) {
  const auto& required = function.required_cluster;
  const uint64_t named = uint64_t{std::max(1u, required[0])} * std::max(1u, required[1]) *
                         std::max(1u, required[2]);
  return std::max(named, shape.cluster.Count());
}

bool RunsWhole(const LaunchShape& shape, double footprint) {
  return shape.cooperative && footprint <= kWholeBytes;
}

LaunchSample SampleLaunch(const SampledLaunch& launch, const ExecOptions& exec) {
  return Sampler(launch, exec).Take();
}

}  // namespace atunner::vgpu
