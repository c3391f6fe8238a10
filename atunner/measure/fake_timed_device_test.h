// A timed device for tests: host memory, kernels as C++ functions, a clock of its own, and a
// journal of all calls. Its judge kernels compute the same as kernels/judge/judge.cu, sequentially.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "kernels/judge/judge_arguments.h"

namespace atunner {

/// One call of the device.
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

  // ---- for the tests ----
  /// Candidates by entry
  std::map<std::string, Kernel> kernels;
  /// Ns of a candidate's kernel
  std::function<double(const std::string&)> cost = [](auto&) { return 100.0; };
  std::vector<Call> journal;
  double now_ns = 0;
  int modules = 0;
  bool counts_energy = true;

  template <class T>
  static T As(const KernelArg& arg) {
    T value;
    std::memcpy(&value, arg.data(), sizeof value);
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
  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override {
    return std::make_unique<HostBuffer>(bytes);
  }
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
  Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule&,
                                                        const std::string&) override {
    return std::pair(reinterpret_cast<DeviceAddress>(symbol_.data()), uint64_t{symbol_.size()});
  }
  Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry,
                               const LaunchShape& shape, std::span<const KernelArg> args,
                               const LaunchOptions&) override {
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
  Result<int> DriverOccupancy(LoadedModule&, const std::string&, const LaunchShape&) override {
    return 1;
  }

 private:
  /// Aligned memory, larger than asked for; its contents are undefined on purpose.
  class HostBuffer : public Buffer {
   public:
    explicit HostBuffer(uint64_t bytes) : bytes_(bytes), memory_(bytes + 256, std::byte{0xcd}) {}
    DeviceAddress address() const override {
      return (reinterpret_cast<uint64_t>(memory_.data()) + 255) / 256 * 256;
    }
    uint64_t bytes() const override { return bytes_; }

   private:
    uint64_t bytes_;
    std::vector<std::byte> memory_;
  };
  struct HostEvent : Event {
    double ns = 0;
  };
  void Note(Call call, double ns) {
    journal.push_back(std::move(call));
    now_ns += ns;
  }

  LaunchOutcome Execute(LoadedModule& loaded, const std::string& entry, const LaunchShape& shape,
                        std::span<const KernelArg> args) {
    if (entry.starts_with("judge_")) {
      RunOfJudge(entry, args, shape.grid.x);
      return {};
    }
    auto& module = static_cast<FakeModule&>(loaded);
    ++module.launches;
    const auto found = kernels.find(entry);
    if (found == kernels.end())
      return {LaunchOutcome::Kind::kRefused, "there is no kernel " + entry, {}, 0};
    return found->second(module, args);
  }

  /// Arguments of a judge kernel. The check fails if their types change in kernels/judge.
  template <class... T>
  static std::tuple<T...> Take(std::span<const KernelArg> args) {
    constexpr std::array<size_t, sizeof...(T)> kSizes = {sizeof(T)...};
    const std::string misfit = Misfit("of the judge", kSizes, args);
    if (!misfit.empty()) throw std::logic_error(misfit);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{As<T>(args[I])...};
    }(std::index_sequence_for<T...>());
  }

  // Only float32 tensors, which the tests' task has.
  static void RunOfJudge(const std::string& entry, std::span<const KernelArg> args, uint32_t grid) {
    if (entry == "judge_fill") return std::apply(JudgeFill, Take<judge::Fill>(args));
    if (entry == "judge_fingerprint") {
      const auto [data, bytes, partial] = Take<const uint8_t*, uint64_t, uint64_t*>(args);
      return JudgeFingerprint(data, bytes, partial, grid);
    }
    if (entry == "judge_guards") {
      const auto [zones, bytes, byte,
                  first] = Take<judge::GuardZones, uint64_t, int32_t, uint64_t*>(args);
      return JudgeGuards(zones, bytes, byte, first, grid);
    }
    if (entry == "judge_mask")
      return std::apply(JudgeMask, Take<uint64_t*, uint64_t, uint64_t>(args));
    if (entry == "judge_widen")
      return std::apply(
          JudgeWiden,
          Take<const float*, int32_t, uint64_t, double*, int32_t, judge::Poison, uint64_t*>(args));
    if (entry == "judge_confirm")
      return std::apply(JudgeConfirm,
                        Take<const float*, int32_t, uint64_t, double*, judge::Poison>(args));
    if (entry == "judge_nudge") return;  // the tests' kernels do not round
    if (entry == "judge_poison")
      return std::apply(JudgePoison, Take<uint32_t*, int32_t, uint64_t, judge::Poison>(args));
    if (entry == "judge_same") return std::apply(JudgeSame, Take<judge::TwoRuns, uint64_t*>(args));
    if (entry == "judge_compare")
      return JudgeCompare(std::get<0>(Take<judge::Comparison>(args)), grid);
    throw std::logic_error("this device does not know the kernel " + entry);
  }
  static void JudgeFill(const judge::Fill& of) {
    for (uint64_t i = 0; i < of.elements; ++i) {
      Random random(Mix64(of.seed) + i);
      reinterpret_cast<float*>(of.data)[i] = static_cast<float>(i == of.spike_at ? of.spike_value
                                                                                 : random.Normal());
    }
  }
  static void JudgeFingerprint(const uint8_t* data, uint64_t bytes, uint64_t* partial,
                               uint32_t grid) {
    std::fill(partial, partial + grid, 0);
    for (uint64_t i = 0; i < bytes; ++i) partial[i % grid] += Mix64(data[i] + (i << 8));
  }
  static void JudgeGuards(const judge::GuardZones& zones, uint64_t bytes, int32_t byte,
                          uint64_t* first, uint32_t count) {
    for (uint32_t zone = 0; zone < count; ++zone) {
      const auto* at = reinterpret_cast<const uint8_t*>(zones.at[zone]);
      const auto* changed = std::find_if(at, at + bytes, [&](uint8_t b) { return b != byte; });
      first[zone] = changed == at + bytes ? ~uint64_t{0} : static_cast<uint64_t>(changed - at);
    }
  }
  static void JudgeMask(uint64_t* reference, uint64_t n, uint64_t key) {
    for (uint64_t i = 0; i < n; ++i) reference[i] ^= Mix64(key + i);
  }
  static constexpr uint64_t kLeftUnwritten = 0x7ff8a70000000001ull;  // as in judge.cu
  static bool IsPoison(const float* data, uint64_t i, const judge::Poison& poison) {
    return reinterpret_cast<const uint32_t*>(data)[i] == PoisonBits(i, poison);
  }
  static void JudgeWiden(const float* data, int32_t, uint64_t n, double* wide, int32_t poisoned,
                         judge::Poison poison, uint64_t* suspects) {
    for (uint64_t i = 0; i < n; ++i) {
      const bool suspect = poisoned && IsPoison(data, i, poison);
      wide[i] = suspect ? std::bit_cast<double>(kLeftUnwritten) : static_cast<double>(data[i]);
      if (suspect) ++*suspects;
    }
  }
  static void JudgeConfirm(const float* data, int32_t, uint64_t n, double* wide,
                           judge::Poison poison) {
    for (uint64_t i = 0; i < n; ++i) {
      if (std::bit_cast<uint64_t>(wide[i]) == kLeftUnwritten && !IsPoison(data, i, poison))
        wide[i] = static_cast<double>(data[i]);
    }
  }
  static uint32_t PoisonBits(uint64_t i, const judge::Poison& poison) {
    const auto random = static_cast<uint32_t>(Mix64(Mix64(poison.key) + i));
    return (random & 0xbfffffffu) ^ (poison.flipped ? 0x80000000u : 0u);  // a finite number
  }
  static void JudgePoison(uint32_t* data, int32_t, uint64_t n, judge::Poison poison) {
    for (uint64_t i = 0; i < n; ++i) data[i] = PoisonBits(i, poison);
  }
  static void JudgeSame(const judge::TwoRuns& of, uint64_t* found) {
    const auto* first = reinterpret_cast<const uint32_t*>(of.first);
    const auto* second = reinterpret_cast<const uint32_t*>(of.second);
    for (uint64_t i = 0; i < of.elements; ++i) {
      if (of.poisoned && first[i] == PoisonBits(i, of.first_poison) &&
          second[i] == PoisonBits(i, of.second_poison)) {
        ++found[2];
        continue;
      }
      if (first[i] == second[i]) continue;
      ++found[0];
      found[1] = std::min(found[1], i);
    }
  }
  static void JudgeCompare(const judge::Comparison& of, uint32_t grid) {
    auto* partial = reinterpret_cast<judge::Partial*>(of.partial);
    std::fill(partial, partial + grid, judge::Partial{.first_bad = ~uint64_t{0}});
    judge::Partial& all = partial[0];
    for (uint64_t i = 0; i < of.elements; ++i) {
      const uint64_t bits = reinterpret_cast<const uint64_t*>(of.reference)[i] ^
                            (of.key ? Mix64(of.key + i) : 0);
      double reference;
      std::memcpy(&reference, &bits, sizeof bits);
      const auto* data = reinterpret_cast<const float*>(of.data);
      const double value = of.dtype == 0 ? reinterpret_cast<const double*>(of.data)[i]
                                         : static_cast<double>(data[i]);
      if (of.poisoned &&
          reinterpret_cast<const uint32_t*>(of.data)[i] == PoisonBits(i, of.poison)) {
        all.unwritten += std::bit_cast<uint64_t>(reference) != kLeftUnwritten;
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
      if (i >= of.elements / 2) all.squared_reference_second_half += reference * reference;
      ++all.finite;
      all.worst = std::fmax(all.worst, difference / (std::fabs(reference) + of.scale));
    }
  }

  DeviceProfile profile_;
  std::array<std::byte, 4096> symbol_{};
};

/// "Compiles" any source into a module with all requested kernels.
class FakeCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& = {}) override {
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
