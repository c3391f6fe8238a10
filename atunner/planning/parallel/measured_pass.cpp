#include "atunner/planning/parallel/measured_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "atunner/model/json/json.h"

namespace atunner::planning {
namespace {

std::optional<double> Positive(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

Result<MeasuredPass> PassOf(const Json& json, const std::string& where) {
  if (!json.is_object()) return Invalid("must be an object", where);
  const auto samples = Positive(json, "samples"), forward = Positive(json, "forward_ms"),
             backward = Positive(json, "backward_ms"), update = Positive(json, "update_ms");
  if (!samples || !forward || !backward || !update)
    return Invalid("needs samples, forward_ms, backward_ms and update_ms above 0", where);
  MeasuredPass pass{.samples = *samples,
                    .forward_us = 1e3 * *forward,
                    .backward_us = 1e3 * *backward,
                    .update_us = 1e3 * *update};
  const auto blocks = json.find("blocks_ms");
  if (blocks == json.end()) return pass;
  if (!blocks->is_object()) return Invalid("must map names to times", where + ".blocks_ms");
  for (const auto& [name, value] : blocks->items()) {
    const auto ms = Positive(*blocks, name.c_str());
    if (!ms) return Invalid("must be a time above 0", where + ".blocks_ms." + name);
    pass.layers_us[name] = 1e3 * *ms;
  }
  return pass;
}

/// The value at `at` of the line through two points.
double Line(double at, const MeasuredPass& a, const MeasuredPass& b, double at_a, double at_b) {
  const double slope = (at_b - at_a) / (b.samples - a.samples);
  return std::max(at_a + slope * (at - a.samples), 0.1 * at_b * at / b.samples);
}

}  // namespace

Result<MeasuredPasses> ReadMeasuredPasses(std::string_view json) {
  ATUNNER_TRY(const Json document, ParseJson(json));
  const auto list = document.is_object() ? document.find("measured") : document.end();
  if (list == document.end() || !list->is_array() || list->empty())
    return Invalid("must have a list of measured passes", "measured");
  MeasuredPasses measured;
  auto& passes = measured.passes;
  for (size_t i = 0; i < list->size(); ++i) {
    ATUNNER_TRY(MeasuredPass pass, PassOf((*list)[i], fmt::format("measured[{}]", i)));
    passes.push_back(std::move(pass));
  }
  std::ranges::sort(passes, {}, &MeasuredPass::samples);
  const auto twice = std::ranges::adjacent_find(passes, {}, &MeasuredPass::samples);
  if (twice != passes.end())
    return Invalid(fmt::format("has two passes of {} samples", twice->samples), "measured");
  if (const auto host = document.find("host"); host != document.end()) {
    if (!host->is_object()) return Invalid("must be an object", "host");
    const auto us = [&](const char* key) { return 1e3 * Positive(*host, key).value_or(0); };
    measured.host = {us("pass_ms"), us("zero2_ms"), us("zero3_ms")};
  }
  return measured;
}

MeasuredPass PassAt(const std::vector<MeasuredPass>& passes, double samples) {
  if (passes.size() == 1) {
    MeasuredPass pass = passes.front();
    const double scale = samples / pass.samples;
    pass.samples = samples;
    pass.forward_us *= scale;
    pass.backward_us *= scale;
    for (auto& [name, us] : pass.layers_us) us *= scale;
    return pass;
  }
  size_t next = 1;
  while (next + 1 < passes.size() && passes[next].samples < samples) ++next;
  const MeasuredPass &a = passes[next - 1], &b = passes[next];
  MeasuredPass pass = b;
  pass.samples = samples;
  pass.forward_us = Line(samples, a, b, a.forward_us, b.forward_us);
  pass.backward_us = Line(samples, a, b, a.backward_us, b.backward_us);
  for (auto& [name, us] : pass.layers_us)
    if (const auto other = a.layers_us.find(name); other != a.layers_us.end())
      us = Line(samples, a, b, other->second, us);
  return pass;
}

}  // namespace atunner::planning
