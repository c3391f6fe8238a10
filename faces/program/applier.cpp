#include "faces/program/applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "atunner/base/demangle.h"
#include "atunner/base/digest.h"
#include "atunner/ptx/module.h"

namespace atunner::program {
namespace {

using capture::Verdict;

constexpr size_t kLargestImage = size_t{256} << 20;

capture::LaunchConfiguration ConfigurationOf(const LaunchShape& shape) {
  return {shape.grid,        shape.block,       shape.cluster, shape.dynamic_shared_bytes,
          shape.cooperative, shape.programmatic};
}

LaunchShape ShapeOf(const capture::LaunchConfiguration& given) {
  return {given.grid,         given.block,       given.cluster,
          given.shared_bytes, given.cooperative, given.programmatic};
}

std::vector<std::string> SymbolsOf(const std::string& ptx) {
  std::vector<std::string> names;
  const auto module = ptx::Parse(ptx);
  if (!module) return names;
  for (const auto* variables : {&module->globals(), &module->constants()}) {
    for (const ptx::Variable& variable : *variables) {
      if (variable.opaque.empty() && !variable.name.starts_with('$'))
        names.push_back(variable.name);
    }
  }
  return names;
}

}  // namespace

Applier::Applier(capture::ApplyOrder order, vgpu::VirtualGpu& gpu)
    : order_(std::move(order)), gpu_(gpu), memory_(gpu) {
  for (const std::string& folder : order_.folders) Load(folder);
}

void Applier::Load(const std::string& folder) {
  auto replacement = capture::ReadReplacement(folder);
  auto ptx = replacement ? ReadFile(Path(folder) / "kernel.ptx", kLargestImage)
                         : Result<std::string>(std::unexpected(replacement.error()));
  if (!ptx) {
    report_.errors.push_back(ptx.error().ToString());
    return;
  }
  std::vector<std::string> symbols = SymbolsOf(*ptx);
  Loaded& loaded = loaded_.emplace_back(*std::move(replacement), *std::move(ptx),
                                        std::move(symbols), nullptr);
  for (const capture::ReplacedLaunch& launch : loaded.replacement.launches) {
    capture::AppliedLaunch& reported = report_.launches.emplace_back();
    reported.kernel = loaded.replacement.kernel;
    reported.configuration = launch.from;
    matches_.push_back({&loaded, &launch, report_.launches.size() - 1});
  }
}

Applier::Match* Applier::Find(const ProgramLaunch& launch) {
  const capture::LaunchConfiguration given = ConfigurationOf(launch.shape);
  for (Match& match : matches_) {
    const capture::Replacement& replacement = match.loaded->replacement;
    if (replacement.kernel != launch.kernel || !(match.launch->from == given)) continue;
    if (!replacement.module.empty() && replacement.module != DigestOf(launch.ptx).ToHex()) {
      ReportOf(match).reason = "the program's module is not the one that was captured";
      continue;
    }
    return &match;
  }
  return nullptr;
}

void Applier::Refuse(Match& match, Verdict verdict, const std::string& reason) {
  match.refused = true;
  ReportOf(match).verdict = verdict;
  ReportOf(match).reason = reason;
}

Applier::Outcome Applier::LaunchTuned(const Match& match, const ProgramLaunch& launch,
                                      const LaunchOptions& options) {
  Loaded& loaded = *match.loaded;
  if (loaded.module == nullptr) {
    CompiledModule compiled;
    compiled.ptx = loaded.ptx;
    ATUNNER_TRY(loaded.module, gpu_.Load(compiled));
  }
  for (const std::string& name : loaded.symbols) {
    const auto from = gpu_.FindSymbol(*launch.loaded, name);
    const auto to = gpu_.FindSymbol(*loaded.module, name);
    if (from && to && from->second == to->second)
      ATUNNER_RETURN_IF_ERROR(gpu_.CopyWithin(to->first, from->first, to->second));
  }
  Outcome outcome = gpu_.Launch(*loaded.module, loaded.replacement.entry, ShapeOf(match.launch->to),
                                launch.args, options);
  for (const std::string& name : loaded.symbols) {
    const auto from = gpu_.FindSymbol(*loaded.module, name);
    const auto to = gpu_.FindSymbol(*launch.loaded, name);
    if (from && to && from->second == to->second)
      ATUNNER_RETURN_IF_ERROR(gpu_.CopyWithin(to->first, from->first, to->second));
  }
  return outcome;
}

Status Applier::Collect(capture::Reachable& reachable, const Loaded& loaded,
                        const ProgramLaunch& launch) const {
  const auto types = capture::PointedTypes(Demangled(launch.kernel));
  const bool typed = types.size() == launch.args.size();
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const KernelArg& arg = launch.args[i];
    reachable.AddParameter({reinterpret_cast<const char*>(arg.data()), arg.size},
                           typed ? types[i] : capture::Element::kUnknown);
  }
  for (const std::string& name : loaded.symbols) {
    if (const auto symbol = gpu_.FindSymbol(*launch.loaded, name))
      reachable.AddRange(symbol->first, symbol->second);
  }
  return reachable.Take(order_.compared_bytes);
}

Status Applier::Judge(Match& match, const ProgramLaunch& launch, const LaunchOptions& options,
                      capture::Reachable& reachable) {
  ATUNNER_TRY(const std::vector<std::string> expected, reachable.Contents());
  ATUNNER_RETURN_IF_ERROR(reachable.Put(reachable.before(), expected));
  const Outcome outcome = LaunchTuned(match, launch, options);
  ATUNNER_TRY(const std::vector<std::string> found, reachable.Contents());
  const capture::Comparison comparison = capture::CompareAll(reachable, expected, found,
                                                             match.loaded->replacement.tolerance);
  capture::AppliedLaunch& report = ReportOf(match);
  report.error = comparison.error;
  const bool ran = outcome && outcome->completed();
  match.accepted = ran && comparison.accepted;
  if (match.accepted) {
    report.verdict = comparison.equal ? Verdict::kEqual : Verdict::kWithinTolerance;
    ++report.replaced;
    return {};
  }
  Refuse(match, Verdict::kDifferent,
         ran ? "its results differ from the original's"
             : "the tuned kernel does not run: " +
                   (outcome ? outcome->message : outcome.error().ToString()));
  return reachable.Put(expected, found);
}

Applier::Outcome Applier::Compare(Match& match, const ProgramLaunch& launch,
                                  const LaunchOptions& options,
                                  const std::function<Outcome()>& original) {
  capture::Reachable reachable(memory_);
  Status status = Collect(reachable, *match.loaded, launch);
  Outcome outcome = original();
  if (status && outcome && outcome->completed()) status = Judge(match, launch, options, reachable);
  if (!status) Refuse(match, Verdict::kNotCompared, status.error().what);
  return outcome;
}

Applier::Outcome Applier::Launch(const ProgramLaunch& launch, const LaunchOptions& options,
                                 const std::function<Outcome()>& original) {
  Match* match = Find(launch);
  if (match == nullptr) return original();
  ++ReportOf(*match).launches;
  if (match->refused) return original();
  if (!match->accepted) return Compare(*match, launch, options, original);
  ++ReportOf(*match).replaced;
  return LaunchTuned(*match, launch, options);
}

void Applier::Report() const { capture::AppendReport(order_, report_); }

}  // namespace atunner::program
