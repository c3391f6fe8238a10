#include "faces/program/applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

Result<std::vector<Applier::Saved>> Applier::Save(const Loaded& loaded,
                                                  const ProgramLaunch& launch) const {
  std::vector<Saved> saved;
  const auto [low, high] = memory_.Bounds();
  uint64_t total = 0;
  const auto add = [&, low = low, high = high](std::string_view bytes, capture::Element element) {
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      const auto found = word >= low && word < high ? memory_.Find(word) : std::nullopt;
      if (!found || std::ranges::find(saved, found->base, &Saved::base) != saved.end()) continue;
      total += found->bytes;
      if (total > order_.compared_bytes) return;
      saved.push_back({found->base, std::string(found->bytes, '\0'), "", element});
      (void)memory_.Read(found->base, saved.back().before);
    }
  };
  const auto types = capture::PointedTypes(FullName(launch.kernel));
  const bool typed = types.size() == launch.args.size();
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const KernelArg& arg = launch.args[i];
    add({reinterpret_cast<const char*>(arg.data()), arg.size},
        typed ? types[i] : capture::Element::kUnknown);
  }
  for (const std::string& name : loaded.symbols) {
    const auto symbol = gpu_.FindSymbol(*launch.loaded, name);
    if (!symbol) continue;
    saved.push_back(
        {symbol->first, std::string(symbol->second, '\0'), "", capture::Element::kUnknown});
    (void)memory_.Read(symbol->first, saved.back().before);
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    const std::string bytes = saved[i].before;  // `saved` grows meanwhile
    add(bytes, capture::Element::kUnknown);
  }
  if (total > order_.compared_bytes)
    return Fail(ErrorCode::kUnavailable, "the memory that it may reach is too large to compare");
  return saved;
}

bool Applier::Judge(Match& match, const ProgramLaunch& launch, const LaunchOptions& options,
                    const std::vector<Saved>& memory) {
  for (const Saved& one : memory) VirtualMemory::Write(one.base, one.before);
  const Outcome outcome = LaunchTuned(match, launch, options);
  capture::Comparison worst;
  for (const Saved& one : memory) {
    std::string tuned(one.before.size(), '\0');
    (void)memory_.Read(one.base, tuned);
    const capture::Comparison compared = capture::Compare(
        {one.before, one.original, tuned}, one.element, match.loaded->replacement.tolerance);
    worst.equal &= compared.equal;
    worst.accepted &= compared.accepted;
    worst.error = std::max(worst.error, compared.error);
  }
  ReportOf(match).error = worst.error;
  const bool ran = outcome && outcome->completed();
  if (ran && worst.accepted) {
    match.accepted = true;
    ReportOf(match).verdict = worst.equal ? Verdict::kEqual : Verdict::kWithinTolerance;
    return true;
  }
  Refuse(match, Verdict::kDifferent,
         ran ? "its results differ from the original's"
             : "the tuned kernel does not run: " +
                   (outcome ? outcome->message : outcome.error().ToString()));
  return false;
}

Applier::Outcome Applier::Compare(Match& match, const ProgramLaunch& launch,
                                  const LaunchOptions& options,
                                  const std::function<Outcome()>& original) {
  auto memory = Save(*match.loaded, launch);
  Outcome outcome = original();
  if (!memory) Refuse(match, Verdict::kNotCompared, memory.error().what);
  if (!memory || !outcome || !outcome->completed()) return outcome;
  for (Saved& one : *memory) {
    one.original.resize(one.before.size());
    (void)memory_.Read(one.base, one.original);
  }
  if (Judge(match, launch, options, *memory)) {
    ++ReportOf(match).replaced;
  } else {
    for (const Saved& one : *memory) VirtualMemory::Write(one.base, one.original);
  }
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
