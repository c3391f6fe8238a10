// Tokens and sessions.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "faces/serve/api.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

constexpr const char* kCookie = "atunner_session=";

/// Over TLS the browser must never send the cookie in plain text.
std::string CookieRules(const Call& call) {
  const bool tls = !call.context.options.tls_certificate.empty();
  return std::string("; Path=/; HttpOnly; SameSite=Strict") + (tls ? "; Secure" : "");
}

Json TokenJson(const platform::Token& token) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"id", token.id},
          {"name", token.name},
          {"scopes", platform::ScopeNames(token.scopes)},
          {"created", token.created},
          {"expires", or_null(token.expires)},
          {"last_used", or_null(token.last_used)}};
}

http::Response ListTokens(Call& call) {
  const auto tokens = call.context.tokens.List();
  if (!tokens) return ProblemOf(tokens.error(), call.request_id);
  Json list = Json::array();
  for (const platform::Token& token : *tokens) list.push_back(TokenJson(token));
  return JsonResponse(200, {{"tokens", std::move(list)}});
}

struct Wanted {
  std::string name;
  uint8_t scopes = 0;
  std::optional<int> days;
};

Result<Wanted> WantedOf(const Json& body) {
  Wanted wanted;
  const Json name = body.value("name", Json());
  if (!name.is_string()) return Invalid("must be a string", "name");
  wanted.name = name.get<std::string>();
  std::string scopes;
  for (const Json& scope : body.value("scopes", Json::array())) {
    if (!scope.is_string()) return Invalid("must be a list of strings", "scopes");
    scopes += (scopes.empty() ? "" : ",") + scope.get<std::string>();
  }
  ATUNNER_TRY(wanted.scopes, platform::ParseScopes(scopes));
  const Json days = body.value("expires_days", Json());
  if (days.is_null()) return wanted;
  if (!days.is_number_integer() || days.get<int64_t>() < 1 || days.get<int64_t>() > 36500)
    return Invalid("must be a number of days from 1 to 36500", "expires_days");
  wanted.days = days.get<int>();
  return wanted;
}

http::Response PostToken(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const auto wanted = WantedOf(*body);
  if (!wanted) return ProblemOf(wanted.error(), call.request_id);
  const auto made = call.context.tokens.Create(wanted->name, wanted->scopes, wanted->days);
  if (!made) return ProblemOf(made.error(), call.request_id);
  call.context.log.Write("info", "token made",
                         {{"request_id", call.request_id},
                          {"token", made->token.id},
                          {"scopes", platform::ScopeNames(made->token.scopes)},
                          {"by", call.caller.token}});
  Json json = TokenJson(made->token);
  json["token"] = made->secret;
  return JsonResponse(201, json);
}

http::Response RevokeToken(Call& call) {
  const auto revoked = call.context.tokens.Revoke(call.Segment(0));
  if (!revoked) return ProblemOf(revoked.error(), call.request_id);
  call.context.log.Write(
      "info", "token revoked",
      {{"request_id", call.request_id}, {"token", call.Segment(0)}, {"by", call.caller.token}});
  return Empty(204);
}

http::Response PostSession(Call& call) {
  const auto body = call.Body();
  if (!body) return Problem(400, body.error().what, call.request_id);
  const Json secret = body->value("token", Json());
  if (!secret.is_string()) return Problem(401, "the token is not valid", call.request_id);
  const auto token = call.context.tokens.Check(secret.get<std::string>());
  if (!token || !*token) return Problem(401, "the token is not valid", call.request_id);
  http::Response response = JsonResponse(
      200, {{"name", (*token)->name}, {"scopes", platform::ScopeNames((*token)->scopes)}});
  response.headers.Set(
      "Set-Cookie", fmt::format("{}{}{}", kCookie, secret.get<std::string>(), CookieRules(call)));
  return response;
}

http::Response DeleteSession(Call& call) {
  http::Response response = Empty(204);
  response.headers.Set("Set-Cookie", fmt::format("{}{}; Max-Age=0", kCookie, CookieRules(call)));
  return response;
}

http::Response GetAudit(Call& call) {
  const auto most = call.Integer("limit", 200, 1, 1000);
  if (!most) return ProblemOf(most.error(), call.request_id);
  const auto lines = call.context.audit.Last(static_cast<size_t>(*most));
  if (!lines) return ProblemOf(lines.error(), call.request_id);
  return JsonResponse(200, {{"entries", *lines}});
}

}  // namespace

std::vector<Route> AdminRoutes() {
  using platform::kAdmin;
  return {{"GET", "/api/v1/audit", kAdmin, BodyKind::kNone, GetAudit},
          {"GET", "/api/v1/tokens", kAdmin, BodyKind::kNone, ListTokens},
          {"POST", "/api/v1/tokens", kAdmin, BodyKind::kJson, PostToken},
          {"DELETE", "/api/v1/tokens/{id}", kAdmin, BodyKind::kNone, RevokeToken},
          {"POST", "/api/v1/session", std::nullopt, BodyKind::kJson, PostSession},
          {"DELETE", "/api/v1/session", std::nullopt, BodyKind::kNone, DeleteSession}};
}

}  // namespace atunner::serve
