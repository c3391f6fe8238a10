// `counts`: what each line of a kernel's source costs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/jobs/kernels/count_lines.h"
#include "faces/cli/flags/kernel_flags.h"
#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/output/source_lines.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

double Ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string Count(uint64_t n) { return n == 0 ? "" : std::to_string(n); }

std::string Cell(uint64_t denominator, double value) {
  return denominator == 0 ? "" : fmt::format("{:.1f}", value);
}

/// Names are those of Nsight Compute's source counters; instructions are PTX, not SASS.
Json LineJson(const std::pair<std::string, uint32_t>& place, const vgpu::LineCount& line,
              SourceLines& source) {
  Json classes = Json::object();
  for (size_t i = 0; i < line.warp_instructions.size(); ++i) {
    if (line.warp_instructions[i] != 0)
      classes[std::string(vgpu::Name(static_cast<vgpu::OpClass>(i)))] = line.warp_instructions[i];
  }
  const vgpu::OpCounts& m = line.memory;
  return {{"file", SourceLines::Short(place.first)},
          {"line", place.second},
          {"text", source.At(place.first, place.second)},
          {"inst_executed", line.WarpInstructions()},
          {"thread_inst_executed", line.ThreadInstructions()},
          {"inst_executed_by_class", classes},
          {"global_requests", m.global_requests},
          {"memory_l2_theoretical_sectors_global", m.global_sectors},
          {"global_bytes", m.global_bytes},
          {"shared_requests", m.shared_requests},
          {"memory_l1_wavefronts_shared", m.shared_wavefronts},
          {"local_requests", m.local_requests},
          {"atomic_lanes", m.atomics},
          {"branch_inst_executed", m.branches},
          {"divergent_branches", m.divergent_branches}};
}

Json TotalsJson(const vgpu::Counts& counts) {
  Json totals{{"inst_executed", counts.TotalWarpInstructions()},
              {"thread_inst_executed", counts.TotalThreadInstructions()}};
  for (const auto& [name, value] : counts.Figures()) totals[name] = value;
  return totals;
}

void PrintLines(const vgpu::LineCounts& lines, SourceLines& source) {
  constexpr const char* kRow = "{:<18} {:>12} {:>8} {:>9} {:>8} {:>9} {:>11} {:>9}  {}\n";
  const auto print = [&](const auto&... cells) { fmt::print(fmt::runtime(kRow), cells...); };
  print("line", "instructions", "threads", "global", "sectors/", "shared", "wavefronts/",
        "divergent", "source");
  print("", "of warps", "of each", "requests", "request", "requests", "request", "branches", "");
  for (const auto& [place, line] : lines) {
    const vgpu::OpCounts& m = line.memory;
    const std::string where = place.first.substr(place.first.rfind('/') + 1) + ":" +
                              std::to_string(place.second);
    print(where, line.WarpInstructions(),
          fmt::format("{:.1f}", Ratio(line.ThreadInstructions(), line.WarpInstructions())),
          Count(m.global_requests),
          Cell(m.global_requests, Ratio(m.global_sectors, m.global_requests)),
          Count(m.shared_requests),
          Cell(m.shared_requests, Ratio(m.shared_wavefronts, m.shared_requests)),
          m.branches == 0 ? ""
                          : fmt::format("{:.0f} %", 100 * Ratio(m.divergent_branches, m.branches)),
          source.At(place.first, place.second));
  }
}

Json CountsJson(const jobs::CountResult& counted, SourceLines& source) {
  Json json{{"kernel", counted.kernel},
            {"configuration", counted.configuration},
            {"target", counted.gpu},
            {"blocks", counted.blocks},
            {"totals", TotalsJson(counted.counts)},
            {"lines", Json::array()}};
  for (const auto& [place, line] : counted.lines)
    json["lines"].push_back(LineJson(place, line, source));
  return json;
}

Result<int> CountLines(const KernelFlags& flags, const Context& context) {
  jobs::CountRequest request;
  ATUNNER_TRY(request.kernel, flags.Request());
  const Common& common = context.common;
  Machine machine(common.store);
  Progress progress({.silent = common.quiet || common.json});
  ATUNNER_TRY(const jobs::CountResult counted,
              jobs::CountLines(request, machine.services(), std::ref(progress)));
  SourceLines source(counted.source_name, counted.source, counted.folder);
  if (common.json) {
    PrintJson(CountsJson(counted, source));
    return 0;
  }
  PrintLines(counted.lines, source);
  fmt::print("{} on {} blocks, compiled for {}; instructions are those of the PTX{}\n",
             counted.kernel, counted.blocks, counted.gpu,
             counted.configuration.empty() ? "" : "; configuration: " + counted.configuration);
  return 0;
}

}  // namespace

void AddCounts(VerbList& verbs) {
  const auto flags = std::make_shared<KernelFlags>();
  CLI::App* verb = verbs.Add(
      "counts",
      "what each line of a kernel costs: instructions, sectors, bank conflicts (virtual GPU)",
      [flags](const Context& c) { return CountLines(*flags, c); });
  AddKernel(verb, *flags);
}

}  // namespace atunner::cli
