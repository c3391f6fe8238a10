#include "atunner/vgpu/virtual_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/base/wall_clock.h"
#include "atunner/compile/machine_code.h"
#include "atunner/device/profiles.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/vgpu/instructions/tensor_map.h"
#include "atunner/vgpu/launch_sample.h"
#include "atunner/vgpu/timing/estimate.h"

namespace atunner::vgpu {
namespace {

constexpr double kPredictSeconds = 30;

class VirtualBuffer : public Buffer {
 public:
  VirtualBuffer(Memory& memory, uint64_t address, uint64_t bytes)
      : memory_(memory), address_(address), bytes_(bytes) {}
  ~VirtualBuffer() override { memory_.Free(address_); }
  DeviceAddress address() const override { return address_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  Memory& memory_;
  uint64_t address_;
  uint64_t bytes_;
};

class VirtualTexture : public Texture {
 public:
  VirtualTexture(Memory& memory, uint64_t handle) : memory_(memory), handle_(handle) {}
  ~VirtualTexture() override { memory_.RemoveTexture(handle_); }
  uint64_t texture() const override { return handle_; }
  uint64_t surface() const override { return handle_ | kSurfaceBit; }
  Status CopyOut(std::span<std::byte> texels) override {
    const std::vector<std::byte>& from = memory_.FindTexture(handle_)->texels;
    if (texels.size() != from.size()) return Invalid("a texture is copied as a whole");
    std::ranges::copy(from, texels.begin());
    return {};
  }

 private:
  Memory& memory_;
  uint64_t handle_;
};

struct VirtualModule : LoadedModule {
  std::unique_ptr<Program> program;
  std::vector<std::pair<std::string, std::string>> names;  ///< entry → mangled
  std::map<std::string, MachineCode> machine_code;         ///< by mangled name

  std::string Mangled(const std::string& entry) const {
    for (const auto& [name, mangled] : names) {
      if (name == entry) return mangled;
    }
    return entry;
  }
};

double Total(const std::map<uint64_t, double>& named) {
  double bytes = 0;
  for (const auto& [address, size] : named) bytes += size;
  return bytes;
}

std::vector<size_t> SizesOf(const ptx::Function& entry) {
  std::vector<size_t> sizes;
  for (const ptx::Variable& param : entry.params) sizes.push_back(param.bytes);
  return sizes;
}

/// Blocks that the device can hold at once. Registers are not considered, because PTX does not say
/// how many a thread needs.
uint64_t MostResident(const DeviceProfile& profile, const ptx::Function& entry,
                      const LaunchShape& shape) {
  KernelResources resources;
  resources.static_shared_bytes = static_cast<uint32_t>(entry.shared_bytes);
  return static_cast<uint64_t>(ComputeOccupancy(profile, resources, shape).blocks_per_sm) *
         static_cast<uint64_t>(profile.sms);
}

/// The parameter buffer of a launch. `args` must fit the kernel.
std::vector<std::byte> PackParams(const ptx::Function& entry, std::span<const KernelArg> args) {
  std::vector<std::byte> params(entry.param_bytes);
  for (size_t i = 0; i < args.size(); ++i) {
    std::memcpy(params.data() + entry.params[i].offset, args[i].data(), args[i].size);
  }
  return params;
}

}  // namespace

VirtualGpu::VirtualGpu(DeviceProfile profile, unsigned threads)
    : profile_(std::move(profile)),
      calibration_(Calibration::Expected(profile_)),
      threads_(threads),
      memory_(static_cast<uint64_t>(profile_.dram_bytes)),
      now_ns_(NanosecondsSince1970()) {
  constexpr uint64_t kDay = 86'400'000'000'000;
  booted_ns_ = now_ns_ - Random(now_ns_).Below(kDay) - kDay;
}

Status VirtualGpu::CheckRange(DeviceAddress address, uint64_t bytes) const {
  const auto range = memory_.Find(address);
  if (bytes == 0 || (range && range->Contains(address, address + bytes))) return {};
  return Fail(ErrorCode::kInternal,
              "copy of " + std::to_string(bytes) +
                  " bytes outside an allocation: " + memory_.Describe(address));
}

std::unique_ptr<Buffer> VirtualGpu::Adopt(DeviceAddress address, uint64_t bytes) {
  const auto base = memory_.Adopt(address, bytes);
  if (!base) return nullptr;
  return std::make_unique<VirtualBuffer>(memory_, *base, memory_.Find(*base)->end - *base);
}

Result<std::unique_ptr<Buffer>> VirtualGpu::Allocate(uint64_t bytes) {
  ATUNNER_TRY(const uint64_t address, memory_.AllocateSkewed(bytes));
  return std::make_unique<VirtualBuffer>(memory_, address, bytes);
}

Status VirtualGpu::CopyIn(DeviceAddress to, std::span<const std::byte> from) {
  ATUNNER_RETURN_IF_ERROR(CheckRange(to, from.size()));
  std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
  memory_.MarkDefined(to, from.size());
  return {};
}

Status VirtualGpu::CopyOut(std::span<std::byte> to, DeviceAddress from) {
  ATUNNER_RETURN_IF_ERROR(CheckRange(from, to.size()));
  std::memcpy(to.data(), reinterpret_cast<const void*>(from), to.size());
  return {};
}

Status VirtualGpu::CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) {
  ATUNNER_RETURN_IF_ERROR(CheckRange(to, bytes));
  ATUNNER_RETURN_IF_ERROR(CheckRange(from, bytes));
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  memory_.MarkDefined(to, bytes);
  return {};
}

Status VirtualGpu::Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) {
  ATUNNER_RETURN_IF_ERROR(CheckRange(to, bytes));
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  memory_.MarkDefined(to, bytes);
  return {};
}

