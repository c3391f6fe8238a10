#include "atunner/mcp/transport/endpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/mcp/transport/headers.h"

namespace atunner::mcp {
namespace {

constexpr const char* kSessionId = "Mcp-Session-Id";
constexpr size_t kIdBytes = 16;

http::Response ErrorResponse(int status, const RpcError& error) {
  http::Response response;
  response.status = status;
  response.headers.Set("Content-Type", "application/json");
  response.headers.Set("Cache-Control", "no-store");
  response.body = ErrorText(error);
  return response;
}

http::Response Refused(int status, std::string message, const Json& id = nullptr) {
  return ErrorResponse(status, {RpcCode::kInvalidRequest, std::move(message), nullptr, id});
}

bool Mentions(const http::Request& request, const char* header, const char* text) {
  const std::string value = request.headers.Get(header);
  return value.find(text) != std::string::npos || value.find("*/*") != std::string::npos;
}

/// nullopt for a request that may be read.
std::optional<http::Response> CheckForm(const http::Request& request) {
  if (!request.headers.Get("Content-Type").starts_with("application/json"))
    return Refused(415, "Content-Type must be application/json");
  const bool any = !request.headers.Has("Accept");
  if (!any && !Mentions(request, "Accept", "application/json") &&
      !Mentions(request, "Accept", "text/event-stream"))
    return Refused(406, "Accept must have application/json or text/event-stream");
  return std::nullopt;
}

}  // namespace

Endpoint::Endpoint(const Offer& offer, Clock& clock, EndpointLimits limits)
    : offer_(offer), clock_(clock), limits_(limits), calls_(limits.calls) {}

Endpoint::~Endpoint() { CancelAll(); }

void Endpoint::CancelAll() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, entry] : sessions_) entry->session.CancelAll();
  for (const auto& [key, weak] : running_) {
    if (const auto entry = weak.lock()) entry->session.CancelAll();
  }
}

size_t Endpoint::sessions() const {
  const std::scoped_lock lock(mutex_);
  return sessions_.size();
}

http::Response Endpoint::Answer(const http::Request& request, const std::string& owner) {
  if (request.method == "POST") return Post(request, owner);
  if (request.method == "DELETE") return End(request, owner);
  // There is nothing that this server would say of its own accord (GET).
  http::Response refused = Refused(405, "this path takes POST and DELETE");
  refused.headers.Set("Allow", "POST, DELETE");
  return refused;
}

http::Response Endpoint::Post(const http::Request& request, const std::string& owner) {
  if (auto refused = CheckForm(request)) return *std::move(refused);
  const auto message = ParseMessage(request.body);
  if (!message) return ErrorResponse(400, message.error());
  if (IsStateless(request, *message)) return PostStateless(request, *message);
  const Json id = message->id.value_or(nullptr);
  if (message->method == "initialize") return Begin(request, owner);
  if (!request.headers.Has(kSessionId))
    return Refused(400, "send `initialize` first, then its Mcp-Session-Id", id);
  const std::shared_ptr<Entry> entry = Find(request, owner);
  if (!entry) return Refused(404, "there is no such session; begin a new one", id);
  const std::string version = request.headers.Get("MCP-Protocol-Version");
  if (!version.empty() && version != kStateful)
    return Refused(400, "the session has the revision " + std::string(kStateful), id);
  return Carry(entry, request, false);
}

http::Response Endpoint::PostStateless(const http::Request& request, const Message& message) {
  if (auto mismatch = CheckHeaders(request, message)) {
    mismatch->id = message.id.value_or(nullptr);
    return ErrorResponse(400, *mismatch);
  }
  const auto entry = std::make_shared<Entry>(offer_);
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(running_, [](const auto& one) { return one.second.expired(); });
    running_[entry.get()] = entry;
  }
  return Carry(entry, request, true);
}

http::Response Endpoint::Begin(const http::Request& request, const std::string& owner) {
  const auto entry = std::make_shared<Entry>(offer_);
  entry->owner = owner;
  entry->used = clock_.Now();
  http::Response response = Carry(entry, request, false);
  const std::string id = RandomId(kIdBytes);
  if (id.empty()) return Refused(503, "the system gives no random numbers");
  const auto answer = ParseJson(response.body, "answer");
  if (!answer || !answer->contains("result")) return response;
  response.headers.Set(kSessionId, id);
  const std::scoped_lock lock(mutex_);
  MakeRoom();
  sessions_.emplace(id, entry);
  return response;
}

/// Forgets sessions that were idle for long, and the one that was idle longest if there are many.
void Endpoint::MakeRoom() {
  const double now = clock_.Now();
  std::erase_if(sessions_,
                [&](const auto& one) { return now - one.second->used > limits_.idle_seconds; });
  if (sessions_.size() < limits_.sessions) return;
  const auto oldest = std::ranges::min_element(sessions_, {},
                                               [](const auto& one) { return one.second->used; });
  oldest->second->session.CancelAll();
  sessions_.erase(oldest);
}

std::shared_ptr<Endpoint::Entry> Endpoint::Find(const http::Request& request,
                                                const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  const auto found = sessions_.find(request.headers.Get(kSessionId));
  if (found == sessions_.end() || found->second->owner != owner) return nullptr;
  found->second->used = clock_.Now();
  return found->second;
}

http::Response Endpoint::End(const http::Request& request, const std::string& owner) {
  const std::shared_ptr<Entry> entry = Find(request, owner);
  if (!entry) return Refused(404, "there is no such session");
  entry->session.CancelAll();
  const std::scoped_lock lock(mutex_);
  sessions_.erase(request.headers.Get(kSessionId));
  http::Response ended;
  ended.status = 204;
  return ended;
}

/// Gives the message to the session, and its work to a thread.
http::Response Endpoint::Carry(const std::shared_ptr<Entry>& entry, const http::Request& request,
                               bool stateless) {
  const auto exchange = std::make_shared<Exchange>(Mentions(request, "Accept", "text/event-stream"),
                                                   stateless);
  Session::Work work;
  {
    const std::scoped_lock lock(entry->accepting);
    work = entry->session.Accept(request.body,
                                 [exchange](const std::string& text) { exchange->Send(text); });
  }
  if (!work) {
    exchange->End();
    return *exchange->Look();
  }
  // A client of 2026-07-28 cancels a call by leaving.
  if (stateless)
    exchange->OnLeave([weak = std::weak_ptr(entry)] {
      if (const auto left = weak.lock()) left->session.CancelAll();
    });
  const bool started = calls_.TryStart([entry, exchange, work = std::move(work)] {
    work();
    exchange->End();
  });
  if (!started) {
    http::Response busy = Refused(503, "the server is busy with other calls");
    busy.headers.Set("Retry-After", "5");
    return busy;
  }
  http::Response response;
  response.later = [exchange] { return exchange->Look(); };
  return response;
}

}  // namespace atunner::mcp
