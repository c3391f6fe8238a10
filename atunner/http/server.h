// An HTTP/1.1 server with bounded headers, bodies, times and connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/http/message.h"

namespace atunner::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  ///< 0: any free one
  int threads = 4;
  uint32_t header_bytes = 16384;
  double header_seconds = 10;   ///< from the first byte of a request to the end of its headers
  double idle_seconds = 60;     ///< between two requests of a connection
  double body_seconds = 30;     ///< for a body, plus its bytes over `slowest_rate`
  double slowest_rate = 16384;  ///< bytes per second that a client must send or take
  double keep_alive_seconds = 15;
  int connections = 2000;  ///< at a time; more are closed at once
  Path tls_certificate;    ///< PEM file of the certificate and its chain; "": no TLS
  Path tls_key;            ///< PEM file of its private key
};

class Server {
 public:
  /// Listens and answers from its own threads. `handler` must outlive the server. kInvalidInput at
  /// "listen" where the address is wrong or taken, at "--tls-cert" or "--tls-key" where these files
  /// give no TLS.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options, Handler& handler);
  /// Drains for a second.
  ~Server();
  uint16_t port() const;
  int connections() const;
  /// Accepts nothing more, ends streams, and returns when all answers are sent, or after `seconds`.
  void Drain(double seconds);

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace atunner::http
