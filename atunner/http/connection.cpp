#include "atunner/http/connection.h"

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "atunner/http/transport.h"

namespace atunner::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

/// What a connection keeps for the head of its next request; a thousand streams need little memory.
constexpr size_t kHeadChunk = 4096;
constexpr std::chrono::milliseconds kLaterInterval{100};

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

/// One client, from its connection to its end.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)), shared_(shared), timer_(stream_.get_executor()) {
    error_code ignored;
    const auto remote = stream_.tcp.socket().remote_endpoint(ignored);
    if (!ignored) remote_ = remote.address().to_string();
    stream_.tcp.socket().set_option(tcp::no_delay(true), ignored);
    if (shared_.tls) stream_.Encrypt(*shared_.tls);
  }

  asio::awaitable<void> Serve();
  /// Ends the connection when its current answer is sent; a stream ends at once.
  void EndSoon() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      if (self->sending_) self->sending_->Finish();
      if (self->idle_) self->stream_.tcp.cancel();
    });
  }

 private:
  using Parser = beast::http::request_parser<beast::http::buffer_body>;

  /// The TLS handshake, if there is to be one.
  asio::awaitable<bool> Greet();
  asio::awaitable<void> Close();
  /// Serves one request. False when the connection is to be closed.
  asio::awaitable<bool> ServeOne();
  asio::awaitable<bool> ReadHead(Parser& parser);
  asio::awaitable<int> ReadBody(Parser& parser, const BodyPlan& plan, Request& request);
  asio::awaitable<int> ReadInto(Parser& parser, const BodyPlan& plan, Request& request,
                                std::ofstream& file);
  asio::awaitable<void> Continue(Parser& parser);
  Request HeadOf(const Parser& parser) const;
  asio::awaitable<bool> Send(Response response, bool keep, bool head_only);
  asio::awaitable<bool> SendBytes(Response response, bool keep, bool head_only);
  asio::awaitable<bool> SendFile(Response response, bool keep);
  asio::awaitable<void> SendStream(Response response);
  asio::awaitable<Response> Wait(Response response);
  asio::awaitable<std::string> NextBytes(Stream& source, const std::string& keep_alive, bool& end);
  /// The time by which `bytes` more must have passed.
  void AllowTimeFor(SteadyClock::time_point since, uint64_t bytes) {
    const ServerOptions& options = shared_.options;
    stream_.tcp.expires_at(since + Milliseconds(options.body_seconds +
                                                static_cast<double>(bytes) / options.slowest_rate));
  }

  Transport stream_;
  beast::flat_buffer buffer_;
  Shared& shared_;
  asio::steady_timer timer_;
  std::shared_ptr<Stream> sending_;
  std::string remote_;
  bool idle_ = false;
};

template <class Body>
void FillHead(beast::http::response<Body>& out, const Response& response, bool keep) {
  out.version(11);
  out.result(static_cast<unsigned>(response.status));
  out.reason(std::string(ReasonOf(response.status)));
  for (const auto& [name, value] : response.headers.list()) out.set(name, value);
  out.keep_alive(keep);
}

int StatusOf(const error_code& error) {
  if (error == beast::http::error::header_limit) return 431;
  if (error == beast::http::error::body_limit) return 413;
  return 400;
}

/// True for what is the fault of the request's text, not of the network.
bool IsMalformed(const error_code& error) {
  return error.category() == make_error_code(beast::http::error::bad_method).category() &&
         error != beast::http::error::end_of_stream && error != beast::http::error::partial_message;
}

asio::awaitable<bool> Connection::Greet() {
  if (!stream_.tls) co_return true;
  error_code error;
  stream_.tcp.expires_after(Milliseconds(shared_.options.header_seconds));
  co_await stream_.tls->async_handshake(asio::ssl::stream_base::server, Into(error));
  co_return !error;
}

asio::awaitable<void> Connection::Serve() {
  // g++ 12 loses its way where a co_await stands in a condition that ends a coroutine.
  bool goes_on = co_await Greet();
  if (!goes_on) co_return;
  while (goes_on) goes_on = co_await ServeOne();
  co_await Close();
}

asio::awaitable<void> Connection::Close() {
  error_code ignored;
  if (stream_.tls) {
    stream_.tcp.expires_after(std::chrono::seconds(1));
    co_await stream_.tls->async_shutdown(Into(ignored));
    co_return;
  }
  stream_.tcp.socket().shutdown(tcp::socket::shutdown_send, ignored);
  // What the client still sends is read for a moment: closing with unread bytes would reset the
  // connection, and the client would lose the answer.
  stream_.tcp.expires_after(std::chrono::seconds(1));
  std::array<char, 4096> unread;
  for (int i = 0; i < 64 && !ignored; ++i)
    co_await stream_.async_read_some(asio::buffer(unread), Into(ignored));
}

