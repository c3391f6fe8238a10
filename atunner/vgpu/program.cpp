// A loaded module: its variables in device memory, its kernels decoded, and its launches.
#include <algorithm>
#include <mutex>
#include <tuple>

#include "atunner/base/digest.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/run_grid.h"
#include "atunner/vgpu/timeline/in_order.h"
#include "atunner/vgpu/warps/work.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kHeapBytes = uint64_t{8} << 20;  // for malloc in kernels, the driver's default
constexpr uint64_t kGridWorkspaceBytes = 256;
// A block with more shared memory is refused: its shadow would be several times as large.
constexpr uint64_t kMaxShared = uint64_t{1} << 20;

class LoadedProbe;

class LoadedProgram : public Program {
 public:
  LoadedProgram(ptx::ValidModule module, Memory& memory)
      : module_(std::move(module)), memory_(memory), heap_(memory, kHeapBytes) {}
  ~LoadedProgram() override {
    for (uint64_t address : allocations_) memory_.Free(address);
  }

  Status Initialise() {
    ATUNNER_RETURN_IF_ERROR(Allocate(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(Allocate(module_.constants()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.constants()));
    for (const ptx::Function& function : module_.functions()) {
      if (!function.is_entry) continue;
      ATUNNER_TRY(Kernel kernel, Decode(module_, function, symbols_));
      FindFlags(kernel);
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
    Launch launch = LaunchOf(found->second, shape, params, options);
    SassSchedule schedule;
    if (launch.options.timed && options.machine_code != nullptr)
      schedule = ScheduleOf(found->second, *options.machine_code);
    if (!schedule.empty()) launch.schedule = &schedule;
    RaceClock clock;
    launch.clock = &clock;
    EnableGlobalChecks(launch, found->first, options);
    if (auto refusal = Refuse(launch); !refusal.empty()) {
      result.outcome = {LaunchOutcome::Kind::kRefused, std::move(refusal), {}, 0};
      return result;
    }
    if (launch.cooperative) launch.grid_workspace = GridWorkspace();
    const uint64_t assumed = RunGrid(launch, options, result);
    if (launch.schedule && result.outcome.completed() &&
        AreFarApart(result.counts.issued, assumed)) {
      launch.schedule = nullptr;  // the machine code could not be matched with the PTX
      result = {};
      RunGrid(launch, options, result);
    }
    if (options.keep_going) std::ranges::sort(result.outcome.hazards, EarlierInSource);
    if (launch.grid_workspace) memory_.Free(launch.grid_workspace);
    return result;
  }

  Result<std::unique_ptr<WorkProbe>> Probe(const std::string& entry,
                                           std::span<const std::byte> params,
                                           KeptBranches branches) const override;

  std::vector<Hazard> Leaks() const override {
    std::vector<Hazard> leaks;
    for (const auto& [address, block] : heap_.Live()) leaks.push_back(LeakOf(address, block));
    return leaks;
  }

 private:
  friend class LoadedProbe;

  /// The allocation that a parameter of the launch points to, or that a variable has; 0 = none.
  uint64_t AllocationAt(const ptx::Function& function, std::span<const std::byte> params,
                        const std::string& name, uint64_t offset) const {
    uint64_t address = 0;
    const auto param = std::ranges::find(function.params, name, &ptx::Variable::name);
    if (param != function.params.end()) {
      const uint64_t at = param->offset + offset;
      if (offset + sizeof address <= param->bytes && at + sizeof address <= params.size())
        std::memcpy(&address, params.data() + at, sizeof address);
    } else if (const auto symbol = symbols_.find(name); symbol != symbols_.end()) {
      address = symbol->second;
    }
    const auto range = memory_.Find(address);
    return range ? range->base : 0;
  }

  Hazard LeakOf(uint64_t address, const DeviceHeap::Block& block) const {
    const auto& location = kernels_.find(block.entry)->second.locations[block.op];
    Hazard hazard;
    hazard.kind = Hazard::Kind::kLeak;
    hazard.kernel = block.entry;
    hazard.site = {location.source_line ? module_.SourceFile(location.source_file) : "",
                   location.Shown(), block.block, block.thread};
    hazard.where = (location.source_line
                        ? hazard.site.file.substr(hazard.site.file.rfind('/') + 1) + ":"
                        : "PTX line ") +
                   std::to_string(hazard.site.line);
    hazard.detail = "block " + std::to_string(block.block) + ", thread " +
                    std::to_string(block.thread) + " takes " + std::to_string(block.bytes) +
                    " bytes by malloc, and nobody frees them";
    hazard.space = "global";
    hazard.address = address;
    return hazard;
  }

  /// Order of a report: by file and line of the source, then by kind.
  static bool EarlierInSource(const Hazard& a, const Hazard& b) {
    return std::tie(a.site.file, a.site.line, a.kind) < std::tie(b.site.file, b.site.line, b.kind);
  }

  Launch LaunchOf(const Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> params,
                  const ExecOptions& options) const {
    Launch launch;
    launch.kernel = &kernel;
    launch.module = &module_;
    launch.memory = &memory_;
    launch.shape = shape;
    launch.params.assign(params.begin(), params.end());
    launch.params.resize(std::max<size_t>(launch.params.size(), kernel.function->param_bytes));
    launch.options = {.check = options.check_hazards,
                      .check_global = options.check_hazards && options.check_global,
                      .keep_going = options.keep_going,
                      .groups = options.groups,
                      .count = options.count,
                      .count_lines = options.count_lines,
                      .timed = options.count && options.timeline,
                      .log_writes = options.log_writes};
    launch.latencies = options.latencies;
    launch.registers = options.registers;
    launch.l1_sectors = options.l1_sectors;
    launch.resident_blocks = options.resident_blocks;
    launch.system = options.system;
    launch.sampled = options.count && !options.blocks.empty();
    launch.heap = &heap_;
    launch.cluster = shape.cluster.Count() > 1 ? shape.cluster : RequiredCluster(*kernel.function);
    launch.cooperative = shape.cooperative || kernel.cooperative;
    return launch;
  }

  void EnableGlobalChecks(Launch& launch, const std::string& entry,
                          const ExecOptions& options) const {
    const bool init = (options.groups & static_cast<uint8_t>(HazardGroup::kInit)) != 0;
    const bool races = (options.groups & static_cast<uint8_t>(HazardGroup::kRace)) != 0;
    if (launch.options.check_global && races && memory_.tracks())
      launch.first_serial = memory_.TakeSerials(launch.shape.grid.Count());
    if (launch.options.check_global && init)
      launch.kernel = &WithUndefinedChecks(entry, *launch.kernel);
  }

  /// Memory for the barrier of a cooperative grid; 0 if there is none left.
  uint64_t GridWorkspace() const {
    const auto workspace = memory_.Allocate(kGridWorkspaceBytes);
    if (!workspace) return 0;
    memory_.MarkDefined(*workspace, kGridWorkspaceBytes);
    return *workspace;
  }

  const Kernel& WithUndefinedChecks(const std::string& entry, const Kernel& kernel) const {
    const std::lock_guard lock(undefined_checks_mutex_);
    const auto at = with_undefined_checks_.find(entry);
    return at != with_undefined_checks_.end()
               ? at->second
               : with_undefined_checks_.emplace(entry, FindMaybeUndefined(kernel)).first->second;
  }

  Status Allocate(const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      ATUNNER_TRY(const uint64_t address, memory_.Allocate(std::max<uint64_t>(variable.bytes, 1)));
      allocations_.push_back(address);
      symbols_[variable.name] = address;
      memory_.SetName(address, variable.name);
      // variables without an initialiser are zero
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
    if (launch.cooperative && g.Count() > kMaxCoScheduled)
      return "a cooperative launch of " + std::to_string(g.Count()) +
             " blocks is too large to be resident at once";
    if (launch.cooperative && c.Count() > 1)
      return "cooperative launches of clusters are not executed here";
    return "";
  }

  static bool AreFarApart(uint64_t a, uint64_t b) {
    constexpr uint64_t kTimes = 3;
    return a * kTimes < b || b * kTimes < a;
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

/// A slice of a program's kernel, decoded.
class LoadedProbe : public WorkProbe {
 public:
  LoadedProbe(const LoadedProgram& program, const ptx::Function& function, WorkSlice slice)
      : program_(program), slice_(std::move(slice)), weights_(function.body.size() + 1, 0) {
    for (const CountedBlock& block : slice_.counted) weights_[block.first] = block.instructions;
    slice_.weights.resize(slice_.function.body.size() + 1, 0);
  }

  Status Initialise() {
    if (!slice_.unknown.empty() || slice_.alike) return {};
    ATUNNER_TRY(kernel_, Decode(program_.module_, slice_.function, program_.symbols_));
    return {};
  }

  const WorkSlice& slice() const override { return slice_; }
  const std::vector<uint32_t>& weights() const override { return weights_; }

  LaunchOutcome Run(const LaunchShape& shape, std::span<const std::byte> params,
                    const WorkOptions& options, WorkLog& log) const override {
    // Operations of a warp's turn: blocks that share a queue take about one item each.
    constexpr uint32_t kShortTurn = 16;
    ExecOptions exec;
    exec.check_hazards = false;
    exec.blocks = options.blocks;
    exec.threads = options.side_by_side ? 1 : options.threads;
    exec.deadline_seconds = options.deadline_seconds;
    Launch launch = program_.LaunchOf(kernel_, shape, params, exec);
    launch.sampled = !options.blocks.empty();
    launch.cooperative |= options.side_by_side;
    log.amount.resize(shape.grid.Count());
    log.kind.resize(shape.grid.Count());
    const GridLog grid{&log, &slice_.weights, options.budget,
                       options.side_by_side ? kShortTurn : kTurn};
    ExecResult result;
    RunGrid(launch, exec, result, &grid);
    return std::move(result.outcome);
  }

 private:
  const LoadedProgram& program_;
  WorkSlice slice_;
  std::vector<uint32_t> weights_;
  Kernel kernel_;
};

Result<std::unique_ptr<WorkProbe>> LoadedProgram::Probe(const std::string& entry,
                                                        std::span<const std::byte> params,
                                                        KeptBranches branches) const {
  const ptx::Function* function = FindEntry(entry);
  if (function == nullptr) return Invalid("there is no kernel '" + entry + "'");
  const auto allocation_of = [&](const std::string& name, uint64_t offset) {
    return AllocationAt(*function, params, name, offset);
  };
  auto probe = std::make_unique<LoadedProbe>(*this, *function,
                                             SliceOf(*function, branches, allocation_of));
  ATUNNER_RETURN_IF_ERROR(probe->Initialise());
  return probe;
}

}  // namespace

Result<std::unique_ptr<Program>> Load(ptx::ValidModule module, Memory& memory) {
  auto program = std::make_unique<LoadedProgram>(std::move(module), memory);
  ATUNNER_RETURN_IF_ERROR(program->Initialise());
  return program;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
