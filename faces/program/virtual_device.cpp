#include "faces/program/virtual_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "atunner/base/demangle.h"
#include "atunner/device/profiles.h"
#include "faces/program/applier.h"
#include "faces/program/recorder.h"

namespace atunner::program {
namespace {

constexpr int kAbandoned = 124;  // as `timeout` has it

Order OrderOfEnvironment() {
  const char* text = std::getenv(kOrderVariable);
  auto order = text != nullptr ? ReadOrder(text)
                               : Result<Order>(Order{.profile = *FindProfile("A100"),
                                                     .report = {},
                                                     .capture = {},
                                                     .apply = {}});
  if (!order) {
    fmt::print(stderr, "atunner: {}\n", order.error().ToString());
    std::exit(ExitCode(order.error().code));
  }
  return *std::move(order);
}

/// A mangled name in readable form, without result and parameters: "reduce<float, 256u>".
std::string Readable(const std::string& mangled) {
  std::string name = Demangled(mangled);
  int depth = 0;  // of <>: types of functions have brackets too
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth > 0 || name[i] != '(' || name.compare(i, 12, "(anonymous n") == 0) continue;
    name.resize(i);
    break;
  }
  return name.starts_with("void ") ? name.substr(5) : name;
}

/// ".target sm_90a" → 90.
int TargetArch(const std::string& ptx) {
  constexpr std::string_view kTarget = ".target sm_";
  const size_t at = ptx.find(kTarget);
  return at == std::string::npos ? 0 : std::atoi(ptx.c_str() + at + kTarget.size());
}

/// The error that a GPU returns for a kernel with this hazard; kSuccess if it would go on.
Code FaultOf(const Hazard& hazard) {
  switch (hazard.kind) {
    case Hazard::Kind::kRace:
    case Hazard::Kind::kLeak:
    case Hazard::Kind::kUninitialisedGlobal:
    case Hazard::Kind::kUninitialisedLocal:
    case Hazard::Kind::kUninitialisedRegister:
    case Hazard::Kind::kUninitialisedShared:
    case Hazard::Kind::kAsyncCopyInFlight:
      return kSuccess;
    case Hazard::Kind::kOutOfBounds:
      return kIllegalAddress;
    case Hazard::Kind::kMisaligned:
      return kMisalignedAddress;
    default:
      return kLaunchFailure;
  }
}

std::string Misshapen(const std::string& kernel, const LaunchOutcome& outcome) {
  return fmt::format("{} cannot be launched: {}", kernel, outcome.message);
}

}  // namespace

VirtualDevice& VirtualDevice::Get() {
  static VirtualDevice* virtual_device = [] {
    auto* made = new VirtualDevice(OrderOfEnvironment());  // never deleted: used until the end
    std::atexit([] { Get().End(); });
    return made;
  }();
  return *virtual_device;
}

VirtualDevice::VirtualDevice(Order order) : order_(std::move(order)), gpu_(order_.profile) {
  gpu_.TrackMemory();
  if (order_.apply) applier_ = std::make_unique<Applier>(*order_.apply, gpu_);
  if (order_.capture) recorder_ = std::make_unique<Recorder>(*order_.capture, gpu_);
}

VirtualDevice::~VirtualDevice() = default;

Result<std::string> VirtualDevice::PtxOf(const char* image, const char* const* linked) const {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kElfMagic)
    return Fail(ErrorCode::kUnsupported, "the program loads machine code (a cubin)", "",
                "load PTX instead");
  if (magic != kFatBinaryMagic) return std::string(image);
  const auto binary = ReadFatBinary(image);
  Result<std::string> ptx = binary ? ChoosePtx(*binary, arch()) : std::unexpected(binary.error());
  if (!ptx && linked != nullptr) {
    if (auto again = LinkedPtx(linked, arch())) return again;
  }
  return ptx;
}

Module* VirtualDevice::AddModule(const char* image, const char* const* linked) {
  Result<std::string> ptx = PtxOf(image, linked);
  auto module = ptx ? std::make_unique<Module>(*std::move(ptx))
                    : std::make_unique<Module>(ptx.error());
  return modules_.insert(std::move(module)).first->get();
}

void VirtualDevice::RemoveModule(Module* module) {
  if (recorder_ != nullptr) recorder_->Forget(module);
  std::erase_if(modules_, [&](const auto& known) { return known.get() == module; });
}

LoadedModule* VirtualDevice::Load(Module& module) {
  if (!module.loaded_ && !module.refused_) {
    CompiledModule compiled;
    compiled.ptx = module.ptx_;
    module.arch_ = TargetArch(compiled.ptx);
    auto loaded = gpu_.Load(compiled);
    if (loaded)
      module.loaded_ = *std::move(loaded);
    else
      module.refused_ = loaded.error();
  }
  if (module.refused_) Misuse(kInvalidPtx, module.refused_->ToString());
  return module.loaded_.get();
}

const ptx::Function* VirtualDevice::FindEntry(const Kernel& kernel) {
  LoadedModule* module = Load(*kernel.module);
  return module == nullptr ? nullptr : gpu_.FindEntry(*module, kernel.name);
}

