#include "faces/cli/output/render.h"

#include <fmt/format.h>

namespace atunner::cli {

void PrintJson(const Json& json) { fmt::print("{}\n", DumpJson(json)); }

std::string Printable(const std::string& text) {
  constexpr unsigned char kDelete = 0x7f, kFirstPrintable = 0x20;
  constexpr unsigned char kLeadOfC1 = 0xc2, kFirstC1 = 0x80, kLastC1 = 0x9f;  // U+0080 to U+009F
  std::string escaped;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool c0 = (byte < kFirstPrintable && c != '\n' && c != '\t') || byte == kDelete;
    const bool c1 = before == kLeadOfC1 && byte >= kFirstC1 && byte <= kLastC1;
    if (c1) escaped.pop_back();
    escaped += c0 || c1 ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    before = byte;
  }
  return escaped;
}

namespace {

/// The kernel to beat and the libraries, a row each.
std::string BaselineRows(const Report& result) {
  std::string text;
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    text += fmt::format("{:<10} {:>14} {:>3}{}\n", baseline.name, ns ? FormatTime(*ns) : "-", "",
                        ns ? "   " + RatesOf(result, *ns) : baseline.note);
  }
  return text;
}

std::string WithoutWinner(const Report& result) {
  if (result.trials.empty()) return "no correct kernel was found: no trial was made\n";
  const Verdict& last = result.trials.back().verdict;
  return fmt::format("no correct kernel was found; the last of {} trials: {}, {}\n",
                     result.trials.size(), Name(last.kind), last.reason);
}

/// The winner against each baseline.
std::string ComparisonRows(const Report& result, double best) {
  std::string text;
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    if (baseline.comparison) {
      text += fmt::format("  against {}: {:.2f} times as fast [{:.2f}, {:.2f}], {} pairs\n",
                          baseline.name, baseline.comparison->ratio, baseline.comparison->low,
                          baseline.comparison->high, baseline.comparison->pairs);
    } else if (ns) {
      text += fmt::format("  against {}: {:.2f} times as fast ({})\n", baseline.name, *ns / best,
                          Name(result.evidence));
    }
  }
  return text;
}

std::string FrontText(const Report& result) {
  const auto front = FrontRowsOf(result);
  std::string text;
  if (!front.empty()) text += "  no other is better in every objective than one of:\n";
  for (const auto& [time, memory, energy, configuration] : front)
    text += fmt::format("    {:>10} {:>12} {:>12}   {}\n", time, memory, energy, configuration);
  return text;
}

}  // namespace

std::string RenderTable(const Report& result) {
  std::string text = fmt::format("\n{} on {} ({})\n{:<10} {:>14} {:>3}{}\n", result.spec.name,
                                 result.profile.name, Name(result.evidence), "kernel",
                                 std::string(Name(result.evidence)), "speed-up", "");
  text += BaselineRows(result);
  const auto best = result.best ? result.best->ObjectiveNs() : std::nullopt;
  if (!best) return text + WithoutWinner(result);
  text += fmt::format("{:<10} {:>14} {:>3}{}\n", "atunner", FormatTime(*best), "",
                      "   " + RatesOf(result, *best));
  text += ComparisonRows(result, *best);
  if (const std::string reservation = Reservation(result.best->verdict); !reservation.empty())
    text += "  " + reservation + "\n";
  text += FrontText(result);
  return text +
         fmt::format(
             "  configuration: {}\n  {} trials, {:.1f} s; judging {:.0f} % of the time; {}\n",
             result.best->candidate.Describe(result.space), result.trials.size(), result.seconds,
             result.seconds > 0 ? 100 * result.judge_seconds / result.seconds : 0.0,
             result.stop_reason);
}

}  // namespace atunner::cli
