#include "faces/recorder/replacer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "atunner/base/files.h"

namespace atunner::recorder {
namespace {

constexpr size_t kMostOfImage = size_t{256} << 20;
constexpr uint32_t kSharedWithoutOptIn = 48 << 10;
constexpr uint64_t kPortableCluster = 8;
constexpr const char* kNotComparable =
    "it was launched while a graph was recorded, and cannot be compared then";

/// The attributes of a launch with this configuration, and the others that the program gave.
std::vector<cuda::LaunchAttribute> AttributesOf(const capture::LaunchConfiguration& to,
                                                const LaunchConfig* given) {
  std::vector<cuda::LaunchAttribute> attributes;
  const unsigned count = given != nullptr ? given->attribute_count : 0;
  for (unsigned i = 0; i < count; ++i) {
    const int id = given->attributes[i].id;
    if (id != cuda::kLaunchAttributeClusterDimension && id != cuda::kLaunchAttributeCooperative &&
        id != cuda::kLaunchAttributeProgrammatic)
      attributes.push_back(given->attributes[i]);
  }
  cuda::LaunchAttributes own(to.cooperative, to.programmatic);
  if (to.cluster.Count() > 1) own.SetCluster(to.cluster.x, to.cluster.y, to.cluster.z);
  attributes.insert(attributes.end(), own.list.begin(), own.list.begin() + own.count);
  return attributes;
}

/// "sm_90a" → 90.
int ArchOf(const std::string& name) {
  const size_t digits = name.find_first_of("0123456789");
  return digits == std::string::npos ? 0 : std::atoi(name.c_str() + digits);
}

bool IsCubin(const std::string& image) {
  return image.starts_with(
      "\x7f"
      "ELF");
}

}  // namespace

Replacer::Replacer(const Driver& driver, ProgramCode& code, DeviceMemory& memory, ApplyOrder order)
    : driver_(driver), code_(code), memory_(memory), order_(std::move(order)) {
  for (const std::string& folder : order_.folders) Load(folder);
}

void Replacer::Load(const std::string& folder) {
  auto replacement = capture::ReadReplacement(folder);
  if (!replacement) {
    report_.errors.push_back(replacement.error().ToString());
    return;
  }
  auto image = ReadFile(Path(folder) / replacement->image, kMostOfImage);
  if (!image) {
    report_.errors.push_back(image.error().ToString());
    return;
  }
  loaded_.push_back({*std::move(replacement), *std::move(image), report_.launches.size()});
  for (const capture::ReplacedLaunch& launch : loaded_.back().replacement.launches)
    report_.launches.push_back({loaded_.back().replacement.kernel, launch.from});
}

std::string Replacer::Unfit(const Loaded& loaded, const ProgramKernel& kernel) const {
  const capture::Replacement& replacement = loaded.replacement;
  if (!replacement.module.empty() && replacement.module != kernel.module->digest)
    return "the program has other device code than the one that was captured";
  const int arch = ArchOf(replacement.arch), device = code_.arch();
  if (IsCubin(loaded.image) && arch != device)
    return fmt::format("the tuned kernel is for {}, the device is sm_{}", replacement.arch, device);
  if (arch > device)
    return fmt::format("the tuned kernel needs {}, the device is sm_{}", replacement.arch, device);
  return "";
}

std::vector<Replacer::Match>& Replacer::MatchesOf(const ProgramKernel& kernel) {
  const auto [at, is_new] = matches_.try_emplace(kernel.number);
  if (!is_new) return at->second;
  for (const Loaded& loaded : loaded_) {
    if (loaded.replacement.kernel != kernel.name) continue;
    const std::string unfit = Unfit(loaded, kernel);
    for (size_t i = 0; i < loaded.replacement.launches.size(); ++i) {
      Match& match = at->second.emplace_back();
      match.loaded = &loaded;
      match.launch = &loaded.replacement.launches[i];
      match.report = loaded.first_report + i;
      if (!unfit.empty()) Refuse(match, Verdict::kNotCompared, unfit);
    }
  }
  return at->second;
}

Replacer::Match* Replacer::Find(const ProgramKernel& kernel,
                                const capture::LaunchConfiguration& configuration) {
  std::vector<Match>& matches = MatchesOf(kernel);
  const auto found = std::ranges::find_if(
      matches, [&](const Match& match) { return match.launch->from == configuration; });
  return found == matches.end() ? nullptr : &*found;
}

void Replacer::Refuse(Match& match, Verdict verdict, const std::string& reason) {
  match.refused = true;
  match.accepted = false;
  ReportOf(match).verdict = verdict;
  ReportOf(match).reason = reason;
}

std::vector<SymbolPair> Replacer::SymbolsOf(const ProgramKernel& kernel, Module tuned) const {
  std::vector<SymbolPair> pairs;
  for (const ModuleSymbol& symbol : kernel.symbols) {
    SymbolPair pair{.constant = symbol.constant};
    size_t bytes = 0;
    if (driver_.cuModuleGetGlobal_v2(&pair.tuned, &bytes, tuned, symbol.name.c_str()) == 0 &&
        code_.FindSymbol(*kernel.module, symbol.name, pair.program, pair.bytes) &&
        bytes == pair.bytes)
      pairs.push_back(pair);
  }
  return pairs;
}

Result<TunedKernel> Replacer::LoadTuned(const Match& match, const ProgramKernel& kernel) {
  const auto failed = [](std::string_view call, int code) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the tuned kernel cannot be loaded: {} failed with error {} of CUDA",
                            call, code));
  };
  if (driver_.cuLaunchKernelEx == nullptr)
    return Fail(ErrorCode::kUnsupported, "the driver is older than CUDA 11.8");
  TunedKernel tuned;
  Module module = nullptr;
  if (const int code = driver_.cuModuleLoadData(&module, match.loaded->image.c_str()))
    return failed("cuModuleLoadData", code);
  if (const int code = driver_.cuModuleGetFunction(&tuned.function, module,
                                                   match.loaded->replacement.entry.c_str()))
    return failed("cuModuleGetFunction", code);
  const capture::LaunchConfiguration& to = match.launch->to;
  if (to.shared_bytes > kSharedWithoutOptIn)
    driver_.cuFuncSetAttribute(tuned.function, cuda::kFuncMaxDynamicShared,
                               static_cast<int>(to.shared_bytes));
  if (to.cluster.Count() > kPortableCluster)
    driver_.cuFuncSetAttribute(tuned.function, cuda::kFuncNonPortableCluster, 1);
  tuned.symbols = SymbolsOf(kernel, module);
  code_.AddFunction(tuned.function, nullptr, "a tuned kernel");  // graphs may tell it
  return tuned;
}

