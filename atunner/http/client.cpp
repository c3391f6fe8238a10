#include "atunner/http/client.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cctype>
#include <chrono>
#include <exception>
#include <functional>

#include "atunner/http/tls.h"

namespace atunner::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Failure = boost::system::error_code;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// One exchange. Every step is an asynchronous operation with a deadline, waited for at once.
class Exchange {
 public:
  Exchange(const ClientRequest& request, ServiceUrl url, std::stop_token stop)
      : request_(request), url_(std::move(url)), stop_(std::move(stop)) {}

  Result<ClientResponse> Run() {
    if (!url_.tls) {
      beast::tcp_stream stream(context_);
      return Talk(stream, stream);
    }
    asio::ssl::context tls(asio::ssl::context::tls_client);
    ATUNNER_RETURN_IF_ERROR(TrustAuthorities(tls));
    beast::ssl_stream<beast::tcp_stream> stream(context_, tls);
    if (SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str()) != 1)
      return Fail(ErrorCode::kInternal, "the host's name cannot be set", url_.host);
    stream.set_verify_callback(asio::ssl::host_name_verification(url_.host));
    return Talk(stream, beast::get_lowest_layer(stream));
  }

 private:
  using Handler = std::function<void(Failure)>;

  /// Starts an operation and waits for its end.
  template <class Start>
  Status Await(beast::tcp_stream& tcp, const char* action, Start start) {
    if (stop_.stop_requested()) return Cancelled();
    Failure failure = asio::error::would_block;
    tcp.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(request_.timeout_seconds)));
    start([&failure](Failure result) { failure = result; });
    const std::stop_callback cancel(
        stop_, [this, &tcp] { asio::post(context_, [&tcp] { tcp.cancel(); }); });
    context_.restart();
    context_.run();
    if (!failure) return {};
    if (stop_.stop_requested()) return Cancelled();
    if (failure == beast::error::timeout)
      return Fail(ErrorCode::kTimeout, std::string("no answer in time to ") + action, url_.host);
    return Fail(ErrorCode::kUnavailable, std::string("cannot ") + action + ": " + failure.message(),
                url_.host + ":" + url_.port);
  }

  Status Cancelled() const { return Fail(ErrorCode::kCancelled, "stopped by the user"); }

  Status Connect(beast::tcp_stream& tcp) {
    asio::ip::tcp::resolver resolver(context_);
    Failure failure;
    const auto places = resolver.resolve(url_.host, url_.port, failure);
    if (failure)
      return Fail(ErrorCode::kUnavailable, "the host cannot be found: " + failure.message(),
                  url_.host);
    return Await(tcp, "connect", [&](const Handler& done) {
      tcp.async_connect(places, [done](Failure result, const auto&) { done(result); });
    });
  }

  template <class Stream>
  Status Greet(Stream& stream, beast::tcp_stream& tcp) {
    if constexpr (std::is_same_v<Stream, beast::ssl_stream<beast::tcp_stream>>) {
      return Await(tcp, "agree on encryption", [&](const Handler& done) {
        stream.async_handshake(asio::ssl::stream_base::client, done);
      });
    }
    return {};
  }

  template <class Stream>
  Result<ClientResponse> Talk(Stream& stream, beast::tcp_stream& tcp) {
    ATUNNER_RETURN_IF_ERROR(Connect(tcp));
    ATUNNER_RETURN_IF_ERROR(Greet(stream, tcp));
    beast::http::request<beast::http::string_body> message(
        beast::http::string_to_verb(request_.method), url_.target, 11);
    message.set(beast::http::field::host, url_.host + ":" + url_.port);
    message.set(beast::http::field::user_agent, "atunner/" ATUNNER_VERSION);
    message.set(beast::http::field::connection, "close");
    for (const auto& [name, value] : request_.headers) message.set(name, value);
    message.body() = request_.body;
    message.prepare_payload();
    ATUNNER_RETURN_IF_ERROR(Await(tcp, "send", [&](const Handler& done) {
      beast::http::async_write(stream, message, [done](Failure result, size_t) { done(result); });
    }));
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::string_body> parser;
    parser.body_limit(request_.most_bytes);
    ATUNNER_RETURN_IF_ERROR(Await(tcp, "receive", [&](const Handler& done) {
      beast::http::async_read(stream, buffer, parser,
                              [done](Failure result, size_t) { done(result); });
    }));
    ClientResponse response;
    response.status = parser.get().result_int();
    for (const auto& field : parser.get())
      response.headers.emplace_back(Lower(std::string(field.name_string())),
                                    std::string(field.value()));
    response.body = std::move(parser.get().body());
    return response;
  }

  const ClientRequest& request_;
  ServiceUrl url_;
  std::stop_token stop_;
  asio::io_context context_;
};

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string ClientResponse::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

Result<ServiceUrl> ParseServiceUrl(std::string_view text) {
  const std::string where(text.substr(0, 200));
  const auto is_bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(text, is_bad)) return Invalid("a URL has no blanks", where);
  ServiceUrl url;
  if (text.starts_with("https://"))
    url.tls = true;
  else if (!text.starts_with("http://"))
    return Invalid("a service begins with http:// or https://", where);
  text.remove_prefix(url.tls ? 8 : 7);
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view host = text.substr(0, end);
  text.remove_prefix(end);
  url.target = text.starts_with('/') ? std::string(text) : "/" + std::string(text);
  url.target = url.target.substr(0, url.target.find('#'));
  url.port = url.tls ? "443" : "80";
  if (host.find('@') != std::string_view::npos)
    return Invalid("a URL must not hold a user's name or password", "",
                   "keys come from the environment or a file");
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    if (!IsPort(host.substr(colon + 1))) return Invalid("the port is no number", where);
    url.port = std::string(host.substr(colon + 1));
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return Invalid("a URL needs a host", where);
  url.host = std::string(host);
  return url;
}

Result<ClientResponse> Send(const ClientRequest& request, const std::stop_token& stop) {
  ATUNNER_TRY(ServiceUrl url, ParseServiceUrl(request.url));
  try {
    return Exchange(request, std::move(url), stop).Run();
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInternal, std::string("the request failed: ") + error.what());
  }
}

}  // namespace atunner::http
