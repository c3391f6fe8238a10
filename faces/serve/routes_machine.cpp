// What the server is and has: health, metrics, status, devices, operators, workers.
#include <algorithm>
#include <optional>

#include "atunner/base/clock.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/operators/operator.h"
#include "embed/openapi.h"
#include "faces/serve/announcements.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

http::Response Text(const std::string& type, std::string text) {
  http::Response response;
  response.headers.Set("Content-Type", type);
  response.body = std::move(text);
  return response;
}

http::Response Health(Call&) { return Text("text/plain; charset=utf-8", "ok\n"); }

http::Response Ready(Call& call) {
  if (call.context.draining) return Problem(503, "the server is ending", call.request_id);
  if (!call.context.queue.Counts() || !call.context.pages.Runs({.limit = 1}))
    return Problem(503, "the queue or the store cannot be read", call.request_id);
  return Health(call);
}

http::Response GetMetrics(Call& call) {
  ServeContext& context = call.context;
  std::string text = context.metrics.Text();
  std::map<std::string, double> states;
  if (const auto counts = context.queue.Counts()) {
    for (const auto& [state, count] : *counts)
      states[Label("state", std::string(Name(state)))] = static_cast<double>(count);
  }
  text += Metrics::Gauge("atunner_jobs", "Jobs by state.", states);
  text += Metrics::Gauge("atunner_workers", "Workers seen during the last minute.",
                         {{"", static_cast<double>(context.workers.count())}});
  text += Metrics::Gauge("atunner_event_streams", "Open streams of events.",
                         {{"", static_cast<double>(context.hub->subscribers())}});
  text += Metrics::Gauge("atunner_uptime_seconds", "Seconds since the server began.",
                         {{"", context.services.clock.Now() - context.begin}});
  if (const Announcements* one = context.announcements) text += one->MetricsText();
  return Text("text/plain; version=0.0.4; charset=utf-8", std::move(text));
}

http::Response GetStatus(Call& call) {
  const ServeContext& context = call.context;
  const auto counts = call.context.queue.Counts();
  if (!counts) return ProblemOf(counts.error(), call.request_id);
  Json jobs = Json::object();
  for (const auto& [state, count] : *counts) jobs[std::string(Name(state))] = count;
  return JsonResponse(
      200, {{"version", ATUNNER_VERSION},
            {"time", UtcTimestamp()},
            {"uptime_seconds", context.services.clock.Now() - context.begin},
            {"auth_required", context.options.require_tokens},
            {"scopes", platform::ScopeNames(call.caller.scopes)},
            {"jobs", std::move(jobs)},
            {"workers", context.workers.count()},
            {"draining", context.draining.load()},
            {"limits",
             {{"upload_bytes", context.options.upload_bytes}, {"body_bytes", uint64_t{2} << 20}}}});
}

http::Response GetDevices(Call&) {
  Json json{{"present", Json::array()}, {"known", Json::array()}};
  const auto present = ListRealDevices();
  if (present) {
    for (const RealDeviceInfo& device : *present) json["present"].push_back(ToJson(device.profile));
  } else {
    json["why_none"] = present.error().what;
  }
  for (const DeviceProfile& profile : KnownProfiles()) json["known"].push_back(ToJson(profile));
  return JsonResponse(200, json);
}

Json OperatorJson(const OperatorInfo& info) {
  Json attributes = Json::array();
  for (const AttributeInfo& attribute : info.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"default", ToString(attribute.fallback)},
                          {"meaning", attribute.meaning}});
  return {{"name", info.name},
          {"summary", info.summary},
          {"shape", info.shape_help},
          {"attributes", std::move(attributes)}};
}

http::Response GetOperators(Call&) {
  Json list = Json::array();
  for (const Operator* op : AllOperators()) list.push_back(OperatorJson(op->info()));
  return JsonResponse(200, {{"operators", std::move(list)}});
}

http::Response GetWorkers(Call& call) {
  return JsonResponse(200, {{"workers", call.context.workers.ToJson()}});
}

http::Response GetOpenApi(Call&) {
  return Text("application/yaml", std::string(embed::kOpenapiYaml));
}

}  // namespace

std::vector<Route> MachineRoutes() {
  using platform::kRead;
  return {{"GET", "/healthz", std::nullopt, BodyKind::kNone, Health},
          {"GET", "/readyz", std::nullopt, BodyKind::kNone, Ready},
          {"GET", "/metrics", kRead, BodyKind::kNone, GetMetrics},
          {"GET", "/api/v1/openapi.yaml", std::nullopt, BodyKind::kNone, GetOpenApi},
          {"GET", "/api/v1/status", kRead, BodyKind::kNone, GetStatus},
          {"GET", "/api/v1/devices", kRead, BodyKind::kNone, GetDevices},
          {"GET", "/api/v1/operators", kRead, BodyKind::kNone, GetOperators},
          {"GET", "/api/v1/workers", kRead, BodyKind::kNone, GetWorkers}};
}

}  // namespace atunner::serve
