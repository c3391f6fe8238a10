// The transport over HTTP ("streamable HTTP"): one path, to which clients POST messages.
//
// In 2025-11-25 `initialize` begins a session, whose id the client sends with all that follows
// (Mcp-Session-Id), until it sends DELETE. In 2026-07-28 each POST stands for itself, and headers
// repeat what the message says (MCP-Protocol-Version, Mcp-Method, Mcp-Name).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "atunner/base/clock.h"
#include "atunner/http/message.h"
#include "atunner/mcp/protocol/offer.h"
#include "atunner/mcp/protocol/session.h"
#include "atunner/mcp/transport/calls.h"
#include "atunner/mcp/transport/exchange.h"

namespace atunner::mcp {

struct EndpointLimits {
  size_t sessions = 200;       ///< at a time; the one that was idle longest makes room
  size_t calls = 16;           ///< at a time, of all clients
  double idle_seconds = 3600;  ///< a session that is silent for so long ends
};

/// Thread-safe.
class Endpoint {
 public:
  /// `offer` and `clock` must outlive the object.
  Endpoint(const Offer& offer, Clock& clock, EndpointLimits limits = {});
  /// Cancels what runs, and waits for its end.
  ~Endpoint();

  /// `owner` names who asks: a session is for the one who began it. Whether a page of another site
  /// asks (Origin) is for the server to refuse.
  http::Response Answer(const http::Request& request, const std::string& owner);
  /// Cancels every call that is running: it ends soon, without an answer.
  void CancelAll();
  size_t sessions() const;

 private:
  struct Entry {
    explicit Entry(const Offer& offer) : session(offer) {}
    Session session;
    std::mutex accepting;
    std::string owner;
    double used = 0;
  };

  http::Response Post(const http::Request& request, const std::string& owner);
  http::Response PostStateless(const http::Request& request, const Message& message);
  http::Response Begin(const http::Request& request, const std::string& owner);
  http::Response Carry(const std::shared_ptr<Entry>& entry, const http::Request& request,
                       bool stateless);
  http::Response End(const http::Request& request, const std::string& owner);
  std::shared_ptr<Entry> Find(const http::Request& request, const std::string& owner);
  void MakeRoom();

  const Offer& offer_;
  Clock& clock_;
  EndpointLimits limits_;
  mutable std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::shared_ptr<Entry>> sessions_;
  std::map<const Entry*, std::weak_ptr<Entry>> running_;  ///< without a session
  Calls calls_;                                           ///< ends first
};

}  // namespace atunner::mcp
