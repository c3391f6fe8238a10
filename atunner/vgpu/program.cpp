// A loaded module: its globals in memory, its kernels decoded, its launches spread over the cores.
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <tuple>

#include "atunner/base/clock.h"
#include "atunner/base/digest.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/state/block_state.h"
#include "atunner/vgpu/timeline/in_order.h"
#include "atunner/vgpu/warps/grid_progress.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kHeapBytes = uint64_t{8} << 20;  // of kernels' malloc, as the driver's default
constexpr uint64_t kGridWorkspaceBytes = 256;
constexpr uint64_t kMaxGang = 4096;
// of a block, which has a shadow several times as large
constexpr uint64_t kMaxShared = uint64_t{1} << 20;

class LoadedProgram : public Program {
 public:
  LoadedProgram(ptx::ValidModule module, Memory& memory)
      : module_(std::move(module)), memory_(memory), heap_(memory, kHeapBytes) {}
  ~LoadedProgram() override {
    for (uint64_t address : allocations_) memory_.Free(address);
  }

  Status Initialise() {
    ATUNNER_RETURN_IF_ERROR(Place(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(Place(module_.constants()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.constants()));
    for (const ptx::Function& function : module_.functions()) {
      if (!function.is_entry) continue;
      ATUNNER_TRY(Kernel kernel, Decode(module_, function, symbols_));
      kernels_.emplace(function.name, std::move(kernel));
    }
    return {};
  }

  const ptx::Function* FindEntry(const std::string& entry) const override {
    const auto at = kernels_.find(entry);
    return at == kernels_.end() ? nullptr : at->second.function;
  }

  Result<std::pair<uint64_t, uint64_t>> FindSymbol(const std::string& name) const override {
    for (const auto* list : {&module_.globals(), &module_.constants()}) {
      for (const ptx::Variable& variable : *list) {
        if (variable.name == name) return std::pair(symbols_.at(name), variable.bytes);
      }
    }
    return Fail(ErrorCode::kNotFound, "the module has no symbol '" + name + "'");
  }

  uint64_t StateFingerprint() const override {
    uint64_t print = 0;
    for (const ptx::Variable& variable : module_.globals()) {
      const Digest digest = DigestOf(
          {reinterpret_cast<const char*>(symbols_.at(variable.name)), variable.bytes});
      print = Mix64(print ^ digest.low);
    }
    return print;
  }

  ExecResult Run(const std::string& entry, const LaunchShape& shape,
                 std::span<const std::byte> params, const ExecOptions& options) const override {
    ExecResult result;
    const auto found = kernels_.find(entry);
    if (found == kernels_.end()) {
      result.outcome = {LaunchOutcome::Kind::kRefused, "there is no kernel '" + entry + "'", {}, 0};
      return result;
    }
    Launch launch;
    launch.kernel = &found->second;
    launch.module = &module_;
    launch.memory = &memory_;
    launch.shape = shape;
    launch.params.assign(params.begin(), params.end());
    launch.params.resize(
        std::max<size_t>(launch.params.size(), found->second.function->param_bytes));
    launch.options.check = options.check_hazards;
    launch.options.check_global = options.check_hazards && options.check_global;
    launch.options.groups = options.groups;
    launch.options.keep_going = options.keep_going;
    launch.options.count = options.count;
    launch.latencies = options.latencies;
    launch.registers = options.registers;
    launch.l1_sectors = options.l1_sectors;
    launch.resident_blocks = options.resident_blocks;
    launch.options.count_lines = options.count_lines;
    launch.sampled = options.count && !options.blocks.empty();
    launch.options.timed = options.count && options.timeline;
    Schedule schedule;
    if (launch.options.timed && options.machine_code != nullptr)
      schedule = ScheduleOf(found->second, *options.machine_code);
    if (!schedule.empty()) launch.schedule = &schedule;
    RaceClock clock;
    launch.clock = &clock;
    const bool init = (options.groups & static_cast<uint8_t>(HazardGroup::kInit)) != 0;
    const bool races = (options.groups & static_cast<uint8_t>(HazardGroup::kRace)) != 0;
    if (launch.options.check_global && races && memory_.tracks())
      launch.first_serial = memory_.TakeSerials(shape.grid.Count());
    if (launch.options.check_global && init)
      launch.kernel = &WithUndefinedChecks(found->first, found->second);
    launch.heap = &heap_;
    launch.cluster = shape.cluster.Count() > 1 ? shape.cluster
                                               : RequiredCluster(*found->second.function);
    launch.cooperative = shape.cooperative || found->second.cooperative;
    if (auto refusal = Refuse(launch); !refusal.empty()) {
      result.outcome = {LaunchOutcome::Kind::kRefused, std::move(refusal), {}, 0};
      return result;
    }
    uint64_t workspace = 0;
    if (launch.cooperative) {
      const auto allocated = memory_.Allocate(kGridWorkspaceBytes);
      if (allocated) workspace = *allocated;
      if (allocated) memory_.MarkDefined(workspace, kGridWorkspaceBytes);
    }
    launch.grid_workspace = workspace;
    const uint64_t assumed = RunBlocks(launch, options, result);
    if (launch.schedule && result.outcome.completed() &&
        AreFarApart(result.counts.issued, assumed)) {
      launch.schedule = nullptr;  // the machine code was not understood
      result = {};
      RunBlocks(launch, options, result);
    }
    if (options.keep_going) std::ranges::sort(result.outcome.hazards, EarlierPlace);
    if (workspace) memory_.Free(workspace);
    return result;
  }

  std::vector<Hazard> Leaks() const override {
    std::vector<Hazard> leaks;
    for (const auto& [address, block] : heap_.Live()) {
      const auto kernel = kernels_.find(block.entry);
      const auto& place = kernel->second.places[block.op];
      Hazard& hazard = leaks.emplace_back();
      hazard.kind = Hazard::Kind::kLeak;
      hazard.kernel = block.entry;
      hazard.site = {place.source_line ? module_.SourceFile(place.source_file) : "", place.Shown(),
                     block.block, block.thread};
      hazard.where = (place.source_line
                          ? hazard.site.file.substr(hazard.site.file.rfind('/') + 1) + ":"
                          : "PTX line ") +
                     std::to_string(hazard.site.line);
      hazard.detail = "block " + std::to_string(block.block) + ", thread " +
                      std::to_string(block.thread) + " takes " + std::to_string(block.bytes) +
                      " bytes by malloc, and nobody frees them";
      hazard.space = "global";
      hazard.address = address;
    }
    return leaks;
  }

 private:
  /// In the order of a reader: by place in the source, then by kind.
  static bool EarlierPlace(const Hazard& a, const Hazard& b) {
    return std::tie(a.site.file, a.site.line, a.kind) < std::tie(b.site.file, b.site.line, b.kind);
  }

  const Kernel& WithUndefinedChecks(const std::string& entry, const Kernel& kernel) const {
    const std::lock_guard lock(undefined_checks_mutex_);
    const auto at = with_undefined_checks_.find(entry);
    return at != with_undefined_checks_.end()
               ? at->second
               : with_undefined_checks_.emplace(entry, FindMaybeUndefined(kernel)).first->second;
  }

  Status Place(const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      ATUNNER_TRY(const uint64_t address, memory_.Allocate(std::max<uint64_t>(variable.bytes, 1)));
      allocations_.push_back(address);
      symbols_[variable.name] = address;
      memory_.SetName(address, variable.name);
      // what has no initialiser is zero
      memory_.MarkDefined(address, std::max<uint64_t>(variable.bytes, 1));
      if (!variable.initial.empty())
        std::memcpy(reinterpret_cast<void*>(address), variable.initial.data(),
                    variable.initial.size());
    }
    return {};
  }

  Status LinkReferences(const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      for (const auto& [offset, name] : variable.references) {
        const auto target = symbols_.find(name);
        const ptx::Function* function = module_.Find(name);
        if (target == symbols_.end() && function == nullptr)
          return Fail(ErrorCode::kUnsupported,
                      "the initialiser of '" + variable.name + "' refers to '" + name + "'");
        if (offset + 8 > variable.bytes) continue;
        uint64_t value = 0;
        auto* at = reinterpret_cast<std::byte*>(symbols_[variable.name] + offset);
        std::memcpy(&value, at, 8);
        value += target != symbols_.end()
                     ? target->second
                     : kFunctionWindow |
                           static_cast<uint64_t>(function - module_.functions().data());
        std::memcpy(at, &value, 8);
      }
    }
    return {};
  }

