// Answers all requests: who asks, which route, which limits, what is logged.
#pragma once

#include <string>
#include <variant>

#include "atunner/http/message.h"
#include "faces/serve/call.h"
#include "faces/serve/routes.h"

namespace atunner::serve {

class Api : public http::Handler {
 public:
  explicit Api(ServeContext& context) : context_(context) {}

  std::variant<http::BodyPlan, http::Response> Accept(const http::Request& head) override;
  http::Response Answer(const http::Request& request) override;
  http::Response Refuse(int status, const std::string& detail) override;

 private:
  /// A request that may go on.
  struct Admitted {
    http::Url url;
    Match match;
    Caller caller;
  };
  std::variant<Admitted, http::Response> Admit(const http::Request& request,
                                               const std::string& request_id);
  std::optional<http::Response> RefuseOrigin(const http::Request& request,
                                             const std::string& request_id) const;
  /// nullopt for a wrong token.
  std::optional<Caller> CallerOf(const http::Request& request);
  /// False for a token with too many requests.
  bool MayAsk(const Caller& caller);
  http::Response RefuseSecret(const http::Request& request, const std::string& request_id);
  http::Response TooMany(const char* what, const std::string& request_id);
  http::BodyPlan PlanOf(const Route& route) const;
  http::Response Run(const http::Request& request, Admitted& admitted,
                     const std::string& request_id);
  http::Response Finish(http::Response response, const http::Request& request, const Caller& caller,
                        const std::string& request_id);
  /// Writes what changed something or was refused into the audit log.
  void Audit(const http::Response& response, const http::Request& request, const Caller& caller,
             const std::string& request_id);
  void Trace(const Route* route, const http::Request& request, const http::Response& response,
             double begin) const;

  ServeContext& context_;
};

/// The secret that a request brings as bearer token or cookie; "" for none.
std::string SecretOf(const http::Request& request);

/// A file of the dashboard; index.html for the dashboard's own addresses; nullopt for others.
std::optional<http::Response> AssetResponse(const http::Request& request, const http::Url& url);

}  // namespace atunner::serve