Result<const TunedKernel*> Replacer::TunedOf(Match& match, const ProgramKernel& kernel) {
  Context context = nullptr;
  driver_.cuCtxGetCurrent(&context);
  const auto known = match.tuned.find(context);
  if (known != match.tuned.end()) return &known->second;
  ATUNNER_TRY(TunedKernel tuned, LoadTuned(match, kernel));
  return &(match.tuned[context] = std::move(tuned));
}

int Replacer::LaunchTuned(const Match& match, const TunedKernel& tuned,
                          const LaunchCall& call) const {
  const capture::LaunchConfiguration& to = match.launch->to;
  std::vector<cuda::LaunchAttribute> attributes = AttributesOf(to, call.config);
  const LaunchConfig config{to.grid.x,         to.grid.y,
                            to.grid.z,         to.block.x,
                            to.block.y,        to.block.z,
                            to.shared_bytes,   call.stream,
                            attributes.data(), static_cast<unsigned>(attributes.size())};
  for (const SymbolPair& symbol : tuned.symbols) {
    if (const int code = driver_.cuMemcpyDtoDAsync_v2(symbol.tuned, symbol.program, symbol.bytes,
                                                      call.stream))
      return code;
  }
  if (const int code = driver_.cuLaunchKernelEx(&config, tuned.function, call.params, call.extra))
    return code;
  for (const SymbolPair& symbol : tuned.symbols) {
    if (symbol.constant) continue;
    if (const int code = driver_.cuMemcpyDtoDAsync_v2(symbol.program, symbol.tuned, symbol.bytes,
                                                      call.stream))
      return code;
  }
  return cuda::kSuccess;
}

Status Replacer::Collect(Reachable& reachable, const ProgramKernel& kernel, const LaunchCall& call,
                         const TunedKernel& tuned) {
  const std::vector<Element> types = capture::PointedTypes(kernel.readable);
  const std::vector<std::string> parameters = ParametersOf(kernel, call);
  const bool typed = types.size() == parameters.size();
  for (size_t i = 0; i < parameters.size(); ++i)
    reachable.AddParameter(parameters[i], typed ? types[i] : Element::kUnknown);
  for (const SymbolPair& symbol : tuned.symbols) reachable.AddRange(symbol.program, symbol.bytes);
  const Status taken = reachable.Take(order_.compared_bytes);
  memory_.ForgetDiscovered();
  return taken;
}

Status Replacer::Judge(Match& match, const LaunchCall& call, const TunedKernel& tuned,
                       Reachable& reachable) {
  ATUNNER_TRY(const std::vector<std::string> expected, reachable.Contents());
  ATUNNER_RETURN_IF_ERROR(reachable.Put(reachable.before(), expected));
  const int code = LaunchTuned(match, tuned, call);
  memory_.OnLaunch();
  ATUNNER_TRY(const std::vector<std::string> found, reachable.Contents());
  const Comparison comparison = CompareAll(reachable, expected, found,
                                           match.loaded->replacement.tolerance);
  AppliedLaunch& report = ReportOf(match);
  report.error = comparison.error;
  match.accepted = code == cuda::kSuccess && comparison.accepted;
  if (match.accepted) {
    report.verdict = comparison.equal ? Verdict::kEqual : Verdict::kWithinTolerance;
    ++report.replaced;
    return {};
  }
  Refuse(match, Verdict::kDifferent,
         code == cuda::kSuccess
             ? "its results differ from the original's"
             : fmt::format("the tuned kernel cannot be launched: error {} of CUDA", code));
  return reachable.Put(expected, found);
}