  static Dim3 RequiredCluster(const ptx::Function& function) {
    const auto& c = function.required_cluster;
    return {std::max(1u, c[0]), std::max(1u, c[1]), std::max(1u, c[2])};
  }

  /// Why a launch cannot run, or "".
  static std::string Refuse(const Launch& launch) {
    const Dim3& g = launch.shape.grid;
    const Dim3& c = launch.cluster;
    if (c.Count() == 0 || c.Count() > 16 || g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
      return "the grid is no multiple of the cluster";
    const Kernel& kernel = *launch.kernel;
    const uint64_t shared = std::max<uint64_t>(
        kernel.static_shared,
        kernel.dynamic_shared_offset + uint64_t{launch.shape.dynamic_shared_bytes});
    if (kernel.static_shared > kMaxShared || shared > kMaxShared)
      return "the block has " + std::to_string(shared) +
             " bytes of shared memory, more than any GPU";
    if (launch.cooperative && g.Count() > kMaxGang)
      return "a cooperative launch of " + std::to_string(g.Count()) +
             " blocks is too large to be resident at once";
    if (launch.cooperative && c.Count() > 1)
      return "cooperative launches of clusters are not executed here";
    return "";
  }

  /// Blocks that run side by side, as lists of linear indices. Those of a cooperative grid are
  /// dealt out to `gangs`.
  static std::vector<uint64_t> GangBlocks(const Launch& launch, uint64_t first_block,
                                          uint64_t gangs) {
    const Dim3& g = launch.shape.grid;
    const Dim3& c = launch.cluster;
    std::vector<uint64_t> blocks;
    if (launch.cooperative) {
      for (uint64_t i = first_block; i < g.Count(); i += gangs) blocks.push_back(i);
      return blocks;
    }
    const uint64_t x0 = first_block % g.x / c.x * c.x;
    const uint64_t y0 = first_block / g.x % g.y / c.y * c.y;
    const uint64_t z0 = first_block / g.x / g.y / c.z * c.z;
    for (uint64_t z = 0; z < c.z; ++z) {
      for (uint64_t y = 0; y < c.y; ++y) {
        for (uint64_t x = 0; x < c.x; ++x)
          blocks.push_back(((z0 + z) * g.y + y0 + y) * g.x + x0 + x);
      }
    }
    return blocks;
  }

  /// First blocks of the gangs that a launch runs: of all, or of those with selected blocks.
  static std::vector<uint64_t> Gangs(const Launch& launch, const std::vector<uint64_t>& selected,
                                     uint64_t workers) {
    std::vector<uint64_t> firsts;
    const uint64_t total = launch.shape.grid.Count();
    const bool single = launch.cluster.Count() == 1;
    if (launch.cooperative && selected.empty()) {
      for (uint64_t i = 0; i < std::min(workers, total); ++i) firsts.push_back(i);
      return firsts;
    }
    if (selected.empty() && single) return {};  // every block is its own gang: no list needed
    const auto add = [&](uint64_t block) {
      firsts.push_back(single ? block : GangBlocks(launch, block, 0).front());
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

  static bool AreFarApart(uint64_t a, uint64_t b) {
    constexpr uint64_t kTimes = 3;
    return a * kTimes < b || b * kTimes < a;
  }

  /// Machine instructions that op_cost.def expects of what ran.
  static uint64_t AssumedInstructions(const BlockState& x) {
    uint64_t instructions = x.timing.predicated_off, stretch = 0;
    for (size_t i = 0; i < x.counting.executed.size(); ++i) {
      stretch += x.counting.basic_blocks[i].times;
      instructions += (x.counting.executed[i].times + stretch) * x.kernel->tracks[i].cost.issue;
    }
    return instructions;
  }

  /// Returns how many machine instructions that is, by op_cost.def.
  static uint64_t RunBlocks(Launch& launch, const ExecOptions& options, ExecResult& result) {
    uint64_t assumed = 0;
    if (launch.options.timed) launch.timing = TimingsOf(launch);
    // How often blocks look whether the others are there depends on who runs when: what is counted
    // has one order.
    const bool in_order = launch.cooperative && options.count;
    const uint64_t wanted = in_order          ? 1
                            : options.threads ? options.threads
                                              : std::max(1u, std::thread::hardware_concurrency());
    const std::vector<uint64_t> gangs = Gangs(launch, options.blocks, wanted);
    const bool all = gangs.empty() && options.blocks.empty();
    const uint64_t total = all ? launch.shape.grid.Count() : gangs.size();
    const bool single = launch.cluster.Count() == 1 &&
                        (!launch.cooperative || !options.blocks.empty());
    const double deadline = SystemClock().Now() + options.deadline_seconds;
    std::atomic<uint64_t> next{0};
    std::atomic<uint64_t> joined{0};  // blocks that run besides the first of their gang
    std::atomic<bool> stop{false};
    std::mutex mutex;
    CommonSectors common;
    const uint64_t workers = std::min<uint64_t>(wanted, total);
    GridProgress company(static_cast<uint32_t>(workers));
    const uint64_t most_joined = std::min(launch.resident_blocks, kMaxGang) -
                                 std::min(launch.resident_blocks, workers);
    const auto work = [&] {
      std::deque<BlockState> execs;
      const auto member = [&](uint64_t i) {
        if (i == execs.size()) Prepare(execs.emplace_back(), launch);
        return &execs[i];
      };
      CoScheduledBlocks gang;
      if (launch.cooperative && workers > 1) gang.grid = &company;
      if (single) {
        gang.next = [&](uint64_t& block) -> BlockState* {
          if (joined++ >= most_joined) return --joined, nullptr;
          const uint64_t i = next++;
          if (i >= total) return --joined, nullptr;
          block = all ? i : gangs[i];
          return member(gang.members.size());
        };
      }
      LaunchOutcome outcome;
      while (!stop) {
        const uint64_t i = next++;
        if (i >= total) break;
        const uint64_t first = all ? i : gangs[i];
        gang.blocks = single ? std::vector<uint64_t>{first} : GangBlocks(launch, first, workers);
        const uint64_t members = gang.blocks.size();
        gang.members.clear();
        for (uint64_t m = 0; m < members; ++m) gang.members.push_back(member(m));
        RunCoScheduled(gang, deadline, options.max_warp_instructions_per_block, outcome);
        joined -= gang.members.size() - members;
        const bool found = std::ranges::any_of(
            execs, [](const BlockState& x) { return !x.log.hazards.empty(); });
        const bool failed = (found && !launch.options.keep_going) ||
                            outcome.kind != LaunchOutcome::Kind::kCompleted;
        const bool ended = std::ranges::any_of(gang.members,
                                               [](const BlockState* x) { return x->stop; });
        if (failed) stop = true;
        if (gang.grid != nullptr) gang.grid->Leave(!failed && !ended);
        if (i % 256 == 255 && SystemClock().Now() > deadline && i + 1 < total) {
          outcome.kind = LaunchOutcome::Kind::kTimeout;
          outcome.message = "the launch did not end within its limit";
          stop = true;
        }
      }
      const std::lock_guard lock(mutex);
      for (const BlockState& x : execs) {
        CollectCounts(x, result.counts, result.lines);
        common.Meet(x.counting.common_sectors);
        assumed += AssumedInstructions(x);
        result.outcome.blocks_executed += x.counting.total.blocks;
        result.outcome.printed += x.printed;
        Merge(x, outcome, result.outcome);
      }
    };
    launch.parallel = workers > 1;
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    result.counts.global.common_load_sectors = common.size();
    return assumed;
  }

  static void Merge(const BlockState& x, const LaunchOutcome& outcome, LaunchOutcome& into) {
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

  ptx::ValidModule module_;
  Memory& memory_;
  std::unordered_map<std::string, uint64_t> symbols_;
  std::vector<uint64_t> allocations_;
  std::map<std::string, Kernel> kernels_;
  mutable std::mutex undefined_checks_mutex_;
  mutable std::map<std::string, Kernel> with_undefined_checks_;
  mutable DeviceHeap heap_;
};

}  // namespace

Result<std::unique_ptr<Program>> Load(ptx::ValidModule module, Memory& memory) {
  auto program = std::make_unique<LoadedProgram>(std::move(module), memory);
  ATUNNER_RETURN_IF_ERROR(program->Initialise());
  return program;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
