#include "atunner/model/trial/trial.h"

#include <cstdlib>

namespace atunner {
namespace {

std::optional<double> TimeOf(const std::optional<Measurement>& measurement,
                             const std::optional<Estimate>& estimate) {
  if (measurement) return measurement->median_ns;
  if (estimate) return estimate->time_ns;
  return std::nullopt;
}

Status ParsePart(std::string_view part, Budget& budget) {
  const std::string text(part);
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  std::string unit(end);
  std::erase(unit, ' ');
  if (end == text.c_str() || !(amount > 0) || amount > 1e12) {
    return Invalid("'" + text + "' is no budget", "request.budget",
                   "write a time (90s, 5m, 1h) or a number of trials (200)");
  }
  if (unit.empty() || unit == "trials" || unit == "trial") {
    if (amount != static_cast<double>(static_cast<int64_t>(amount)))
      return Invalid("'" + text + "' is not a whole number of trials", "request.budget");
    budget.trials = static_cast<int64_t>(amount);
    return {};
  }
  const double scale = unit == "s"                    ? 1
                       : unit == "ms"                 ? 1e-3
                       : unit == "m" || unit == "min" ? 60
                       : unit == "h"                  ? 3600
                                                      : 0;
  if (scale == 0)
    return Invalid("unknown unit '" + unit + "'", "request.budget", "use s, m, h or trials");
  budget.seconds = amount * scale;
  return {};
}

}  // namespace

std::string_view Name(Evidence evidence) {
  return evidence == Evidence::kMeasured ? "measured" : "predicted";
}

Result<Budget> Budget::Parse(std::string_view text) {
  Budget budget;
  while (true) {
    const size_t comma = text.find(',');
    ATUNNER_RETURN_IF_ERROR(ParsePart(text.substr(0, comma), budget));
    if (comma == std::string_view::npos) return budget;
    text.remove_prefix(comma + 1);
  }
}

std::string Budget::ToString() const {
  std::string text;
  if (trials) text += std::to_string(*trials) + " trials";
  if (seconds) text += (text.empty() ? "" : " or ") + atunner::ToString(Value(*seconds)) + " s";
  return text.empty() ? "unlimited" : text;
}

const Configuration& Trial::configuration() const {
  static const Configuration kNone;
  const Configuration* values = candidate.configuration();
  return values != nullptr ? *values : kNone;
}

std::optional<double> Trial::ObjectiveNs() const {
  return verdict.stands() ? TimeOf(measurement, estimate) : std::nullopt;
}

std::optional<double> Trial::EnergyJoules() const {
  if (!verdict.stands()) return std::nullopt;
  const double joules = measurement ? measurement->energy_joules
                        : estimate  ? estimate->energy_joules
                                    : 0;
  return joules > 0 ? std::optional(joules) : std::nullopt;
}

std::optional<double> Baseline::ObjectiveNs() const {
  return verdict.stands() ? TimeOf(measurement, estimate) : std::nullopt;
}

}  // namespace atunner