int Replacer::Compare(Match& match, const ProgramKernel& kernel, const LaunchCall& call,
                      const OriginalLaunch& original) {
  memory_.OnLaunch();
  const auto tuned = TunedOf(match, kernel);
  Reachable reachable(memory_);
  Status status = tuned ? Collect(reachable, kernel, call, **tuned)
                        : Status(std::unexpected(tuned.error()));
  const int code = original();
  memory_.OnLaunch();
  if (status && code == cuda::kSuccess) status = Judge(match, call, **tuned, reachable);
  if (!status) Refuse(match, Verdict::kNotCompared, status.error().ToString());
  Report();
  return code;
}

int Replacer::Launch(ProgramKernel& kernel, const LaunchCall& call, const OriginalLaunch& original,
                     bool quiet, Lock& lock) {
  Match* match = Find(kernel, call.configuration);
  if (match == nullptr || match->refused) {
    if (match != nullptr) ++ReportOf(*match).launches;
    lock.unlock();
    return original();
  }
  AppliedLaunch& report = ReportOf(*match);
  ++report.launches;
  if (!match->accepted && quiet) return Compare(*match, kernel, call, original);
  if (!match->accepted) {
    report.reason = kNotComparable;
    lock.unlock();
    return original();
  }
  const auto tuned = TunedOf(*match, kernel);
  if (!tuned) {
    Refuse(*match, report.verdict, tuned.error().ToString());
    lock.unlock();
    return original();
  }
  report.reason.clear();
  ++report.replaced;
  const TunedKernel& kept = **tuned;  // stays as long as its context
  lock.unlock();
  return LaunchTuned(*match, kept, call);
}

bool Replacer::Wants(const ProgramGraph& graph) {
  return std::ranges::any_of(graph.steps(), [&](const GraphStep& step) {
    const auto* one = std::get_if<KernelStep>(&step.work);
    const Match* match = one != nullptr ? Find(*one->kernel, one->configuration) : nullptr;
    return match != nullptr && !match->accepted && !match->refused;
  });
}

Replaced Replacer::ReplacedBy(const KernelStep& step) {
  Match* match = Find(*step.kernel, step.configuration);
  if (match == nullptr || !match->accepted) return {};
  const auto tuned = TunedOf(*match, *step.kernel);
  if (!tuned) return {};
  return {*tuned, match->launch->to};
}

void Replacer::CountGraph(const ProgramGraph& graph, bool replaced,
                          const TunedGraph::Choose& choose) {
  for (const GraphStep& step : graph.steps()) {
    const auto* one = std::get_if<KernelStep>(&step.work);
    const Match* match = one != nullptr ? Find(*one->kernel, one->configuration) : nullptr;
    if (match == nullptr) continue;
    AppliedLaunch& report = ReportOf(*match);
    const bool by_tuned = replaced && choose(*one).tuned != nullptr;
    if (by_tuned || match->refused) ++report.launches;
    if (by_tuned) ++report.replaced;
    if (by_tuned || match->refused) continue;
    ++report.in_graphs;
    report.reason = !graph.obstacle().empty() ? graph.obstacle()
                    : match->accepted ? "it may write variables while other nodes of its graph run"
                                      : kNotComparable;
  }
}

int Replacer::LaunchGraph(ProgramGraph& graph, TunedGraph& tuned, Stream stream,
                          const OriginalLaunch& original, Lock& lock) {
  // Kernels that run at the same time would overwrite each other's copies of variables.
  const auto choose = [&](const KernelStep& step) -> Replaced {
    const Replaced by = ReplacedBy(step);
    const bool writes = by.tuned != nullptr &&
                        std::ranges::any_of(by.tuned->symbols, [](const SymbolPair& symbol) {
                          return !symbol.constant;
                        });
    return writes && !graph.in_sequence() ? Replaced{} : by;
  };
  const bool any = std::ranges::any_of(graph.steps(), [&](const GraphStep& step) {
    const auto* one = std::get_if<KernelStep>(&step.work);
    return one != nullptr && choose(*one).tuned != nullptr;
  });
  const bool may = any && graph.obstacle().empty();
  if (may && !tuned.Prepare(graph, choose))
    graph.AddObstacle("CUDA does not take the tuned kernel into its graph");
  const bool replaced = may && graph.obstacle().empty();
  CountGraph(graph, replaced, choose);
  lock.unlock();
  return replaced ? driver_.cuGraphLaunch(tuned.exec(), stream) : original();
}

void Replacer::OnReset() {
  for (auto& [number, matches] : matches_) {
    for (Match& match : matches) match.tuned.clear();
  }
}

void Replacer::Report() const { capture::AppendReport(order_, report_); }

}  // namespace atunner::recorder
