#include "atunner/workflow/checkpoint.h"

namespace atunner::workflow {

Json ToJson(const Target& target) {
  Json json{{"node", target.node}};
  if (target.input) json["input"] = *target.input;
  return json;
}

Json ToJson(const std::vector<Target>& targets) {
  Json json = Json::array();
  for (const Target& target : targets) json.push_back(ToJson(target));
  return json;
}

Result<std::vector<Target>> TargetsFromJson(const Json& json) {
  if (!json.is_array()) return Invalid("tasks are no list");
  std::vector<Target> targets;
  for (const Json& one : json) {
    if (!one.is_object() || !one.contains("node") || !one["node"].is_string())
      return Invalid("a task without the name of its node");
    Target target{one["node"].get<std::string>()};
    if (one.contains("input")) target.input = one["input"];
    targets.push_back(std::move(target));
  }
  return targets;
}

Json ToJson(const NodeResult& result) {
  Json updates = Json::array();
  for (const Update& update : result.updates)
    updates.push_back(Json::array({update.channel, update.value}));
  Json json{{"updates", std::move(updates)}};
  if (result.go_to) json["go_to"] = ToJson(*result.go_to);
  return json;
}

Result<NodeResult> NodeResultFromJson(const Json& json) {
  if (!json.is_object() || !json.contains("updates") || !json["updates"].is_array())
    return Invalid("a result without updates");
  NodeResult result;
  for (const Json& pair : json["updates"]) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
      return Invalid("an update is no pair of channel and value");
    result.updates.push_back({pair[0].get<std::string>(), pair[1]});
  }
  if (json.contains("go_to")) {
    ATUNNER_TRY(result.go_to, TargetsFromJson(json["go_to"]));
  }
  return result;
}

Json ToJson(const FlowRecord& flow) {
  Json json{{"flow", flow.id},       {"graph", flow.graph},
            {"title", flow.title},   {"created", flow.created},
            {"status", flow.status}, {"request", flow.request},
            {"parent", flow.parent}, {"parent_checkpoint", flow.parent_number},
            {"error", flow.error}};
  return json;
}

Json ToJson(const Checkpoint& checkpoint) {
  return {{"number", checkpoint.number},
          {"parent", checkpoint.parent},
          {"step", checkpoint.step},
          {"origin", checkpoint.origin},
          {"created", checkpoint.created},
          {"next", ToJson(checkpoint.next)},
          {"deferred", ToJson(checkpoint.deferred)},
          {"arrivals", checkpoint.arrivals},
          {"state", checkpoint.state}};
}

}  // namespace atunner::workflow
