#include "atunner/workflow/event.h"

#include <array>
#include <nlohmann/json.hpp>

namespace atunner::workflow {

std::string_view Name(FlowEvent::Kind kind) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "started",    "task_started", "task_finished", "task_known", "task_retried", "task_failed",
      "checkpoint", "question",     "custom",        "finished",   "cancelled"};
  return kNames[static_cast<size_t>(kind)];
}

Json ToJson(const FlowEvent& event) {
  Json json{{"event", Name(event.kind)}, {"flow", event.flow}, {"step", event.step}};
  if (!event.node.empty()) {
    json["node"] = event.node;
    json["task"] = event.task;
  }
  if (event.checkpoint > 0) json["checkpoint"] = event.checkpoint;
  if (!event.value.is_null()) json["value"] = event.value;
  if (!event.text.empty()) json["text"] = event.text;
  return json;
}

}  // namespace atunner::workflow
