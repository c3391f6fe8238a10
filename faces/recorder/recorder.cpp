#include "faces/recorder/recorder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "atunner/capture/capture_writer.h"

namespace atunner::recorder {
namespace {

/// A kernel's first few launches are timed, and one in so many of all launches: two events
/// cost about as much as a launch. The interval is prime, so that it meets all kernels of a loop.
constexpr uint64_t kFirstTimed = 4, kTimedInterval = 31;

const void* PackedParameters(void** extra) {
  constexpr uintptr_t kBufferFollows = 1;  // CU_LAUNCH_PARAM_BUFFER_POINTER
  for (void** item = extra; item != nullptr && *item != nullptr; item += 2) {
    if (reinterpret_cast<uintptr_t>(*item) == kBufferFollows) return item[1];
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> ParametersOf(const ProgramKernel& kernel, const LaunchCall& call) {
  std::vector<std::string> values;
  const auto* packed = static_cast<const char*>(
      call.params == nullptr ? PackedParameters(call.extra) : nullptr);
  if (call.params == nullptr && packed == nullptr) return values;
  for (const ParameterPlace& place : kernel.parameters) {
    const char* from = packed != nullptr ? packed + place.offset
                                         : static_cast<const char*>(call.params[values.size()]);
    values.emplace_back(from, place.bytes);
  }
  return values;
}

bool ClaimCapture(const Path& folder) {
  const Path records = capture::RecordsOf(folder);
  const int file = open(records.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return true;  // Recording says why it cannot write
  flock(file, LOCK_EX);
  const std::string text = ReadFile(records).value_or("");
  const bool first = std::ranges::count(text, '\n') <= 1;
  capture::CaptureWriter writer(folder);
  if (first)
    (void)writer.Append(capture::GroupsRecord{});
  else
    (void)writer.Append(
        capture::CaptureNote{"another process of the program used the GPU, too, and was not "
                             "recorded"});
  close(file);
  return first;
}

size_t Recorder::ModuleNumber(const ProgramModule& module) {
  const auto [at, is_new] = module_number_.try_emplace(&module, 0);
  if (!is_new) return at->second;
  constexpr size_t kMostOfCubin = size_t{64} << 20;
  const bool large = module.cubin.size() > kMostOfCubin;
  if (large) recording_.Note("machine code of more than 64 MiB was left out");
  at->second = recording_.AddModule(module.ptx, large ? "" : module.cubin, module.arch);
  return at->second;
}

Recorder::Known& Recorder::KnownOf(const ProgramKernel& kernel) {
  const auto [at, is_new] = known_.try_emplace(kernel.number);
  Known& known = at->second;
  if (is_new) {
    const size_t module = ModuleNumber(*kernel.module);
    known.facts.kernel = recording_.AddKernel({module, kernel.name, kernel.readable});
  }
  return known;
}

void Recorder::FindSymbols(const ProgramKernel& kernel, Known& known) {
  known.has_symbols = true;
  known.facts.symbols.clear();
  for (const ModuleSymbol& symbol : kernel.module->symbols) {
    DevicePointer address = 0;
    size_t bytes = 0;
    if (code_.FindSymbol(*kernel.module, symbol.name, address, bytes))
      known.facts.symbols.push_back({symbol.name, address, bytes});
    else
      recording_.Note("the variable " + symbol.name + " was not found");
  }
}

void Recorder::FillFacts(const ProgramKernel& kernel, const LaunchCall& call, Known& known) {
  known.facts.obstacle = kernel.problem;
  known.facts.parameters = ParametersOf(kernel, call);
  if (!known.has_symbols) FindSymbols(kernel, known);
  for (const std::string& parameter : known.facts.parameters) {
    for (size_t at = 0; at + sizeof(uint64_t) <= parameter.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, parameter.data() + at, sizeof word);
      memory_.Discover(word);
    }
  }
}

void Recorder::CollectTimes() {
  timer_.Collect([this](const capture::LaunchFacts& facts, double seconds) {
    recording_.AddSeconds(facts, seconds);
  });
}

int Recorder::Launch(ProgramKernel& kernel, const LaunchCall& call, const OriginalLaunch& original,
                     bool quiet, Lock& lock) {
  if (!recording_.problem().empty()) {
    lock.unlock();
    return original();
  }
  Known& known = KnownOf(kernel);
  if (++known.launches == 1 && quiet) code_.LoadNow(call.function);
  known.facts.configuration = call.configuration;
  if (!quiet || !recording_.Wants(known.facts)) {
    recording_.Count(known.facts);
    return LaunchCounted(known, call, original, quiet, lock);
  }
  FillFacts(kernel, call, known);
  memory_.OnLaunch();
  if (recording_.Begin(known.facts, memory_)) return LaunchRecorded(known, call, original);
  return LaunchCounted(known, call, original, quiet, lock);
}

int Recorder::LaunchRecorded(Known& known, const LaunchCall& call, const OriginalLaunch& original) {
  (void)memory_.Wait();  // an error comes again with the next call
  timer_.Occupy(call.stream);
  const auto pair = timer_.Begin(call.stream);
  const int code = original();
  if (pair) timer_.End(*pair, call.stream, nullptr);
  memory_.OnLaunch();
  if (code != cuda::kSuccess) {
    recording_.Cancel();
    return code;
  }
  const bool ran = memory_.Wait().has_value();
  const double seconds = pair ? timer_.Take(*pair) : 0;
  if (!ran) {
    recording_.Cancel();
    recording_.Note("a launch failed on the GPU");
    return code;
  }
  if (seconds > 0) recording_.AddSeconds(known.facts, seconds);
  recording_.End(memory_, std::nullopt, seconds, Evidence::kMeasured);
  memory_.ForgetDiscovered();
  return code;
}

int Recorder::LaunchCounted(Known& known, const LaunchCall& call, const OriginalLaunch& original,
                            bool quiet, Lock& lock) {
  const bool timed = quiet && !call.configuration.programmatic &&
                     (known.launches <= kFirstTimed || ++launches_ % kTimedInterval == 0);
  if (!timed) {
    lock.unlock();
    return original();
  }
  CollectTimes();
  timer_.Occupy(call.stream);
  const auto pair = timer_.Begin(call.stream);
  const capture::LaunchFacts facts{.kernel = known.facts.kernel,
                                   .configuration = call.configuration};
  lock.unlock();
  const int code = original();
  lock.lock();
  if (pair) timer_.End(*pair, call.stream, code == cuda::kSuccess ? &facts : nullptr);
  if (pair && code != cuda::kSuccess) (void)timer_.Take(*pair);
  return code;
}

bool Recorder::Wants(const ProgramGraph& graph) {
  return std::ranges::any_of(graph.steps(), [&](const GraphStep& step) {
    const auto* one = std::get_if<KernelStep>(&step.work);
    return one != nullptr && recording_.Wants({.kernel = KnownOf(*one->kernel).facts.kernel,
                                               .configuration = one->configuration});
  });
}

void Recorder::CountGraph(const ProgramGraph& graph, bool wanted) {
  for (const GraphStep& step : graph.steps()) {
    if (const auto* one = std::get_if<KernelStep>(&step.work))
      recording_.Count(
          {.kernel = KnownOf(*one->kernel).facts.kernel, .configuration = one->configuration});
  }
  const std::string why = graph.obstacle().empty() ? "a graph was being recorded elsewhere"
                                                   : graph.obstacle();
  if (wanted && graphs_noted_.insert(why).second)
    recording_.Note("launches of a graph were counted; their memory was not recorded: " + why);
}

void Recorder::OnReset() {
  timer_.Forget();
  for (auto& [number, known] : known_) known.has_symbols = false;
}

void Recorder::Finish() {
  CollectTimes();
  recording_.Finish();
}

}  // namespace atunner::recorder