Status VirtualGpu::FillTiled(DeviceAddress to, uint64_t bytes, std::span<const std::byte> tile) {
  ATUNNER_RETURN_IF_ERROR(CheckRange(to, bytes));
  if (!memory_.MapTiled(to, bytes, tile)) return Device::FillTiled(to, bytes, tile);
  memory_.MarkDefined(to, bytes);
  return {};
}

Result<TensorMap> VirtualGpu::EncodeTensorMap(const TensorMapSpec& spec) {
  if (!CapabilitiesOf(profile_).tma) return Device::EncodeTensorMap(spec);
  ATUNNER_RETURN_IF_ERROR(Check(spec));
  return vgpu::EncodeTensorMap(spec);
}

Result<std::unique_ptr<Texture>> VirtualGpu::CreateTexture(const TextureSpec& spec,
                                                           std::span<const std::byte> texels) {
  ATUNNER_RETURN_IF_ERROR(Check(spec));
  if (texels.size() != spec.Bytes())
    return Invalid("a texture needs " + std::to_string(spec.Bytes()) + " bytes");
  return std::make_unique<VirtualTexture>(
      memory_, memory_.AddTexture({spec, {texels.begin(), texels.end()}}));
}

Result<ptx::ValidModule> VirtualGpu::Parsed(const std::string& text) {
  if (text == last_text_) return last_module_;
  ATUNNER_TRY(last_module_, ptx::Parse(text));
  last_text_ = text;
  return last_module_;
}

Result<std::unique_ptr<LoadedModule>> VirtualGpu::Load(const CompiledModule& module) {
  if (module.ptx.empty())
    return Fail(ErrorCode::kUnsupported,
                "the virtual GPU runs PTX, this candidate is a cubin only");
  ATUNNER_TRY(ptx::ValidModule parsed, Parsed(module.ptx));
  auto loaded = std::make_unique<VirtualModule>();
  ATUNNER_TRY(loaded->program, LoadProgram(std::move(parsed), memory_));
  for (const KernelResources& kernel : module.kernels)
    loaded->names.emplace_back(kernel.entry, kernel.mangled);
  if (!module.cubin.empty()) {
    for (const KernelResources& kernel : module.kernels) {
      ATUNNER_TRY(loaded->machine_code[kernel.mangled],
                  ReadMachineCode(module.cubin, kernel.mangled, module.arch));
    }
  }
  return loaded;
}

Result<std::pair<DeviceAddress, uint64_t>> VirtualGpu::FindSymbol(LoadedModule& module,
                                                                  const std::string& symbol) {
  return static_cast<VirtualModule&>(module).program->FindSymbol(symbol);
}

