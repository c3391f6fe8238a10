// What the connections of a server share, and one of them from its begin to its end. For the room's
// own sources.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>

#include "atunner/http/message.h"
#include "atunner/http/server.h"

namespace atunner::http {

/// What all connections share.
struct Shared {
  const ServerOptions& options;
  Handler& handler;
  std::atomic<bool> draining = false;
  std::mutex mutex;
  std::condition_variable ended;
  std::list<std::function<void()>> enders;       ///< one of each connection
  std::optional<boost::asio::ssl::context> tls;  ///< empty: plain text
};

/// Begins to serve a client, until either end closes. Meanwhile `shared.enders` can tell the
/// connection to end.
void StartClient(boost::asio::ip::tcp::socket socket, Shared& shared);

}  // namespace atunner::http