int VirtualDevice::PtxArch(Module& module) { return Load(module) == nullptr ? 0 : module.arch_; }

int VirtualDevice::BlocksPerSm(const ptx::Function& entry, const LaunchShape& shape) const {
  KernelResources resources;
  resources.static_shared_bytes = static_cast<uint32_t>(entry.shared_bytes);
  return ComputeOccupancy(profile(), resources, shape).blocks_per_sm;
}

std::optional<std::pair<uint64_t, uint64_t>> VirtualDevice::FindSymbol(Module& module,
                                                                       const std::string& name) {
  LoadedModule* loaded = Load(module);
  if (loaded == nullptr) return std::nullopt;
  const auto found = gpu_.FindSymbol(*loaded, name);
  return found ? std::optional(*found) : std::nullopt;
}

LaunchOptions VirtualDevice::OptionsOfLaunches() const {
  LaunchOptions options;
  options.check_hazards = order_.groups != static_cast<uint8_t>(HazardGroup::kMemory);
  // Recording and applying run the program; `sanitize` looks for hazards.
  options.check_global = recorder_ == nullptr && applier_ == nullptr;
  options.keep_going = true;
  options.groups = order_.groups;
  options.timeout_seconds = order_.timeout_seconds;
  if (recorder_ != nullptr)
    options.timeout_seconds = std::clamp(order_.recorded_seconds - SecondsSinceStart(), 1.0,
                                         order_.recorded_launch_seconds);
  options.max_warp_instructions_per_block = order_.max_instructions;
  return options;
}

Result<LaunchOutcome> VirtualDevice::Execute(const Kernel& kernel, const ptx::Function& entry,
                                             const LaunchShape& shape, void** params) {
  Module& module = *kernel.module;
  ProgramLaunch launch{kernel.name, &entry,       &module, module.loaded_.get(),
                       module.ptx_, module.arch_, shape,   {}};
  for (size_t i = 0; i < entry.params.size(); ++i)
    launch.args.push_back(
        KernelArg::Value({static_cast<const std::byte*>(params[i]), entry.params[i].bytes}));
  LaunchOptions options = OptionsOfLaunches();
  const auto original = [&] {
    return gpu_.Launch(*launch.loaded, kernel.name, shape, launch.args, options);
  };
  if (applier_ != nullptr) return applier_->Launch(launch, options, original);
  options.log_writes = recorder_ != nullptr && recorder_->Begin(launch);
  if (options.log_writes) recorded_at_ = SecondsSinceStart();
  auto outcome = original();
  if (options.log_writes) recorder_->End(launch, outcome.value_or(LaunchOutcome{}));
  return outcome;
}

Code VirtualDevice::Launch(const Kernel& kernel, const LaunchShape& shape, void** params) {
  const ptx::Function* entry = FindEntry(kernel);
  if (entry == nullptr) return kernel.module->refused_ ? kInvalidPtx : kInvalidDeviceFunction;
  if (before_launch_) before_launch_();
  if (recorder_ != nullptr && IsLongEnough()) Abandon();
  auto outcome = Execute(kernel, *entry, shape, params);
  if (after_launch_) after_launch_();
  const std::string name = Readable(kernel.name);
  if (!outcome) return Misuse(kLaunchFailure, name + ": " + outcome.error().ToString());
  if (outcome->kind == LaunchOutcome::Kind::kRefused) {
    const bool cooperative = outcome->message.starts_with("a cooperative");
    return Misuse(cooperative ? kCooperativeTooLarge : kInvalidConfiguration,
                  Misshapen(name, *outcome));
  }
  if (recorder_ != nullptr && IsCutShort(shape, *outcome)) {
    recorder_->NoteCutShort(name, shape, *outcome);
    outcome->kind = LaunchOutcome::Kind::kCompleted;
  }
  AddFindings(name, *outcome);
  return kSuccess;
}

double VirtualDevice::SecondsSinceStart() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool VirtualDevice::IsLongEnough() const {
  const double now = SecondsSinceStart();
  return now > order_.recorded_seconds || (now > order_.quiet_seconds && recorded_at_ < now / 2);
}

/// What was recorded until now is kept.
void VirtualDevice::Abandon() {
  Misuse(
      kLaunchFailure,
      fmt::format("the program was ended after {:.0f} s on the virtual GPU, {:.0f} s after its "
                  "last new launch; run it with smaller sizes or fewer steps to record all of it",
                  SecondsSinceStart(), SecondsSinceStart() - recorded_at_));
  (void)recorder_->Finish();
  fflush(nullptr);
  _exit(kAbandoned);
}

void VirtualDevice::AddFindings(const std::string& kernel, const LaunchOutcome& outcome) {
  fwrite(outcome.printed.data(), 1, outcome.printed.size(), stdout);
  ++findings_.launches;
  findings_.blocks += outcome.blocks_executed;
  bool grew = findings_.launches == 1;
  for (Hazard hazard : outcome.hazards) {
    if (fault_ == kSuccess) fault_ = FaultOf(hazard);
    hazard.kernel = Readable(hazard.kernel);
    grew |= findings_.Add(std::move(hazard));
  }
  if (outcome.kind != LaunchOutcome::Kind::kCompleted && outcome.hazards.empty())
    fault_ = Misuse(kLaunchFailure, kernel + ": " + outcome.message);
  if (grew) Report();
}