Result<std::optional<uint64_t>> VirtualGpu::StateFingerprint(LoadedModule& module) {
  return static_cast<VirtualModule&>(module).program->StateFingerprint();
}

Result<LaunchOutcome> VirtualGpu::Refuse(const LaunchShape& shape, const ptx::Function* entry,
                                         const std::string& name,
                                         std::span<const KernelArg> args) const {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  const uint64_t threads = shape.block.Count();
  if (entry == nullptr)
    outcome.message = "there is no kernel '" + name + "'";
  else if (const std::string misfit = Misfit(name, SizesOf(*entry), args); !misfit.empty())
    outcome.message = misfit;
  else if (const std::string impossible = ImpossibleSizes(shape); !impossible.empty())
    outcome.message = impossible;
  else if (entry->shared_bytes + shape.dynamic_shared_bytes >
           static_cast<uint64_t>(profile_.shared_per_block))
    outcome.message = "too much shared memory";
  else if (entry->required_threads && entry->required_threads != threads)
    outcome.message = "the kernel requires blocks of " + std::to_string(entry->required_threads) +
                      " threads";
  else if (const uint64_t most = MostResident(profile_, *entry, shape);
           shape.cooperative && shape.grid.Count() > most)
    outcome.message = fmt::format(
        "a cooperative launch of {} blocks, of which {} can be resident at once",
        shape.grid.Count(), most);
  else
    outcome.kind = LaunchOutcome::Kind::kCompleted;
  return outcome;
}

const ptx::Function* VirtualGpu::FindEntry(const LoadedModule& module,
                                           const std::string& entry) const {
  const auto& loaded = static_cast<const VirtualModule&>(module);
  return loaded.program->FindEntry(loaded.Mangled(entry));
}

std::span<std::byte> VirtualGpu::Texels(uint64_t handle) {
  TextureData* texture = memory_.FindTexture(handle);
  return texture == nullptr ? std::span<std::byte>() : std::span(texture->texels);
}

std::vector<Hazard> VirtualGpu::Leaks(const LoadedModule& module) const {
  return static_cast<const VirtualModule&>(module).program->Leaks();
}

Result<LaunchOutcome> VirtualGpu::Launch(LoadedModule& module, const std::string& entry,
                                         const LaunchShape& shape, std::span<const KernelArg> args,
                                         const LaunchOptions& options) {
  ATUNNER_TRY(ExecResult result, Execute(module, entry, shape, args, options, false));
  return std::move(result.outcome);
}

Result<ExecResult> VirtualGpu::LaunchCounted(LoadedModule& module, const std::string& entry,
                                             const LaunchShape& shape,
                                             std::span<const KernelArg> args,
                                             const LaunchOptions& options) {
  return Execute(module, entry, shape, args, options, true);
}

SystemFacts VirtualGpu::FactsOf(const ptx::Function& entry, const LaunchShape& shape,
                                uint64_t seed) {
  SystemFacts system;
  system.sms = static_cast<uint32_t>(profile_.sms);
  system.warps_per_sm = static_cast<uint32_t>(profile_.max_warps_per_sm);
  const uint64_t resident = MostResident(profile_, entry, shape);
  system.blocks_per_sm = static_cast<uint32_t>(std::max<uint64_t>(resident / system.sms, 1));
  system.clocks_per_ns = profile_.clock_ghz;
  if (profile_.cc_major >= 8) system.reserved_shared = 1024;
  system.grid = ++launches_;
  system.began_ns = now_ns_;
  system.booted_ns = booted_ns_;
  system.seed = seed;
  return system;
}

