#include "atunner/evidence/counted.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace atunner::evidence {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double Real(uint64_t count) { return static_cast<double>(count); }

double Ratio(uint64_t a, uint64_t b) { return b == 0 ? 0 : Real(a) / Real(b); }

double Used(const vgpu::Counts& counts, vgpu::Pipe pipe) {
  return Real(counts.pipe_uses[static_cast<size_t>(pipe)]);
}

double Share(const Estimate& estimate, std::string_view part) {
  return estimate.time_ns > 0 ? 100 * PartNs(estimate, part) / estimate.time_ns : 0;
}

double Waves(const vgpu::EstimateInput& in) {
  const double at_once = std::max(1, in.occupancy.blocks_per_sm) * in.profile->sms;
  return Real(in.shape.grid.Count()) / at_once;
}

double Scale(const vgpu::EstimateInput& in) {
  const double counted = in.blocks_counted > 0 ? in.blocks_counted : Real(in.blocks_executed);
  return Real(in.shape.grid.Count()) / std::max(1.0, counted);
}

}  // namespace

double PartNs(const Estimate& estimate, std::string_view part) {
  const auto found = std::ranges::find_if(estimate.parts, [&](const Estimate::Part& one) {
    std::string_view name = one.name;
    constexpr std::string_view kSms = "SMs: ";  // a part of the SMs' time
    if (name.starts_with(kSms)) name.remove_prefix(kSms.size());
    return name == part;
  });
  return found == estimate.parts.end() ? 0 : found->ns;
}

CounterSet CountersOf(const vgpu::EstimateInput& in, const Estimate& e) {
  const vgpu::Counts& c = in.counts;
  const double scale = Scale(in);
  CounterSet counters;
  const auto add = [&](Counter counter, double value) {
    if (value == value) counters[counter] = {value, Origin::kCounted};  // not kUnknown
  };
#define ATUNNER_COUNTER(id, name, unit, meaning, set, metric, counted) add(Counter::id, counted);
#include "atunner/evidence/counter.def"
#undef ATUNNER_COUNTER
  return counters;
}

}  // namespace atunner::evidence
