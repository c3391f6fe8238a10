#include "atunner/http/call.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include "atunner/http/tls.h"
#include "atunner/http/transport.h"

namespace atunner::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr size_t kChunk = size_t{64} << 10;
constexpr const char* kOriginHint = "write http://HOST:PORT or https://HOST:PORT";

std::unexpected<Error> Broken(const Origin& origin, const error_code& error) {
  if (error == beast::error::timeout)
    return Fail(ErrorCode::kTimeout, "the server does not answer in time", origin.Text());
  if (error.category() == asio::error::get_ssl_category())
    return Fail(ErrorCode::kUnavailable,
                "the server's certificate is not accepted: " + error.message(), origin.Text(),
                "name its authority by --ca FILE, and the server as its certificate does");
  return Fail(ErrorCode::kUnavailable, "no answer from the server: " + error.message(),
              origin.Text(), "is `atunner serve` running there?");
}

/// One exchange over a connection of its own. Its operations run one after the other; the first
/// that fails leaves its error.
class Exchange {
 public:
  Exchange(const Origin& origin, const CallOptions& options)
      : origin_(origin), options_(options), stream_(context_) {
    stream_.tcp.expires_after(
        std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1e3)));
  }

  Result<Response> Run(const Request& request) {
    if (origin_.tls) ATUNNER_RETURN_IF_ERROR(Encrypt());
    asio::co_spawn(context_, Steps(request), asio::detached);
    context_.run();
    if (!problem_.empty()) return Fail(ErrorCode::kUnavailable, problem_, origin_.Text());
    if (error_) return Broken(origin_, error_);
    return std::move(response_);
  }

 private:
  auto Into() { return asio::redirect_error(asio::use_awaitable, error_); }

  asio::awaitable<void> Steps(const Request& request) {
    co_await Connect();
    if (!error_) co_await Send(request);
    if (!error_) co_await Receive(request.method == "HEAD");
  }

  Status Encrypt() {
    ATUNNER_RETURN_IF_ERROR(TrustAuthorities(tls_, origin_.authorities));
    stream_.Encrypt(tls_);
    if (SSL_set_tlsext_host_name(stream_.tls->native_handle(), origin_.host.c_str()) != 1)
      return Fail(ErrorCode::kInternal, "the host's name cannot be set", origin_.Text());
    stream_.tls->set_verify_callback(asio::ssl::host_name_verification(origin_.host));
    return {};
  }

  asio::awaitable<void> Connect() {
    asio::ip::tcp::resolver resolver(context_);
    const auto found = co_await resolver.async_resolve(origin_.host, origin_.port, Into());
    if (!error_) co_await stream_.tcp.async_connect(found, Into());
    if (!error_ && stream_.tls)
      co_await stream_.tls->async_handshake(asio::ssl::stream_base::client, Into());
  }

  template <class Body>
  void FillHead(beast::http::request<Body>& out, const Request& request) const {
    out.version(11);
    out.method_string(request.method);
    out.target(request.target);
    out.set(beast::http::field::host, origin_.host + ":" + origin_.port);
    out.keep_alive(false);
    for (const auto& [name, value] : request.headers.list()) out.set(name, value);
  }

  asio::awaitable<void> Send(const Request& request) {
    if (request.file.empty()) {
      beast::http::request<beast::http::string_body> out;
      FillHead(out, request);
      out.body() = request.body;
      out.prepare_payload();
      co_await beast::http::async_write(stream_, out, Into());
      co_return;
    }
    beast::http::request<beast::http::file_body> out;
    FillHead(out, request);
    out.body().open(request.file.c_str(), beast::file_mode::scan, error_);
    if (error_) co_return;
    out.prepare_payload();
    co_await beast::http::async_write(stream_, out, Into());
    // A server that refuses the body answers and closes before it took everything.
    if (error_ == asio::error::broken_pipe || error_ == asio::error::connection_reset) error_ = {};
  }

  template <class Parser>
  void KeepHead(const Parser& parser) {
    response_.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get())
      response_.headers.Set(std::string(field.name_string()), std::string(field.value()));
  }

  asio::awaitable<void> Receive(bool head_only) {
    beast::http::response_parser<beast::http::buffer_body> parser;
    parser.body_limit(options_.max_bytes);
    parser.skip(head_only);
    co_await beast::http::async_read_header(stream_, buffer_, parser, Into());
    if (error_) co_return;
    KeepHead(parser);
    beast::file_stdio file;
    const bool to_file = !options_.to_file.empty() && response_.status == 200;
    if (to_file) file.open(options_.to_file.c_str(), beast::file_mode::write, error_);
    std::string chunk(kChunk, '\0');
    while (!error_ && !parser.is_done()) {
      auto& body = parser.get().body();
      body.data = chunk.data();
      body.size = chunk.size();
      co_await beast::http::async_read(stream_, buffer_, parser, Into());
      const size_t got = chunk.size() - body.size;
      if (error_ == beast::http::error::need_buffer) error_ = {};
      if (error_) break;
      if (to_file)
        file.write(chunk.data(), got, error_);
      else
        response_.body.append(chunk.data(), got);
    }
  }

  const Origin& origin_;
  const CallOptions& options_;
  asio::io_context context_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  Transport stream_;
  beast::flat_buffer buffer_;
  error_code error_;
  std::string problem_;
  Response response_;
};

}  // namespace

Result<Origin> ParseOrigin(const std::string& text, const std::string& field) {
  Origin origin;
  origin.tls = text.starts_with("https://");
  if (!origin.tls && !text.starts_with("http://"))
    return Invalid("'" + text + "' is no server", field, kOriginHint);
  if (origin.tls) origin.port = "443";
  std::string rest = text.substr(text.find("//") + 2);
  if (rest.ends_with('/')) rest.pop_back();
  const size_t colon = rest.rfind(':');
  origin.host = rest.substr(0, colon);
  if (colon != std::string::npos) origin.port = rest.substr(colon + 1);
  const bool digits = std::ranges::all_of(origin.port,
                                          [](unsigned char c) { return std::isdigit(c); });
  const bool plain = origin.host.find_first_of("/?#@ ") == std::string::npos;
  if (origin.host.empty() || origin.port.empty() || !digits || !plain)
    return Invalid("'" + text + "' is no server", field, kOriginHint);
  return origin;
}

Result<Response> Call(const Origin& origin, const Request& request, const CallOptions& options) {
  try {
    return Exchange(origin, options).Run(request);
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUnavailable, error.what(), origin.Text());
  }
}

}  // namespace atunner::http