asio::awaitable<bool> Connection::ReadHead(Parser& parser) {
  const ServerOptions& options = shared_.options;
  error_code error;
  if (buffer_.size() == 0) {
    idle_ = true;
    stream_.tcp.expires_after(Milliseconds(options.idle_seconds));
    const size_t got = co_await stream_.async_read_some(buffer_.prepare(kHeadChunk), Into(error));
    buffer_.commit(got);
    idle_ = false;
    if (error) co_return false;
  }
  stream_.tcp.expires_after(Milliseconds(options.header_seconds));
  co_await beast::http::async_read_header(stream_, buffer_, parser, Into(error));
  if (IsMalformed(error))
    co_await Send(shared_.handler.Refuse(StatusOf(error), error.message()), false, false);
  co_return !error;
}

Request Connection::HeadOf(const Parser& parser) const {
  const auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message)
    request.headers.Set(std::string(field.name_string()), std::string(field.value()));
  request.remote = remote_;
  return request;
}

asio::awaitable<void> Connection::Continue(Parser& parser) {
  if (!beast::iequals(parser.get()[beast::http::field::expect], "100-continue")) co_return;
  beast::http::response<beast::http::empty_body> answer(beast::http::status::continue_, 11);
  error_code ignored;
  co_await beast::http::async_write(stream_, answer, Into(ignored));
}

asio::awaitable<int> Connection::ReadInto(Parser& parser, const BodyPlan& plan, Request& request,
                                          std::ofstream& file) {
  std::vector<char> chunk(kChunk);
  const auto since = SteadyClock::now();
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = chunk.data();
    body.size = chunk.size();
    AllowTimeFor(since, request.bytes);
    error_code error;
    co_await beast::http::async_read(stream_, buffer_, parser, Into(error));
    const size_t got = chunk.size() - body.size;
    request.bytes += got;
    if (error && error != beast::http::error::need_buffer)
      co_return IsMalformed(error) ? StatusOf(error) : 408;
    if (request.bytes > plan.max_bytes) co_return 413;
    if (plan.file.empty())
      request.body.append(chunk.data(), got);
    else if (!file.write(chunk.data(), static_cast<std::streamsize>(got)))
      co_return 503;
  }
  co_return 0;
}

asio::awaitable<int> Connection::ReadBody(Parser& parser, const BodyPlan& plan, Request& request) {
  const auto length = parser.content_length();
  if (length && *length > plan.max_bytes) co_return 413;
  co_await Continue(parser);
  std::ofstream file;
  if (!plan.file.empty()) {
    file.open(plan.file, std::ios::binary);
    if (!file) co_return 503;
    request.file = plan.file;
  }
  const int status = co_await ReadInto(parser, plan, request, file);
  if (plan.file.empty()) co_return status;
  file.close();
  co_return status == 0 && !file ? 503 : status;
}

void RemoveFile(const Path& file) {
  std::error_code ignored;
  if (!file.empty()) std::filesystem::remove(file, ignored);
}

std::string BodyProblem(int status, const BodyPlan& plan) {
  if (status == 413) return "the body has more than " + std::to_string(plan.max_bytes) + " bytes";
  if (status == 503) return "the body cannot be written to disk";
  if (status == 408) return "the body did not come in time";
  return "the body is malformed";
}

asio::awaitable<bool> Connection::ServeOne() {
  Parser parser;
  parser.header_limit(shared_.options.header_bytes);
  parser.body_limit(std::numeric_limits<uint64_t>::max());  // BodyPlan has the limit
  if (!co_await ReadHead(parser)) co_return false;
  Request request = HeadOf(parser);
  const bool head_only = request.method == "HEAD";
  bool keep = parser.keep_alive();
  auto accepted = shared_.handler.Accept(request);
  if (auto* refused = std::get_if<Response>(&accepted)) {
    // What is left of the body is not read.
    co_return co_await Send(std::move(*refused), keep && parser.is_done(), head_only);
  }
  const BodyPlan plan = std::get<BodyPlan>(accepted);
  const int problem = co_await ReadBody(parser, plan, request);
  if (problem != 0) {
    RemoveFile(request.file);
    co_return co_await Send(shared_.handler.Refuse(problem, BodyProblem(problem, plan)), false,
                            head_only);
  }
  Response response = shared_.handler.Answer(request);
  keep = keep && !shared_.draining;
  co_return co_await Send(std::move(response), keep, head_only);
}

