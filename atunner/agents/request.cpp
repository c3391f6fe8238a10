#include "atunner/agents/request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/model/json/json_values.h"
#include "atunner/tune/objectives.h"

namespace atunner::agents {
namespace {

Json ToJson(const Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes) json[name] = JsonOfValue(value);
  return json;
}

Json ToJson(const jobs::TaskRequest& task) {
  Json json{{"operator", task.operator_name},
            {"shapes", task.shapes},
            {"dtype", Name(task.dtype)},
            {"attributes", ToJson(task.attributes)},
            {"accuracy", Name(task.accuracy)}};
  if (task.graph) json["graph"] = {{"name", task.graph->name}, {"text", task.graph->text}};
  json["dims"] = Json::array();
  for (const auto& [symbol, sizes] : task.dims)
    json["dims"].push_back(Json::array({symbol, sizes}));
  return json;
}

jobs::TaskRequest TaskFrom(const Json& json) {
  jobs::TaskRequest task;
  task.operator_name = json.at("operator").get<std::string>();
  task.shapes = json.at("shapes").get<std::vector<std::vector<int64_t>>>();
  task.dtype = ParseDType(json.at("dtype").get<std::string>()).value_or(DType::kFloat32);
  task.accuracy = ParseAccuracy(json.at("accuracy").get<std::string>())
                      .value_or(Accuracy::kDefault);
  for (const auto& [name, value] : json.at("attributes").items())
    task.attributes.emplace(name, ValueFrom(value));
  if (json.contains("graph"))
    task.graph = {json["graph"].at("text").get<std::string>(),
                  json["graph"].at("name").get<std::string>()};
  for (const Json& dim : json.at("dims"))
    task.dims.emplace_back(dim.at(0).get<std::string>(), dim.at(1).get<std::vector<int64_t>>());
  return task;
}

std::string NamesOf(const std::vector<Objective>& objectives) {
  std::string names;
  for (const Objective objective : objectives)
    names += (names.empty() ? "" : ",") + std::string(Name(objective));
  return names;
}

Json ToJson(const jobs::TuningOptions& options) {
  return {{"gpu", options.target.gpu},
          {"virtual", options.target.force_virtual},
          {"strategy", options.strategy},
          {"where", options.where},
          {"budget", atunner::ToJson(options.budget)},
          {"objectives", NamesOf(options.objectives)},
          {"all_devices", options.devices.all},
          {"devices", options.devices.numbers},
          {"seed", options.seed},
          {"out", options.out.string()},
          {"transfer", options.transfer},
          {"baselines", options.baselines},
          {"compile_threads", options.compile_threads},
          {"compile_timeout_seconds", options.compile_timeout_seconds},
          {"command", options.command}};
}

Result<jobs::TuningOptions> OptionsFrom(const Json& json) {
  jobs::TuningOptions options;
  options.target = {json.at("gpu").get<std::string>(), json.at("virtual").get<bool>()};
  options.strategy = json.at("strategy").get<std::string>();
  options.where = json.at("where").get<std::vector<std::string>>();
  ATUNNER_TRY(options.budget, FromJson<Budget>(json.at("budget")));
  ATUNNER_TRY(options.objectives, ParseObjectives(json.at("objectives").get<std::string>()));
  options.devices.all = json.at("all_devices").get<bool>();
  options.devices.numbers = json.at("devices").get<std::vector<int>>();
  options.seed = json.at("seed").get<uint64_t>();
  options.out = json.at("out").get<std::string>();
  options.transfer = json.at("transfer").get<bool>();
  options.baselines = json.at("baselines").get<bool>();
  options.compile_threads = json.at("compile_threads").get<int>();
  options.compile_timeout_seconds = json.at("compile_timeout_seconds").get<double>();
  options.command = json.at("command").get<std::string>();
  return options;
}

}  // namespace

Status CheckRequest(const RoundsRequest& request) {
  std::string wrong;
  const auto need = [&](bool right, const char* text) {
    if (!right) wrong += (wrong.empty() ? "" : "; ") + std::string(text);
  };
  need(request.rounds >= 1 && request.rounds <= 100, "rounds must be 1 to 100");
  need(request.ideas >= 1 && request.ideas <= 100, "ideas must be 1 to 100");
  need(request.implementations >= 1 && request.implementations <= 50,
       "implementations must be 1 to 50");
  need(request.keep > 0 && request.keep <= 1, "keep must be above 0 and at most 1");
  return wrong.empty() ? Status() : Status(Invalid(wrong, "request.rounds"));
}

Json ToJson(const RoundsRequest& request) {
  return {{"task", ToJson(request.optimize.task)},
          {"source", {{"file", request.source.file.string()}, {"kernel", request.source.kernel}}},
          {"tuning", ToJson(request.optimize.tuning)},
          {"rounds", request.rounds},
          {"ideas", request.ideas},
          {"implementations", request.implementations},
          {"keep", request.keep},
          {"pause_before", request.pause_before},
          {"llm",
           {{"model", request.llm.model},
            {"budget", request.llm.budget},
            {"prices", request.llm.prices},
            {"record", request.llm.record.string()},
            {"replay", request.llm.replay.string()}}}};
}

Result<RoundsRequest> RoundsRequestFromJson(const Json& json) {
  try {
    RoundsRequest request;
    request.optimize.task = TaskFrom(json.at("task"));
    ATUNNER_TRY(request.optimize.tuning, OptionsFrom(json.at("tuning")));
    if (json.contains("source"))
      request.source = {json["source"].at("file").get<std::string>(),
                        json["source"].at("kernel").get<std::string>()};
    request.rounds = json.at("rounds").get<int>();
    request.ideas = json.at("ideas").get<int>();
    request.implementations = json.at("implementations").get<int>();
    request.keep = json.at("keep").get<double>();
    request.pause_before = json.at("pause_before").get<std::vector<std::string>>();
    const Json& llm = json.at("llm");
    request.llm = {llm.at("model").get<std::string>(), llm.at("budget").get<std::string>(),
                   llm.at("prices").get<std::string>(), llm.at("record").get<std::string>(),
                   llm.at("replay").get<std::string>()};
    return request;
  } catch (const Json::exception& error) {
    return Invalid(std::string("the flow's request cannot be read: ") + error.what());
  }
}

}  // namespace atunner::agents
