// `profile`, `explain`, `analyze` and `diff`: what a kernel does, what bounds it, and what a
// rewriting changed.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/jobs/evidence/analyze.h"
#include "atunner/jobs/evidence/explain.h"
#include "atunner/jobs/evidence/measured.h"
#include "atunner/jobs/evidence/profile.h"
#include "atunner/jobs/evidence/rewrite_record.h"
#include "atunner/report/report.h"
#include "faces/cli/flags/kernel_flags.h"
#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/output/source_lines.h"
#include "faces/cli/verbs/rewrite_output.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

constexpr size_t kMostLines = 12;

struct EvidenceFlags {
  KernelFlags kernel;
  std::string ncu;
};

/// Beside a measured value stands what the virtual GPU counted.
void PrintCounters(const evidence::CounterSet& counters, const evidence::CounterSet& counted = {}) {
  fmt::print("  {:<34} {:>14}  {:<16} {}\n", "counter", "value", "unit", "origin");
  for (const auto& [counter, value] : counters) {
    const evidence::CounterInfo& info = evidence::InfoOf(counter);
    const auto other = evidence::ValueOf(counted, counter);
    const bool both = value.origin == evidence::Origin::kMeasured && other;
    fmt::print("  {:<34} {:>14}  {:<16} {}{}\n", info.name, CounterText(value.value), info.unit,
               evidence::Name(value.origin),
               both ? fmt::format(" (counted: {})", CounterText(*other)) : "");
  }
}

void PrintFindings(const std::vector<evidence::Finding>& findings) {
  const evidence::Finding& first = findings.front();
  fmt::print("bottleneck: {}{}\n  {}\n  evidence: {}\n", evidence::Name(first.bottleneck),
             first.gain ? fmt::format(" ({:.2f}x without it, by the time model)", *first.gain) : "",
             evidence::MeaningOf(first.bottleneck), first.evidence);
  for (size_t i = 1; i < findings.size(); ++i)
    fmt::print("also: {}{}: {}\n", evidence::Name(findings[i].bottleneck),
               findings[i].gain ? fmt::format(" ({:.2f}x)", *findings[i].gain) : "",
               findings[i].evidence);
}

void PrintRoofline(const evidence::Roofline& roofline) {
  fmt::print(
      "roofline: {:.2f} FLOP/byte (ridge at {:.1f}), at most {:.2f} of {:.2f} TFLOP/s that this "
      "intensity allows\n",
      roofline.intensity, roofline.ridge, roofline.flop_rate * 1e-12,
      roofline.attainable_rate * 1e-12);
}

/// The lines with the most instructions, in the order of the source.
void PrintLines(const jobs::KernelProfile& profile) {
  if (profile.lines.empty()) return;
  std::vector<std::pair<std::pair<std::string, uint32_t>, vgpu::LineCount>> lines(
      profile.lines.begin(), profile.lines.end());
  std::ranges::stable_sort(lines, std::greater{}, [](const auto& line) {
    return line.second.WarpInstructions() + line.second.memory.global_sectors;
  });
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  std::ranges::sort(lines, {}, [](const auto& line) { return line.first; });
  SourceLines source(profile.source_name, profile.source, profile.folder);
  fmt::print("lines (of {} blocks): warp instructions, sectors per global request\n",
             profile.line_blocks);
  for (const auto& [place, line] : lines) {
    const vgpu::OpCounts& m = line.memory;
    const std::string sectors = m.global_requests == 0
                                    ? ""
                                    : fmt::format("{:.1f}",
                                                  static_cast<double>(m.global_sectors) /
                                                      static_cast<double>(m.global_requests));
    fmt::print("  {:>5} {:>10} {:>6}  {}\n", place.second, line.WarpInstructions(), sectors,
               Printable(source.At(place.first, place.second)));
  }
}

void PrintHead(const jobs::KernelProfile& profile) {
  fmt::print("{} on {}: {} predicted{}\n", Printable(profile.kernel), profile.gpu,
             FormatTime(profile.time_ns),
             profile.configuration.empty() ? "" : "; configuration: " + profile.configuration);
  if (!profile.not_measured.empty())
    fmt::print("counters are counted, not measured: {}\n", Printable(profile.not_measured));
}

Result<int> PrintNcu(const std::string& file, const Common& common) {
  ATUNNER_TRY(const auto profiles, jobs::ReadNcu(file));
  if (common.json) {
    Json json = Json::array();
    for (const jobs::MeasuredProfile& profile : profiles) json.push_back(ToJson(profile));
    PrintJson({{"kernels", json}});
    return 0;
  }
  for (const jobs::MeasuredProfile& profile : profiles) {
    fmt::print("{}\n", Printable(profile.launch.kernel));
    PrintCounters(profile.launch.counters);
    PrintFindings(profile.findings);
    for (const evidence::NcuRule& rule : profile.launch.rules)
      fmt::print("ncu: {}: {}\n", Printable(rule.name), Printable(rule.text));
  }
  return 0;
}

