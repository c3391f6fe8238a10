// A timed device for tests: host memory, kernels as functions, a clock of its own, and a journal of every call.
// Its kernels of the judge compute what kernels/judge/judge.cu does, one thread after another.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"

namespace atunner {

/// One call in the order made.
struct Call {
  std::string what;  ///< "fill", "launch judge_fill", "enqueue k", "record", "copy out", …
  DeviceAddress at = 0;
  uint64_t bytes = 0;
  int byte = -1;
};

struct FakeModule : LoadedModule {
  int number = 0;    ///< 1, 2, …: each Load makes another
  int launches = 0;  ///< what a cheat may count
  std::vector<float> kept;
};

class FakeTimedDevice : public TimedDevice {
 public:
  using Kernel = std::function<LaunchOutcome(FakeModule&, std::span<const KernelArg>)>;

  FakeTimedDevice() {
    profile_.name = "Fake";
    profile_.full_name = "Fake GPU";
    profile_.cc_major = 8;
    profile_.sms = 4;
    profile_.l2_bytes = 8 << 20;
    profile_.dram_gbps = 1000;
    profile_.registers_per_sm = 65536;
    profile_.shared_per_block = 48 << 10;
    profile_.fp32_per_clk = 128;
    profile_.clock_ghz = 1;
  }

  // ---- what tests set and read ----
  std::map<std::string, Kernel> kernels;                                         ///< candidates by entry
  std::function<double(const std::string&)> cost = [](auto&) { return 100.0; };  ///< ns of a candidate's kernel
  std::vector<Call> journal;
  double now_ns = 0;
  int modules = 0;
  bool counts_energy = true;

  template <class T>
  static T As(const KernelArg& arg) {
    T value;
    std::memcpy(&value, arg.bytes.data(), sizeof value);
    return value;
  }
  template <class T>
  static T* Pointer(const KernelArg& arg) {
    return reinterpret_cast<T*>(As<uint64_t>(arg));
  }

