#include "faces/serve/job_json.h"

#include <nlohmann/json.hpp>

namespace atunner::serve {
namespace {

Json ObjectOf(const std::string& text) {
  const auto json = ParseJson(text);
  return json && json->is_object() ? *json : Json::object();
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json FieldOf(const Json& json, const char* name) { return json.value(name, Json()); }

/// What was allowed and what was used.
Json BudgetJson(const Json& request, const Json& progress) {
  const Json limits = request.value("budget", Json::object());
  Json budget{{"trials", FieldOf(limits, "trials")}, {"seconds", FieldOf(limits, "seconds")}};
  if (budget["trials"].is_null() && budget["seconds"].is_null()) budget["trials"] = 60;
  budget["used_trials"] = progress.value("used_trials", 0);
  budget["used_seconds"] = progress.value("used_seconds", 0.0);
  return budget;
}

Json ArtifactJson(const queue::Job& job, const ServeContext& context) {
  if (!queue::IsFinal(job.state)) return {};
  const auto files = platform::FilesBelow(context.ArtifactsOf(job.id));
  if (files.empty()) return {};
  uint64_t bytes = 0;
  for (const platform::StoredFile& file : files) bytes += file.bytes;
  return {{"files", files.size()}, {"bytes", bytes}};
}

}  // namespace

Json JobJson(const queue::Job& job, const ServeContext& context) {
  const Json request = ObjectOf(job.payload);
  const Json progress = ObjectOf(job.result.empty() ? job.progress : job.result);
  const std::string self = "/api/v1/jobs/" + job.id;
  Json json{{"id", job.id},
            {"name", job.name},
            {"state", Name(job.state)},
            {"cancel_requested", job.cancel_requested},
            {"request", request},
            {"priority", job.priority},
            {"labels", Json(job.labels)},
            {"created", job.created},
            {"started", OrNull(job.started)},
            {"ended", OrNull(job.ended)},
            {"attempts", job.attempts},
            {"failures", job.failures},
            {"max_attempts", job.max_attempts},
            {"losses", job.losses},
            {"max_losses", job.max_losses},
            {"worker", OrNull(job.worker)}};
  for (const char* name : {"device", "evidence", "best", "baseline", "speedup"})
    json[name] = FieldOf(progress, name);
  json["budget"] = BudgetJson(request, progress);
  json["runs"] = progress.value("runs", Json::array());
  json["artifact"] = ArtifactJson(job, context);
  json["error"] = job.error.empty() ? Json() : ObjectOf(job.error);
  json["links"] = {
      {"self", self}, {"events", self + "/events"}, {"artifacts", self + "/artifacts"}};
  return json;
}

std::string JobText(const std::string& job, ServeContext& context) {
  const auto found = context.queue.Find(job);
  return DumpJson(found ? JobJson(*found, context) : Json{{"id", job}});
}

}  // namespace atunner::serve