Result<ExecResult> VirtualGpu::Execute(LoadedModule& module, const std::string& entry,
                                       const LaunchShape& shape, std::span<const KernelArg> args,
                                       const LaunchOptions& options, bool count) {
  const auto& loaded = static_cast<VirtualModule&>(module);
  const std::string mangled = loaded.Mangled(entry);
  const ptx::Function* function = loaded.program->FindEntry(mangled);
  ATUNNER_TRY(LaunchOutcome refused, Refuse(shape, function, entry, args));
  if (!refused.completed()) return ExecResult{std::move(refused), {}, {}};
  ExecOptions exec;
  exec.check_hazards = options.check_hazards;
  exec.check_global = options.check_global;
  exec.groups = options.groups;
  exec.keep_going = options.keep_going;
  exec.deadline_seconds = options.timeout_seconds;
  if (options.max_warp_instructions_per_block)
    exec.max_warp_instructions_per_block = options.max_warp_instructions_per_block;
  if (options.max_warp_instructions) exec.max_warp_instructions = options.max_warp_instructions;
  exec.threads = threads_;
  exec.blocks = options.blocks;
  exec.log_writes = options.log_writes;
  exec.block_order = options.block_order;
  exec.count = exec.count_lines = count;
  exec.resident_blocks = MostResident(profile_, *function, shape);
  exec.system = FactsOf(*function, shape, options.block_order);
  ExecResult result = loaded.program->Run(mangled, shape, PackParams(*function, args), exec);
  now_ns_ += result.elapsed_ns;
  return result;
}

std::map<uint64_t, double> VirtualGpu::Named(std::span<const KernelArg> args) const {
  std::map<uint64_t, double> named;
  for (const KernelArg& arg : args) {
    uint64_t address = 0;
    if (arg.size == sizeof address)
      std::memcpy(&address, arg.bytes.data(), sizeof address);
    else if (const auto map = arg.size == sizeof arg.bytes ? DecodeTensorMap(arg.bytes.data())
                                                           : std::nullopt)
      address = map->address;
    else
      continue;
    if (const auto range = memory_.Find(address))
      named[range->base] = static_cast<double>(range->end - range->base);
    else if (const TextureData* texture = memory_.FindTexture(address))
      named[address] = static_cast<double>(texture->texels.size());
  }
  return named;
}

Result<LaunchOutcome> VirtualGpu::Complete(LoadedModule& module, const std::string& entry,
                                           const LaunchShape& shape,
                                           std::span<const KernelArg> args,
                                           std::span<const uint64_t> executed) {
  const auto& program = *static_cast<VirtualModule&>(module).program;
  const ptx::Function* function = program.FindEntry(
      static_cast<VirtualModule&>(module).Mangled(entry));
  std::erase_if(unfinished_,
                [&](const Unfinished& one) { return one.module == &module && one.entry == entry; });
  LaunchOptions options;
  options.check_hazards = false;
  const uint64_t cluster = function == nullptr ? 1 : ClusterSize(*function, shape);
  // Blocks that wait for others cannot be caught up with by those.
  if (shape.cooperative && !RunsWhole(shape, Total(Named(args)))) return LaunchOutcome{};
  // A sampled block runs with its whole cluster; those launches begin anew.
  for (uint64_t block = 0; cluster == 1 && !shape.cooperative && block < shape.grid.Count();
       ++block) {
    if (!std::ranges::binary_search(executed, block)) options.blocks.push_back(block);
  }
  return Launch(module, entry, shape, args, options);
}

ExecOptions VirtualGpu::PredictionOptions(const KernelResources& resources,
                                          const LaunchShape& shape,
                                          const Occupancy& occupancy) const {
  ExecOptions exec;
  exec.check_hazards = false;
  exec.count = exec.timeline = true;
  exec.threads = threads_;
  exec.deadline_seconds = kPredictSeconds;
  exec.latencies = LatenciesOf(profile_, calibration_, shape.grid.Count());
  exec.latencies.spill = static_cast<float>(
      SpillClk(profile_, calibration_, resources, shape, occupancy));
  exec.registers = resources.registers;
  exec.l1_sectors = L1SectorsPerBlock(profile_, resources, shape, occupancy);
  return exec;
}