  // ---- Device ----
  const DeviceProfile& profile() const override { return profile_; }
  Evidence evidence() const override { return Evidence::kMeasured; }
  std::string arch() const override { return "sm_80"; }
  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override { return std::make_unique<HostBuffer>(bytes); }
  Status CopyIn(DeviceAddress to, std::span<const std::byte> from) override {
    Note({"copy in", to, from.size()}, 1000);
    std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
    return {};
  }
  Status CopyOut(std::span<std::byte> to, DeviceAddress from) override {
    Note({"copy out", from, to.size()}, 1000);
    std::memcpy(to.data(), reinterpret_cast<void*>(from), to.size());
    return {};
  }
  Status CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) override {
    Note({"copy within", to, bytes}, 1000);
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return {};
  }
  Status Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) override {
    Note({"fill", to, bytes, byte}, 1000);
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return {};
  }
  Result<uint64_t> FreeBytes() override { return uint64_t{1} << 30; }
  Result<std::unique_ptr<LoadedModule>> Load(const CompiledModule&) override {
    auto module = std::make_unique<FakeModule>();
    module->number = ++modules;
    Note({"load"}, 0);
    return module;
  }
  Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule&, const std::string&) override {
    return std::pair(reinterpret_cast<DeviceAddress>(symbol_.data()), uint64_t{symbol_.size()});
  }
  Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry, const LaunchShape& shape,
                               std::span<const KernelArg> args, const LaunchOptions&) override {
    Note({"launch " + entry, args.empty() ? 0 : As<uint64_t>(args[0])}, 500);
    return Execute(module, entry, shape, args);
  }

  // ---- TimedDevice ----
  Result<std::unique_ptr<Event>> CreateEvent() override { return std::make_unique<HostEvent>(); }
  Status Record(Event& event) override {
    Note({"record"}, 0);
    static_cast<HostEvent&>(event).ns = now_ns;
    return {};
  }
  Result<double> ElapsedNs(Event& start, Event& end) override {
    return static_cast<HostEvent&>(end).ns - static_cast<HostEvent&>(start).ns;
  }
  LaunchOutcome Enqueue(LoadedModule& module, const std::string& entry, const LaunchShape& shape,
                        std::span<const KernelArg> args) override {
    Note({"enqueue " + entry, As<uint64_t>(args[0])}, kernels.contains(entry) ? cost(entry) : 500);
    return Execute(module, entry, shape, args);
  }
  LaunchOutcome Synchronize() override {
    Note({"synchronize"}, 0);
    return {};
  }
  Status EnqueueFill(DeviceAddress to, uint8_t byte, uint64_t bytes) override {
    Note({"enqueue fill", to, bytes, byte}, 1e6);
    return {};
  }
  Status ResetPersistingL2() override {
    Note({"reset persisting lines"}, 1000);
    return {};
  }
  void* stream() override { return nullptr; }
  ClockState Clocks() override { return {1500, 2600, 300, 50, "none"}; }
  /// 300 W, in steps of 20 ms.
  Result<double> EnergyJoules() override {
    if (!counts_energy) return Fail(ErrorCode::kUnsupported, "this GPU counts no energy");
    return 300 * 0.02 * std::floor(now_ns / 2e7);
  }
  std::string DriverVersion() const override { return "fake 1.0"; }
  Result<int> DriverOccupancy(LoadedModule&, const std::string&, const LaunchShape&) override { return 1; }

 private:
  /// Aligned and roomy; contents undefined on purpose.
  class HostBuffer : public Buffer {
   public:
    explicit HostBuffer(uint64_t bytes) : bytes_(bytes), memory_(bytes + 256, std::byte{0xcd}) {}
    DeviceAddress address() const override { return (reinterpret_cast<uint64_t>(memory_.data()) + 255) / 256 * 256; }
    uint64_t bytes() const override { return bytes_; }

   private:
    uint64_t bytes_;
    std::vector<std::byte> memory_;
  };
  struct HostEvent : Event {
    double ns = 0;
  };
  /// As judge.cu has it.
  struct Partial {
    double squared_difference, squared_reference, sum_reference, second_half, worst;
    uint64_t finite, unwritten, lost_nan, new_nonfinite, beyond, undetermined, first_bad;
  };

  void Note(Call call, double ns) {
    journal.push_back(std::move(call));
    now_ns += ns;
  }

  LaunchOutcome Execute(LoadedModule& loaded, const std::string& entry, const LaunchShape& shape,
                        std::span<const KernelArg> args) {
    if (entry == "judge_fill") return JudgeFill(args), LaunchOutcome{};
    if (entry == "judge_fingerprint") return JudgeFingerprint(args, shape.grid.x), LaunchOutcome{};
    if (entry == "judge_guards") return JudgeGuards(args, shape.grid.x), LaunchOutcome{};
    if (entry == "judge_mask") return JudgeMask(args), LaunchOutcome{};
    if (entry == "judge_widen") return JudgeWiden(args), LaunchOutcome{};
    if (entry == "judge_compare") return JudgeCompare(args, shape.grid.x), LaunchOutcome{};
    auto& module = static_cast<FakeModule&>(loaded);
    ++module.launches;
    const auto found = kernels.find(entry);
    if (found == kernels.end()) return {LaunchOutcome::Kind::kRefused, "there is no kernel " + entry, {}, 0};
    return found->second(module, args);
  }

  // Float32 tensors only: what the tests' task has.
  static void JudgeFill(std::span<const KernelArg> args) {
    const auto n = As<uint64_t>(args[2]);
    const auto seed = As<uint64_t>(args[5]);
    for (uint64_t i = 0; i < n; ++i) {
      Random random(Mix64(seed) + i);
      Pointer<float>(args[0])[i] =
          static_cast<float>(i == As<uint64_t>(args[9]) ? As<double>(args[10]) : random.Normal());
    }
  }
  static void JudgeFingerprint(std::span<const KernelArg> args, uint32_t grid) {
    const auto bytes = As<uint64_t>(args[1]);
    auto* partial = Pointer<uint64_t>(args[2]);
    std::fill(partial, partial + grid, 0);
    for (uint64_t i = 0; i < bytes; ++i) partial[i % grid] += Mix64(Pointer<uint8_t>(args[0])[i] + (i << 8));
  }
  static void JudgeGuards(std::span<const KernelArg> args, uint32_t zones) {
    const auto bytes = As<uint64_t>(args[1]);
    for (uint32_t zone = 0; zone < zones; ++zone) {
      const auto* at = reinterpret_cast<const uint8_t*>(As<std::array<uint64_t, 16>>(args[0])[zone]);
      const auto* changed = std::find_if(at, at + bytes, [&](uint8_t b) { return b != As<int32_t>(args[2]); });
      Pointer<uint64_t>(args[3])[zone] = changed == at + bytes ? ~uint64_t{0} : static_cast<uint64_t>(changed - at);
    }
  }
  static void JudgeMask(std::span<const KernelArg> args) {
    const auto n = As<uint64_t>(args[1]);
    for (uint64_t i = 0; i < n; ++i) Pointer<uint64_t>(args[0])[i] ^= Mix64(As<uint64_t>(args[2]) + i);
  }
  static void JudgeWiden(std::span<const KernelArg> args) {
    const auto n = As<uint64_t>(args[2]);
    for (uint64_t i = 0; i < n; ++i) Pointer<double>(args[3])[i] = static_cast<double>(Pointer<float>(args[0])[i]);
  }
  static void JudgeCompare(std::span<const KernelArg> args, uint32_t grid) {
    auto* partial = Pointer<Partial>(args[11]);  // no choices: 9 and 10 are theirs
    for (uint32_t i = 0; i < grid; ++i) partial[i] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ~uint64_t{0}};
    Partial& all = partial[0];
    const auto n = As<uint64_t>(args[3]);
    const auto key = As<uint64_t>(args[4]);
    const bool wide = As<int32_t>(args[1]) == 0;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t bits = Pointer<uint64_t>(args[2])[i] ^ (key ? Mix64(key + i) : 0);
      double reference;
      std::memcpy(&reference, &bits, sizeof bits);
      const double value = wide ? Pointer<double>(args[0])[i] : static_cast<double>(Pointer<float>(args[0])[i]);
      if (As<int32_t>(args[8]) && Pointer<uint32_t>(args[0])[i] == ~0u) {
        ++all.unwritten;
        continue;
      }
      if (std::isnan(reference)) {
        all.lost_nan += !std::isnan(value);
        continue;
      }
      const double difference = std::fabs(value - reference);
      all.squared_difference += difference * difference;
      all.squared_reference += reference * reference;
      all.sum_reference += reference;
      if (i >= n / 2) all.second_half += reference * reference;
      ++all.finite;
      all.worst = std::fmax(all.worst, difference / (std::fabs(reference) + As<double>(args[5])));
    }
  }

  DeviceProfile profile_;
  std::array<std::byte, 4096> symbol_{};
};

/// "Compiles" anything: a module that has every kernel asked for.
class FakeCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request, const std::stop_token& = {}) override {
    CompileOutcome outcome;
    outcome.module.emplace();
    outcome.module->ptx = request.source.text;
    for (const std::string& entry : request.entries) {
      KernelResources kernel;
      kernel.entry = kernel.mangled = entry;
      kernel.registers = 16;
      outcome.module->kernels.push_back(kernel);
    }
    return outcome;
  }
  std::string Version() const override { return "fake"; }
};

}  // namespace atunner
