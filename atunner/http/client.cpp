#include "atunner/http/client.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "atunner/http/tls.h"
#include "atunner/http/transport.h"

namespace atunner::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

std::optional<std::string> ProcessVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// One exchange over a connection of its own. Its operations run one after the other; the first
/// that fails leaves its error.
class Exchange {
 public:
  Exchange(const Origin& origin, const CallOptions& options)
      : origin_(origin), options_(options), resolver_(context_), stream_(context_) {
    stream_.tcp.expires_after(
        std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1e3)));
  }

  Result<Response> Run(const Request& request) {
    if (options_.stop.stop_requested()) return Cancelled();
    const Environment& environment = options_.environment ? options_.environment : ProcessVariable;
    ATUNNER_TRY(proxy_, ProxyFor(origin_, environment));
    if (origin_.tls) ATUNNER_RETURN_IF_ERROR(TrustAuthorities(tls_, origin_.authorities));
    asio::co_spawn(context_, Steps(request), asio::detached);
    const std::stop_callback cancel(options_.stop, [this] {
      asio::post(context_, [this] {
        resolver_.cancel();
        stream_.tcp.cancel();
      });
    });
    context_.run();
    if (options_.stop.stop_requested() || refused_) return Cancelled();
    if (!problem_.empty()) return Fail(ErrorCode::kUnavailable, problem_, origin_.Text());
    if (error_) return Broken();
    return std::move(response_);
  }

 private:
  std::unexpected<Error> Cancelled() const {
    return Fail(ErrorCode::kCancelled, "stopped by the user", origin_.Text());
  }

  std::unexpected<Error> Broken() const {
    if (error_ == beast::error::timeout)
      return Fail(ErrorCode::kTimeout, "the server does not answer in time", origin_.Text());
    if (error_.category() == asio::error::get_ssl_category())
      return Fail(ErrorCode::kUnavailable,
                  "the server's certificate is not accepted: " + error_.message(), origin_.Text(),
                  "name its authority by --ca FILE or in $SSL_CERT_FILE, and the server as its "
                  "certificate does");
    return Fail(ErrorCode::kUnavailable, "no answer from the server: " + error_.message(),
                origin_.Text(), options_.hint);
  }

  asio::awaitable<void> Steps(const Request& request) {
    co_await Connect();
    if (!error_ && origin_.tls && proxy_) co_await Tunnel();
    if (!error_ && origin_.tls) co_await Greet();
    if (!error_) co_await Send(request);
    if (!error_) co_await Receive(request.method == "HEAD");
  }

  asio::awaitable<void> Connect() {
    const Origin& next = proxy_ ? *proxy_ : origin_;
    const auto found = co_await resolver_.async_resolve(next.host, next.port, Into(error_));
    if (!error_) co_await stream_.tcp.async_connect(found, Into(error_));
  }

  std::string Host() const {
    const bool is_v6 = origin_.host.find(':') != std::string::npos;
    return (is_v6 ? "[" + origin_.host + "]" : origin_.host) + ":" + origin_.port;
  }

  /// Asks the proxy for a connection to the server, which it cannot read (RFC 9110, 9.3.6).
  asio::awaitable<void> Tunnel() {
    beast::http::request<beast::http::empty_body> out(beast::http::verb::connect, Host(), 11);
    out.set(beast::http::field::host, Host());
    co_await beast::http::async_write(stream_, out, Into(error_));
    if (error_) co_return;
    beast::http::response_parser<beast::http::empty_body> parser;
    parser.skip(true);
    co_await beast::http::async_read_header(stream_, buffer_, parser, Into(error_));
    if (error_ || parser.get().result_int() == 200) co_return;
    problem_ = "the proxy " + proxy_->Text() + " answers " +
               std::to_string(parser.get().result_int());
    error_ = asio::error::connection_refused;
  }

  asio::awaitable<void> Greet() {
    stream_.Encrypt(tls_);
    if (SSL_set_tlsext_host_name(stream_.tls->native_handle(), origin_.host.c_str()) != 1) {
      problem_ = "the host's name cannot be set";
      error_ = asio::error::invalid_argument;
      co_return;
    }
    stream_.tls->set_verify_callback(asio::ssl::host_name_verification(origin_.host));
    co_await stream_.tls->async_handshake(asio::ssl::stream_base::client, Into(error_));
  }

  template <class Body>
  void FillHead(beast::http::request<Body>& out, const Request& request) const {
    out.version(11);
    out.method_string(request.method);
    const bool whole = proxy_ && !origin_.tls;  // RFC 9112, 3.2.2
    out.target(whole ? "http://" + Host() + request.target : request.target);
    out.set(beast::http::field::host, Host());
    out.set(beast::http::field::user_agent, "atunner/" ATUNNER_VERSION);
    out.keep_alive(false);
    for (const auto& [name, value] : request.headers.list()) out.set(name, value);
  }

  asio::awaitable<void> Send(const Request& request) {
    if (request.file.empty()) {
      beast::http::request<beast::http::string_body> out;
      FillHead(out, request);
      out.body() = request.body;
      out.prepare_payload();
      co_await beast::http::async_write(stream_, out, Into(error_));
      co_return;
    }
    beast::http::request<beast::http::file_body> out;
    FillHead(out, request);
    out.body().open(request.file.c_str(), beast::file_mode::scan, error_);
    if (error_) co_return;
    out.prepare_payload();
    co_await beast::http::async_write(stream_, out, Into(error_));
    // A server that refuses the body answers and closes before it took everything.
    if (error_ == asio::error::broken_pipe || error_ == asio::error::connection_reset) error_ = {};
  }

  template <class Parser>
  void KeepHead(const Parser& parser) {
    response_.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get())
      response_.headers.Set(std::string(field.name_string()), std::string(field.value()));
  }

  /// A piece of the body, to where it goes.
  void Keep(std::string_view bytes, beast::file_stdio& file) {
    if (file.is_open())
      file.write(bytes.data(), bytes.size(), error_);
    else if (options_.sink && response_.status == 200)
      refused_ = !options_.sink(bytes);
    else
      response_.body.append(bytes);
  }

  asio::awaitable<void> Receive(bool head_only) {
    beast::http::response_parser<beast::http::buffer_body> parser;
    parser.body_limit(options_.max_bytes);
    parser.skip(head_only);
    co_await beast::http::async_read_header(stream_, buffer_, parser, Into(error_));
    if (error_) co_return;
    KeepHead(parser);
    beast::file_stdio file;
    if (!options_.to_file.empty() && response_.status == 200)
      file.open(options_.to_file.c_str(), beast::file_mode::write, error_);
    std::string chunk(kChunk, '\0');
    while (!error_ && !refused_ && !parser.is_done()) {
      auto& body = parser.get().body();
      body.data = chunk.data();
      body.size = chunk.size();
      // Bytes are given on as they come, not only when the buffer is full.
      co_await beast::http::async_read_some(stream_, buffer_, parser, Into(error_));
      const size_t got = chunk.size() - body.size;
      if (error_ == beast::http::error::need_buffer) error_ = {};
      if (error_) break;
      if (got > 0) Keep({chunk.data(), got}, file);
    }
  }

  const Origin& origin_;
  const CallOptions& options_;
  std::optional<Origin> proxy_;
  asio::io_context context_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  asio::ip::tcp::resolver resolver_;
  Transport stream_;
  beast::flat_buffer buffer_;
  error_code error_;
  std::string problem_;
  bool refused_ = false;
  Response response_;
};

}  // namespace

Result<Response> Call(const Origin& origin, const Request& request, const CallOptions& options) {
  try {
    return Exchange(origin, options).Run(request);
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUnavailable, error.what(), origin.Text());
  }
}

}  // namespace atunner::http