Result<int> ProfileKernel(const EvidenceFlags& flags, const Context& context) {
  const Common& common = context.common;
  if (!flags.ncu.empty()) return PrintNcu(flags.ncu, common);
  jobs::ProfileRequest request;
  ATUNNER_TRY(request.kernel, flags.kernel.Request());
  Machine machine(common.store);
  Progress progress({.silent = common.quiet || common.json});
  ATUNNER_TRY(const jobs::KernelProfile profile,
              jobs::Profile(request, machine.services(), std::ref(progress)));
  if (common.json) {
    PrintJson(ToJson(profile));
    return 0;
  }
  PrintHead(profile);
  for (const jobs::LaunchProfile& launch : profile.launches) {
    fmt::print("\n{}: grid {} x {} x {}, block {} x {} x {}\n", Printable(launch.entry),
               launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x, launch.block.y,
               launch.block.z);
    PrintCounters(launch.counters, launch.counted);
    PrintRoofline(launch.roofline);
    PrintFindings(launch.findings);
  }
  PrintLines(profile);
  return 0;
}

void PrintIdea(const jobs::Idea& idea) {
  fmt::print("  {:<24} against {:<16} {}\n    {}\n", idea.rewrite, evidence::Name(idea.removes),
             !idea.obstacle.empty() ? "does not apply: " + Printable(idea.obstacle)
             : idea.expected_gain   ? fmt::format("expected {:.2f}x", *idea.expected_gain)
                                    : "gain unknown",
             idea.reason);
}

Result<int> ExplainKernel(const EvidenceFlags& flags, const Context& context) {
  const Common& common = context.common;
  if (!flags.ncu.empty()) return PrintNcu(flags.ncu, common);
  jobs::ProfileRequest request;
  request.lines = false;
  ATUNNER_TRY(request.kernel, flags.kernel.Request());
  Machine machine(common.store);
  Progress progress({.silent = common.quiet || common.json});
  ATUNNER_TRY(const jobs::Explanation explanation,
              jobs::Explain(request, machine.services(), std::ref(progress)));
  if (common.json) {
    PrintJson(ToJson(explanation));
    return 0;
  }
  PrintHead(explanation.profile);
  PrintFindings(explanation.profile.Longest().findings);
  fmt::print("ideas:{}\n", explanation.ideas.empty() ? " none" : "");
  for (const jobs::Idea& idea : explanation.ideas) PrintIdea(idea);
  return 0;
}

std::string Number(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "?";
}

void PrintAnalysis(const jobs::Analysis& analysis) {
  fmt::print("{} for {}: {} registers, {} bytes of shared memory, {} bytes spilled\n",
             Printable(analysis.facts.kernel), analysis.gpu, analysis.registers,
             analysis.shared_bytes, analysis.spill_bytes);
  for (const rewrites::LoopFact& loop : analysis.facts.loops)
    fmt::print("{:>5}: loop at depth {}, {} iterations: {}\n", loop.line, loop.depth,
               Number(loop.trips), Printable(loop.head));
  for (const rewrites::AccessFact& access : analysis.facts.accesses)
    fmt::print("{:>5}: {} {}[{}]: {}, {} elements to the next thread, {} to the next iteration\n",
               access.line, access.store ? "store" : "load", Printable(access.array),
               Printable(access.subscript), rewrites::PatternOf(access),
               Number(access.thread_stride), Number(access.loop_stride));
  const auto print = [](const char* what, const std::vector<int>& lines) {
    for (const int line : lines) fmt::print("{:>5}: {}\n", line, what);
  };
  print("barrier", analysis.facts.barriers);
  print("atomic update", analysis.facts.atomics);
  print("arithmetic in double", analysis.facts.doubles);
}

Result<int> AnalyzeKernel(const KernelFlags& flags, const Context& context) {
  ATUNNER_TRY(const jobs::KernelRequest request, flags.Request());
  const Common& common = context.common;
  Machine machine(common.store);
  Progress progress({.silent = common.quiet || common.json});
  ATUNNER_TRY(const jobs::Analysis analysis,
              jobs::Analyze(request, machine.services(), std::ref(progress)));
  if (common.json)
    PrintJson(ToJson(analysis));
  else
    PrintAnalysis(analysis);
  return 0;
}

Result<int> Diff(const std::string& folder, const Context& context) {
  ATUNNER_TRY(const jobs::RewriteRecord record, jobs::ReadRecord(folder));
  if (context.common.json)
    PrintJson(ToJson(record));
  else
    PrintDiff(record);
  return 0;
}

void AddFlags(CLI::App* verb, EvidenceFlags& flags) {
  AddKernel(verb, flags.kernel);
  verb->add_option("--ncu", flags.ncu, "what `ncu --csv` printed, instead of a kernel");
}

}  // namespace

void AddEvidence(VerbList& verbs) {
  const auto profile = std::make_shared<EvidenceFlags>();
  AddFlags(verbs.Add("profile", "counters of a kernel, its place under the roofline, its lines",
                     [profile](const Context& c) { return ProfileKernel(*profile, c); }),
           *profile);
  const auto explain = std::make_shared<EvidenceFlags>();
  AddFlags(verbs.Add("explain", "the bottleneck of a kernel, with evidence and ideas against it",
                     [explain](const Context& c) { return ExplainKernel(*explain, c); }),
           *explain);
  const auto analyze = std::make_shared<KernelFlags>();
  AddKernel(verbs.Add("analyze", "loops, strides and registers of a kernel, without running it",
                      [analyze](const Context& c) { return AnalyzeKernel(*analyze, c); }),
            *analyze);
  const auto folder = std::make_shared<std::string>();
  verbs
      .Add("diff", "what a rewriting changed in the user's file, idea by idea",
           [folder](const Context& c) { return Diff(*folder, c); })
      ->add_option("folder", *folder, "artifact of `hardware-optimize --rewrite`")
      ->required();
}

}  // namespace atunner::cli
