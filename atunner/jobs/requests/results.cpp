#include "atunner/jobs/requests/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atunner::jobs {
namespace {

std::string ShapeText(const ArgSpec& arg) {
  std::string text;
  for (const Expr& extent : arg.shape) text += (text.empty() ? "" : ", ") + extent.text();
  return std::string(Name(arg.dtype)) + "[" + text + "]";
}

}  // namespace

bool TuningResult::AllFound() const { return std::ranges::all_of(runs, &RunResult::found); }

bool PredictResult::any() const {
  return std::ranges::any_of(kernels, [](const Item& item) {
    return item.predicted && std::ranges::any_of(item.predicted->predictions, [](const auto& one) {
             return one.estimate.has_value();
           });
  });
}

Json ToJson(const Prediction& prediction) {
  Json row{{"configuration", atunner::ToJson(prediction.configuration)}};
  if (prediction.error) {
    if (prediction.seconds > 0) row["seconds"] = prediction.seconds;
    row["error"] = prediction.error->ToString();
    return row;
  }
  row["seconds"] = prediction.seconds;
  row["estimate"] = atunner::ToJson(*prediction.estimate);
  if (!prediction.launches.empty()) row["launches"] = prediction.launches;
  return row;
}

Json ToJson(const PredictedKernel& kernel) {
  Json rows = Json::array();
  for (const Prediction& one : kernel.predictions) rows.push_back(ToJson(one));
  return {{"kernel", kernel.kernel},
          {"device", kernel.gpu},
          {"evidence", Name(Evidence::kPredicted)},
          {"calibration", kernel.calibration},
          {"seconds", kernel.seconds},
          {"predictions", std::move(rows)}};
}

Json ToJson(const BenchmarkRow& row) {
  Json shapes = Json::array();
  for (const std::vector<int64_t>& shape : row.shapes)
    shapes.push_back(fmt::format("{}", fmt::join(shape, ",")));
  const auto best = row.report.best ? row.report.best->ObjectiveNs() : std::nullopt;
  Json json{{"shape", std::move(shapes)},
            {"best_ns", best ? Json(*best) : Json()},
            {"floor_ns", row.report.floor_ns},
            {"baselines", Json::array()}};
  for (const Baseline& baseline : row.report.baselines)
    json["baselines"].push_back(atunner::ToJson(baseline));
  return json;
}

Json ToJson(const UnderstoodKernel& understood) {
  const UserKernel& kernel = understood.kernel;
  Json json{{"kernel", kernel.spec.name},
            {"entry", kernel.plan.steps.front().entry},
            {"notes", kernel.notes},
            {"space", atunner::ToJson(kernel.space)}};
  json["sizes"] = Json::object();
  for (const auto& [name, value] : kernel.spec.dims) json["sizes"][name] = value;
  json["arguments"] = Json::array();
  for (const ArgSpec& arg : kernel.spec.args)
    json["arguments"].push_back(
        {{"name", arg.name}, {"role", Name(arg.role)}, {"shape", ShapeText(arg)}});
  return json;
}

}  // namespace atunner::jobs
