// One request on its way through a route, and the answers that routes give.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/http/message.h"
#include "atunner/http/url.h"
#include "atunner/model/json/json.h"
#include "atunner/platform/job_request.h"
#include "faces/serve/serve_context.h"

namespace atunner::serve {

/// Stands for the token of workers that this server starts.
inline constexpr const char* kLocalWorker = "local-worker";

/// Who asks. Without a token on a loopback address: everybody, with all scopes.
struct Caller {
  std::string token;  ///< id of the token; "" for none
  std::string name;
  uint8_t scopes = 0;
};

struct Call {
  ServeContext& context;
  const http::Request& request;
  const http::Url& url;
  /// The segments that stand for {id}, {path} and so on, in their order. {path} takes all the rest.
  std::vector<std::string> segments;
  Caller caller;
  std::string request_id;

  const std::string& Segment(size_t at) const { return segments.at(at); }
  /// The query parameter as an integer. kInvalidInput at its name.
  Result<int> Integer(const char* name, int fallback, int least, int most) const;
  Result<std::optional<double>> Number(const char* name) const;
  std::string Text(const char* name) const { return url.Find(name).value_or(""); }
  /// The body as a JSON object.
  Result<Json> Body() const;
};

http::Response JsonResponse(int status, const Json& json);
http::Response Empty(int status);
/// application/problem+json.
http::Response Problem(int status, const std::string& detail, const std::string& request_id,
                       const std::vector<platform::FieldProblem>& fields = {});
/// The problem of an error: 404, 409, 422, 503 or 500, by its code and field.
http::Response ProblemOf(const Error& error, const std::string& request_id);

/// 304 if the client has this version already; `body`, a text of JSON, is
/// made only if it has not.
http::Response WithETag(const Call& call, const std::string& etag,
                        const std::function<std::string()>& body);

/// A word that a header of a request brought, or a new one.
std::string RequestIdOf(const http::Request& request);

}  // namespace atunner::serve
