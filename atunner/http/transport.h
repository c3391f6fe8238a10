// A connection in plain text or over TLS, as one stream for Beast. For the room's own sources.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstddef>
#include <optional>
#include <utility>

namespace atunner::http {

/// Bytes of a body that are read at once.
constexpr size_t kChunk = size_t{64} << 10;

/// For `co_await operation(…, Into(error))`: a failure lies in `error` then, and nothing is thrown.
inline auto Into(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

/// Reads and writes as Asio's AsyncReadStream and AsyncWriteStream. Deadlines are those of `tcp`.
class Transport {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  template <class... Arguments>
  explicit Transport(Arguments&&... arguments) : tcp(std::forward<Arguments>(arguments)...) {}

  executor_type get_executor() { return tcp.get_executor(); }

  /// All that follows is encrypted; a handshake by `tls` comes first.
  void Encrypt(boost::asio::ssl::context& context) { tls.emplace(tcp, context); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls) return tls->async_read_some(buffers, std::forward<Token>(token));
    return tcp.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls) return tls->async_write_some(buffers, std::forward<Token>(token));
    return tcp.async_write_some(buffers, std::forward<Token>(token));
  }

  boost::beast::tcp_stream tcp;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls;
};

}  // namespace atunner::http
