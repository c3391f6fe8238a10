#include "atunner/http/server.h"

#include <boost/asio.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atunner/http/connection.h"
#include "atunner/http/tls.h"
#include "atunner/http/transport.h"

namespace atunner::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kNextTry{100};

asio::awaitable<void> AcceptAll(tcp::acceptor& acceptor, asio::io_context& context,
                                Shared& shared) {
  while (!shared.draining) {
    error_code error;
    tcp::socket socket = co_await acceptor.async_accept(asio::make_strand(context), Into(error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // no more file descriptors, for example
      asio::steady_timer pause(acceptor.get_executor(), kNextTry);
      co_await pause.async_wait(Into(error));
      continue;
    }
    size_t open = 0;
    {
      const std::scoped_lock lock(shared.mutex);
      open = shared.enders.size();
    }
    if (open >= static_cast<size_t>(shared.options.connections)) continue;
    StartClient(std::move(socket), shared);
  }
}

}  // namespace

struct Server::Parts {
  Parts(const ServerOptions& chosen, Handler& handler)
      : options(chosen), shared{options, handler, {}, {}, {}, {}, {}} {}

  Status LoadCertificate() {
    if (options.tls_certificate.empty() && options.tls_key.empty()) return {};
    shared.tls.emplace(asio::ssl::context::tls_server);
    return ShowCertificate(*shared.tls, options.tls_certificate, options.tls_key);
  }

  Status Listen() {
    error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return Invalid("'" + options.address + "' is no address", "listen");
    const tcp::endpoint endpoint(address, options.port);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return Invalid("cannot listen on " + options.address + ":" + std::to_string(options.port) +
                         ": " + error.message(),
                     "listen", "choose another port");
    port = acceptor.local_endpoint(error).port();
    return {};
  }

  ServerOptions options;
  Shared shared;
  asio::io_context context;
  tcp::acceptor acceptor{asio::make_strand(context)};
  uint16_t port = 0;
  std::vector<std::thread> threads;
};

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, Handler& handler) {
  auto parts = std::make_unique<Parts>(options, handler);
  ATUNNER_RETURN_IF_ERROR(parts->LoadCertificate());
  ATUNNER_RETURN_IF_ERROR(parts->Listen());
  asio::co_spawn(parts->acceptor.get_executor(),
                 AcceptAll(parts->acceptor, parts->context, parts->shared), asio::detached);
  for (int i = 0; i < options.threads; ++i)
    parts->threads.emplace_back([&context = parts->context] { context.run(); });
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::~Server() {
  Drain(1);
  parts_->context.stop();
  for (std::thread& thread : parts_->threads) thread.join();
}

uint16_t Server::port() const { return parts_->port; }

int Server::connections() const {
  const std::scoped_lock lock(parts_->shared.mutex);
  return static_cast<int>(parts_->shared.enders.size());
}

void Server::Drain(double seconds) {
  Shared& shared = parts_->shared;
  shared.draining = true;
  asio::post(parts_->acceptor.get_executor(), [parts = parts_.get()] {
    error_code ignored;
    parts->acceptor.close(ignored);
  });
  std::unique_lock lock(shared.mutex);
  for (const auto& end : shared.enders) end();
  shared.ended.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return shared.enders.empty(); });
}

}  // namespace atunner::http