asio::awaitable<Response> Connection::Wait(Response response) {
  while (response.later) {
    auto ready = response.later();
    if (ready) {
      response = *std::move(ready);
      continue;
    }
    timer_.expires_after(kLaterInterval);
    error_code ignored;
    co_await timer_.async_wait(Into(ignored));
  }
  co_return response;
}

asio::awaitable<bool> Connection::Send(Response response, bool keep, bool head_only) {
  if (response.later) response = co_await Wait(std::move(response));
  if (response.stream && !head_only) {
    co_await SendStream(std::move(response));
    co_return false;
  }
  if (!response.file.empty() && !head_only) co_return co_await SendFile(std::move(response), keep);
  co_return co_await SendBytes(std::move(response), keep, head_only);
}

asio::awaitable<bool> Connection::SendBytes(Response response, bool keep, bool head_only) {
  error_code error;
  AllowTimeFor(SteadyClock::now(), response.body.size());
  const bool without = response.status == 204 || response.status == 304;
  if (head_only || without) {
    beast::http::response<beast::http::empty_body> out;
    FillHead(out, response, keep);
    if (head_only) out.content_length(response.body.size());
    co_await beast::http::async_write(stream_, out, Into(error));
    co_return keep && !error;
  }
  beast::http::response<beast::http::string_body> out;
  FillHead(out, response, keep);
  out.body() = std::move(response.body);
  out.prepare_payload();
  co_await beast::http::async_write(stream_, out, Into(error));
  co_return keep && !error;
}

asio::awaitable<bool> Connection::SendFile(Response response, bool keep) {
  beast::http::response<beast::http::file_body> out;
  FillHead(out, response, keep);
  error_code error;
  out.body().open(response.file.c_str(), beast::file_mode::scan, error);
  if (error) {
    co_return co_await SendBytes(shared_.handler.Refuse(404, "the file is gone"), keep, false);
  }
  AllowTimeFor(SteadyClock::now(), out.body().size());
  out.prepare_payload();
  co_await beast::http::async_write(stream_, out, Into(error));
  co_return keep && !error;
}

asio::awaitable<std::string> Connection::NextBytes(Stream& source, const std::string& keep_alive,
                                                   bool& end) {
  const auto silence = SteadyClock::now() + Milliseconds(shared_.options.keep_alive_seconds);
  for (;;) {
    // The timer is set before the look at the stream, so that a change in between is not missed.
    timer_.expires_at(silence);
    auto [bytes, ended] = source.Take();
    end = ended;
    if (ended || !bytes.empty()) co_return std::move(bytes);
    if (SteadyClock::now() >= silence && !keep_alive.empty()) co_return keep_alive;
    error_code ignored;
    co_await timer_.async_wait(Into(ignored));
  }
}

asio::awaitable<void> Connection::SendStream(Response response) {
  const std::shared_ptr<Stream> source = response.stream;
  sending_ = source;
  source->OnChange([weak = weak_from_this(), executor = stream_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->timer_.cancel();
    });
  });
  beast::http::response<beast::http::empty_body> head;
  FillHead(head, response, false);
  head.chunked(true);
  beast::http::response_serializer<beast::http::empty_body> serializer(head);
  error_code error;
  AllowTimeFor(SteadyClock::now(), 0);
  co_await beast::http::async_write_header(stream_, serializer, Into(error));
  for (bool end = false; !end && !error;) {
    const std::string bytes = co_await NextBytes(*source, response.keep_alive, end);
    AllowTimeFor(SteadyClock::now(), bytes.size());
    if (!bytes.empty())
      co_await asio::async_write(stream_, beast::http::make_chunk(asio::buffer(bytes)),
                                 Into(error));
  }
  if (!error) co_await asio::async_write(stream_, beast::http::make_chunk_last(), Into(error));
  source->Close();
  sending_ = nullptr;
}

/// Runs a connection and keeps it in the list of those that can be told to end.
asio::awaitable<void> ServeClient(std::shared_ptr<Connection> connection, Shared& shared) {
  std::list<std::function<void()>>::iterator place;
  {
    const std::scoped_lock lock(shared.mutex);
    place = shared.enders.insert(shared.enders.end(), [connection] { connection->EndSoon(); });
  }
  try {
    co_await connection->Serve();
  } catch (const std::exception&) {  // out of memory: this connection ends, the server does not
  }
  const std::scoped_lock lock(shared.mutex);
  shared.enders.erase(place);
  shared.ended.notify_all();
}

}  // namespace

void StartClient(tcp::socket socket, Shared& shared) {
  const auto executor = socket.get_executor();
  auto connection = std::make_shared<Connection>(std::move(socket), shared);
  asio::co_spawn(executor, ServeClient(std::move(connection), shared), asio::detached);
}

}  // namespace atunner::http