Result<bool> VirtualGpu::CompleteWhatDecides(const Program& program, const std::string& mangled,
                                             std::span<const std::byte> params) {
  // Warp instructions: a second or two.
  constexpr double kMostInstructions = 1e8;
  if (unfinished_.empty()) return true;
  const auto probe = program.Probe(mangled, params, KeptBranches::kByData);
  const Allocations read = probe ? (*probe)->slice().read : std::nullopt;
  const auto decides = [&](const Unfinished& one) {
    if (!read || !one.stored) return !read || !read->empty();
    return std::ranges::any_of(*read, [&](uint64_t allocation) {
      return std::ranges::binary_search(*one.stored, allocation);
    });
  };
  if (std::ranges::none_of(unfinished_, decides)) return true;
  double instructions = 0;
  for (const Unfinished& one : unfinished_) instructions += one.instructions;
  if (instructions > kMostInstructions) return false;
  // What one launch writes may depend on the launch before it: all run, in their order.
  const std::vector<Unfinished> all = std::exchange(unfinished_, {});
  for (const Unfinished& one : all) {
    ATUNNER_TRY(const LaunchOutcome outcome,
                Complete(*one.module, one.entry, one.shape, one.args, one.executed));
    if (!outcome.completed()) return Invalid("the launch does not complete: " + outcome.message);
  }
  return true;
}

Result<Prediction> VirtualGpu::Predict(LoadedModule& module, const KernelResources& resources,
                                       const LaunchShape& shape, std::span<const KernelArg> args,
                                       const Predecessors& earlier) {
  const auto& loaded = static_cast<VirtualModule&>(module);
  const std::string mangled = loaded.Mangled(resources.entry);
  const ptx::Function* function = loaded.program->FindEntry(mangled);
  ATUNNER_TRY(const LaunchOutcome refused, Refuse(shape, function, resources.entry, args));
  if (!refused.completed())
    return Fail(refused.kind == LaunchOutcome::Kind::kUnsupported ? ErrorCode::kUnsupported
                                                                  : ErrorCode::kInvalidInput,
                refused.message);
  const Occupancy occupancy = ComputeOccupancy(profile_, resources, shape);
  ExecOptions exec = PredictionOptions(resources, shape, occupancy);
  exec.system = FactsOf(*function, shape, 0);
  const auto machine_code = loaded.machine_code.find(mangled);
  if (machine_code != loaded.machine_code.end()) exec.machine_code = &machine_code->second;
  const std::map<uint64_t, double> named = Named(args);
  const double footprint = Total(named);  // every argument's allocation may be touched once in full
  const std::vector<std::byte> params = PackParams(*function, args);
  const SampledLaunch launch{.program = *loaded.program,
                             .memory = memory_,
                             .entry = mangled,
                             .shape = shape,
                             .params = params,
                             .cluster = ClusterSize(*function, shape),
                             .footprint = footprint,
                             .at_once = MostResident(profile_, *function, shape)};
  if (earlier.args.empty()) unfinished_.clear();
  ATUNNER_TRY(const bool decided, CompleteWhatDecides(*loaded.program, mangled, params));
  LaunchSample sample = SampleLaunch(launch, exec);
  const ExecResult& result = sample.result;
  if (!result.outcome.completed())
    return Invalid("the launch does not complete: " + result.outcome.message);
  EstimateInput input;
  input.profile = &profile_;
  input.calibration = calibration_;
  input.resources = resources;
  input.shape = shape;
  input.occupancy = occupancy;
  input.cluster = launch.cluster;
  input.counts = result.counts;
  input.blocks_executed = result.outcome.blocks_executed;
  input.blocks_counted = sample.counted;
  input.shares = std::move(sample.shares);
  input.unknown_work = decided ? sample.unknown_work : static_cast<double>(shape.grid.Count());
  input.footprint_bytes = footprint;
  const std::map<uint64_t, double> before = Named(earlier.args);
  input.follows = !earlier.args.empty();
  input.moved_before = earlier.bytes;
  for (const auto& [address, bytes] : named) {
    if (before.contains(address)) input.known_bytes += bytes;
  }
  if (result.outcome.blocks_executed < shape.grid.Count()) {
    const double blocks = std::max(1.0, sample.counted > 0
                                            ? sample.counted
                                            : static_cast<double>(result.outcome.blocks_executed));
    unfinished_.push_back({&module,
                           resources.entry,
                           shape,
                           {args.begin(), args.end()},
                           sample.executed,
                           sample.stored,
                           static_cast<double>(result.counts.issued) / blocks *
                               static_cast<double>(shape.grid.Count())});
  }
  if (observer_) observer_(input);
  return Prediction{EstimateTime(input), std::move(sample.executed)};
}

}  // namespace atunner::vgpu