Code VirtualDevice::TakeFault() { return std::exchange(fault_, kSuccess); }

void* VirtualDevice::Allocate(uint64_t bytes, bool host) {
  auto buffer = gpu_.Allocate(std::max<uint64_t>(bytes, 1));
  if (!buffer) return nullptr;
  const uint64_t address = (*buffer)->address();
  auto* pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  if (host) {
    gpu_.MarkContents(address, (*buffer)->bytes(), true);
    host_memory_.insert(pointer);
  }
  buffers_[pointer] = *std::move(buffer);
  return pointer;
}

Code VirtualDevice::Free(void* address, const char* call) {
  if (address == nullptr) return kSuccess;
  host_memory_.erase(address);
  if (buffers_.erase(address) == 1) return kSuccess;
  return Misuse(kInvalidValue,
                fmt::format("{}: {} was not allocated, or was freed before", call, address));
}

Code VirtualDevice::Register(void* address, uint64_t bytes) {
  if (address == nullptr || bytes == 0) return kInvalidValue;
  auto buffer = gpu_.Adopt(reinterpret_cast<uint64_t>(address), bytes);
  if (!buffer) return kAlreadyRegistered;
  gpu_.MarkContents(buffer->address(), buffer->bytes(), true);
  host_memory_.insert(
      reinterpret_cast<void*>(buffer->address()));  // NOLINT(performance-no-int-to-ptr)
  registered_[address] = std::move(buffer);
  return kSuccess;
}

Code VirtualDevice::Unregister(void* address) {
  const auto at = registered_.find(address);
  if (at == registered_.end()) return kNotRegistered;
  host_memory_.erase(
      reinterpret_cast<void*>(at->second->address()));  // NOLINT(performance-no-int-to-ptr)
  registered_.erase(at);
  return kSuccess;
}

Code VirtualDevice::CheckRange(const char* call, uint64_t address, uint64_t bytes) {
  const auto range = gpu_.memory().Find(address);
  if (!range || range->Contains(address, address + bytes)) return kSuccess;
  return Misuse(
      kInvalidValue,
      fmt::format("{}: {} bytes from {:#x} reach {} bytes past the end of an allocation of {}",
                  call, bytes, address, address + bytes - range->end, range->end - range->base));
}

Code VirtualDevice::Copy(const char* call, Rows to, Rows from, uint64_t width, uint64_t height) {
  for (uint64_t row = 0; row < height && width > 0;
       ++row, to.at += to.pitch, from.at += from.pitch) {
    const auto target = reinterpret_cast<uint64_t>(to.at);
    if (const Code code = CheckRange(call, target, width)) return code;
    if (const Code code = CheckRange(call, reinterpret_cast<uint64_t>(from.at), width)) return code;
    if (to.at == nullptr || from.at == nullptr)
      return Misuse(kInvalidValue, std::string(call) + ": a null pointer");
    std::memmove(to.at, from.at, width);
    if (gpu_.memory().Find(target)) gpu_.MarkContents(target, width, true);
  }
  return kSuccess;
}

Code VirtualDevice::Fill(const char* call, Rows to, uint32_t value, uint64_t value_bytes,
                         uint64_t width, uint64_t height) {
  for (uint64_t row = 0; row < height && width > 0; ++row, to.at += to.pitch) {
    const auto target = reinterpret_cast<uint64_t>(to.at);
    if (const Code code = CheckRange(call, target, width)) return code;
    if (!gpu_.memory().Find(target))
      return Misuse(kInvalidValue,
                    fmt::format("{}: {} is no device memory", call, static_cast<void*>(to.at)));
    if (value_bytes == 1) std::memset(to.at, static_cast<int>(value), width);
    for (uint64_t i = 0; value_bytes > 1 && i < width; i += value_bytes)
      std::memcpy(to.at + i, &value, value_bytes);
    gpu_.MarkContents(target, width, true);
  }
  return kSuccess;
}

Code VirtualDevice::Misuse(Code code, const std::string& what) {
  if (findings_.AddError(what)) Report();
  return code;
}

void VirtualDevice::End() {
  const std::lock_guard lock(mutex);
  if (applier_ != nullptr) applier_->Report();
  if (recorder_ != nullptr) {
    if (const std::string problem = recorder_->Finish(); !problem.empty())
      Misuse(kLaunchFailure, problem);
  }
  for (const auto& module : modules_) {
    if (!module->loaded_) continue;
    for (Hazard& leak : gpu_.Leaks(*module->loaded_)) {
      leak.kernel = Readable(leak.kernel);
      findings_.Add(std::move(leak));
    }
  }
  Report();
}

void VirtualDevice::Report() {
  if (order_.report.empty()) return;
  const int file = open(order_.report.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line = DumpJson(ToJson(findings_)) + "\n";
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace atunner::program
