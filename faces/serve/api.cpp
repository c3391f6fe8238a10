#include "faces/serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "atunner/http/origin.h"
#include "atunner/platform/access.h"
#include "faces/serve/assets.h"
#include "faces/serve/gzip.h"
#include "faces/serve/spans.h"
#include "faces/serve/trace_exporter.h"

namespace atunner::serve {
namespace {

constexpr uint64_t kJsonBytes = uint64_t{2} << 20;
constexpr uint64_t kLargeJsonBytes = uint64_t{64} << 20;
constexpr uint64_t kArtifactBytes = uint64_t{1} << 30;

constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";
constexpr const char* kDataPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// "host:8080" without its port, "[::1]:8080" without its brackets, too.
std::string HostName(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

std::string PathOf(const http::Request& request) {
  return request.target.substr(0, request.target.find('?'));
}

std::string CookieOf(const std::string& cookies) {
  constexpr std::string_view kName = "atunner_session=";
  for (size_t begin = 0; begin < cookies.size();) {
    const size_t end = std::min(cookies.find(';', begin), cookies.size());
    std::string one = cookies.substr(begin, end - begin);
    one.erase(0, one.find_first_not_of(' '));
    if (one.starts_with(kName)) return one.substr(kName.size());
    begin = end + 1;
  }
  return "";
}

/// Wrong secrets of one address: a person who mistypes is not stopped, a guesser is.
constexpr double kWrongSecretsPerSecond = 0.2;
constexpr double kWrongSecretsAtOnce = 20;

/// Smaller answers fit into one packet anyway.
constexpr size_t kLeastToPack = 1400;

bool TakesGzip(const http::Request& request) {
  return request.headers.Get("Accept-Encoding").find("gzip") != std::string::npos;
}

/// Only answers to GET: none that shows a new secret is packed with what the client sent.
void Pack(http::Response& response, const http::Request& request) {
  const bool plain = !response.headers.Has("Content-Encoding") && response.file.empty() &&
                     response.stream == nullptr && response.later == nullptr;
  if (!plain || request.method != "GET" || response.body.size() < kLeastToPack) return;
  response.headers.Set("Vary", "Accept-Encoding");
  if (!TakesGzip(request)) return;
  std::string packed = Packed(response.body);
  if (packed.empty() || packed.size() >= response.body.size()) return;
  response.body = std::move(packed);
  response.headers.Set("Content-Encoding", "gzip");
}

bool IsApi(const http::Url& url) { return !url.path.empty() && url.path[0] == "api"; }

}  // namespace

std::string SecretOf(const http::Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string header = request.headers.Get("Authorization");
  if (header.starts_with(kBearer)) return header.substr(kBearer.size());
  return header.empty() ? CookieOf(request.headers.Get("Cookie")) : header;
}

std::optional<http::Response> AssetResponse(const http::Request& request, const http::Url& url) {
  std::string path;
  for (const std::string& segment : url.path) path += "/" + segment;
  const Asset* asset = FindAsset(path);
  const bool page = path.find('.') == std::string::npos;
  if (asset == nullptr && page) asset = FindAsset("/index.html");
  if (asset == nullptr || (request.method != "GET" && request.method != "HEAD"))
    return std::nullopt;
  http::Response response;
  response.headers.Set("Content-Type", std::string(asset->type));
  response.headers.Set("ETag", std::string(asset->etag));
  // Vite names files under /assets after their contents.
  response.headers.Set("Cache-Control", path.starts_with("/assets/")
                                            ? "public, max-age=31536000, immutable"
                                            : "no-cache");
  response.headers.Set("Vary", "Accept-Encoding");
  response.headers.Set("Content-Security-Policy", kPagePolicy);
  if (request.headers.Get("If-None-Match") == asset->etag) {
    response.status = 304;
  } else if (TakesGzip(request)) {
    response.headers.Set("Content-Encoding", "gzip");
    response.body = asset->gzip;
  } else {
    response.body = Unpacked(asset->gzip).value_or("");
  }
  return response;
}

std::optional<Caller> Api::CallerOf(const http::Request& request) {
  const std::string secret = SecretOf(request);
  if (secret.empty()) {
    if (context_.options.require_tokens) return std::nullopt;
    return Caller{"", "", platform::kAllScopes};
  }
  // Hashes are compared, so that the time of a comparison tells nothing about the secret.
  if (platform::Sha256(secret) == platform::Sha256(context_.worker_secret))
    return Caller{kLocalWorker, "local worker", platform::kWork | platform::kRead};
  const auto token = context_.tokens.Check(secret);
  if (!token || !*token) return std::nullopt;
  return Caller{(*token)->id, (*token)->name, (*token)->scopes};
}

/// Pages of other sites cannot use this server in the name of its user: neither directly (Origin)
/// nor by a name that points to this machine (Host, DNS rebinding).
std::optional<http::Response> Api::RefuseOrigin(const http::Request& request,
                                                const std::string& request_id) const {
  const std::string host = request.headers.Get("Host");
  if (!context_.options.require_tokens && !http::IsLoopbackHost(HostName(host)))
    return Problem(421, "this server answers requests for localhost only", request_id);
  const std::string origin = request.headers.Get("Origin");
  const bool own = origin.empty() || origin == "http://" + host || origin == "https://" + host;
  if (own) return std::nullopt;
  return Problem(403, "requests from pages of other servers are refused", request_id);
}

bool Api::MayAsk(const Caller& caller) {
  const double rate = context_.options.requests_per_second;
  if (rate <= 0 || caller.token.empty() || caller.token == kLocalWorker) return true;
  return context_.rates.Take("token " + caller.token, rate, 4 * rate,
                             context_.services.clock.Now());
}

http::Response Api::RefuseSecret(const http::Request& request, const std::string& request_id) {
  const bool slow = SecretOf(request).empty() ||
                    context_.rates.Take("address " + request.remote, kWrongSecretsPerSecond,
                                        kWrongSecretsAtOnce, context_.services.clock.Now());
  if (!slow) return TooMany("wrong tokens from this address", request_id);
  context_.metrics.Add("atunner_refused_total", "");
  http::Response refused = Problem(401, "a valid token is needed", request_id);
  refused.headers.Set("WWW-Authenticate", "Bearer");
  return refused;
}

http::Response Api::TooMany(const char* what, const std::string& request_id) {
  context_.metrics.Add("atunner_refused_total", "");
  http::Response refused = Problem(429, std::string("too many ") + what, request_id);
  refused.headers.Set("Retry-After", "5");
  return refused;
}

std::variant<Api::Admitted, http::Response> Api::Admit(const http::Request& request,
                                                       const std::string& request_id) {
  if (auto refused = RefuseOrigin(request, request_id)) return *std::move(refused);
  auto url = http::ParseUrl(request.target);
  if (!url) return Problem(400, url.error().what, request_id);
  Admitted admitted{*std::move(url), {}, {}};
  admitted.match = FindRoute(request.method, admitted.url);
  const Route* route = admitted.match.route;
  if (route == nullptr) {
    if (admitted.match.other_method)
      return Problem(405, "the path does not know this method", request_id);
    if (IsApi(admitted.url)) return Problem(404, "there is no such path", request_id);
    return admitted;
  }
  if (!route->scope) return admitted;
  const auto caller = CallerOf(request);
  if (!caller) return RefuseSecret(request, request_id);
  admitted.caller = *caller;
  const platform::Token held{"", "", caller->scopes, "", "", ""};
  if (held.May(*route->scope)) return admitted;
  context_.metrics.Add("atunner_refused_total", "");
  return Problem(403,
                 "the token lacks the scope '" + platform::ScopeNames(*route->scope).front() + "'",
                 request_id);
}

http::BodyPlan Api::PlanOf(const Route& route) const {
  switch (route.body) {
    case BodyKind::kNone:
      return {};
    case BodyKind::kJson:
      return {kJsonBytes, {}};
    case BodyKind::kLargeJson:
      return {kLargeJsonBytes, {}};
    case BodyKind::kUpload:
      return {context_.options.upload_bytes, context_.Incoming() / RequestIdOf({})};
    case BodyKind::kArtifact:
      return {kArtifactBytes, context_.Incoming() / RequestIdOf({})};
  }
  return {};
}

std::variant<http::BodyPlan, http::Response> Api::Accept(const http::Request& head) {
  const std::string request_id = RequestIdOf(head);
  auto admitted = Admit(head, request_id);
  if (auto* refused = std::get_if<http::Response>(&admitted))
    return Finish(std::move(*refused), head, {}, request_id);
  const Admitted& granted = std::get<Admitted>(admitted);
  if (!MayAsk(granted.caller))
    return Finish(TooMany("requests with this token", request_id), head, granted.caller,
                  request_id);
  const Route* route = granted.match.route;
  if (context_.draining && route != nullptr && route->method != "GET" &&
      route->scope != platform::kWork)
    return Finish(Problem(503, "the server is ending", request_id), head, {}, request_id);
  return route == nullptr ? http::BodyPlan{} : PlanOf(*route);
}

http::Response Api::Run(const http::Request& request, Admitted& admitted,
                        const std::string& request_id) {
  if (admitted.match.route == nullptr) {
    auto asset = AssetResponse(request, admitted.url);
    return asset ? *std::move(asset) : Problem(404, "there is no such path", request_id);
  }
  Call call{context_,        request,   admitted.url, std::move(admitted.match.segments),
            admitted.caller, request_id};
  try {
    return admitted.match.route->answer(call);
  } catch (const std::exception& error) {
    context_.log.Write("error", "a request failed",
                       {{"request_id", request_id}, {"what", error.what()}});
    return Problem(500, "the server failed; its log says more under this request_id", request_id);
  }
}

http::Response Api::Answer(const http::Request& request) {
  const double begin = WallSeconds();
  const std::string request_id = RequestIdOf(request);
  auto admitted = Admit(request, request_id);
  if (auto* refused = std::get_if<http::Response>(&admitted))
    return Finish(std::move(*refused), request, {}, request_id);
  auto& granted = std::get<Admitted>(admitted);
  http::Response response = Run(request, granted, request_id);
  std::error_code ignored;  // a route that keeps the file has moved it
  if (!request.file.empty()) std::filesystem::remove(request.file, ignored);
  response = Finish(std::move(response), request, granted.caller, request_id);
  Trace(granted.match.route, request, response, begin);
  return response;
}

/// Neither files of the page nor checks of health have spans; what workers say is in those of jobs.
void Api::Trace(const Route* route, const http::Request& request, const http::Response& response,
                double begin) const {
  if (context_.traces == nullptr || route == nullptr || !route->scope) return;
  if (*route->scope == platform::kWork) return;
  if (auto span = RequestSpan(request, response, route->pattern, begin))
    context_.traces->Add(*std::move(span));
}

http::Response Api::Refuse(int status, const std::string& detail) {
  const std::string request_id = RequestIdOf({});
  return Finish(Problem(status, detail, request_id), {}, {}, request_id);
}

http::Response Api::Finish(http::Response response, const http::Request& request,
                           const Caller& caller, const std::string& request_id) {
  Pack(response, request);
  response.headers.Set("X-Request-Id", request_id);
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Referrer-Policy", "no-referrer");
  if (!response.headers.Has("Content-Security-Policy"))
    response.headers.Set("Content-Security-Policy", kDataPolicy);
  context_.metrics.Add("atunner_http_requests_total",
                       Label("code", std::to_string(response.status)));
  Audit(response, request, caller, request_id);
  const bool chatter = caller.token == kLocalWorker && response.status < 300;
  if (!chatter)
    context_.log.Write(response.status < 500 ? "info" : "error", "request",
                       {{"request_id", request_id},
                        {"method", request.method},
                        {"path", PathOf(request)},
                        {"status", response.status},
                        {"token", caller.token},
                        {"remote", request.remote}});
  return response;
}

void Api::Audit(const http::Response& response, const http::Request& request, const Caller& caller,
                const std::string& request_id) {
  const bool refused = response.status == 401 || response.status == 403 || response.status == 421 ||
                       response.status == 429;
  const bool reads = request.method.empty() || request.method == "GET" || request.method == "HEAD";
  const std::string path = PathOf(request);
  // What workers say about their jobs is in the events of these jobs.
  const bool work = path.starts_with("/api/v1/work/");
  if (!refused && (reads || work)) return;
  Json entry{{"request_id", request_id},  {"method", request.method}, {"path", path},
             {"status", response.status}, {"token", caller.token},    {"name", caller.name},
             {"remote", request.remote}};
  const std::string location = response.headers.Get("Location");
  if (!location.empty()) entry["made"] = location;
  context_.audit.Write(std::move(entry));
}

}  // namespace atunner::serve
