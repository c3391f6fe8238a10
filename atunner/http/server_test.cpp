#include "atunner/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "atunner/base/random.h"
#include "atunner/http/client.h"
#include "atunner/http/self_signed_test.h"

namespace atunner::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Answers with what it got; /stream streams, /file sends a file, /upload stores.
class EchoHandler : public Handler {
 public:
  explicit EchoHandler(Path folder) : folder_(std::move(folder)) {}

  std::variant<BodyPlan, Response> Accept(const Request& head) override {
    if (head.target == "/forbidden") return Response{.status = 403, .body = "no"};
    if (head.target == "/upload") return BodyPlan{1 << 20, folder_ / "upload"};
    return BodyPlan{1000, {}};
  }
  Response Answer(const Request& request) override {
    if (request.target == "/stream") stream = std::make_shared<Stream>();
    ++answered;  // tests wait for it and then take the stream
    if (request.target == "/stream") {
      stream->Write("first\n");
      Response response;
      response.stream = stream;
      response.keep_alive = ": keep-alive\n";
      return response;
    }
    if (request.target == "/file") return Response{.file = folder_ / "upload"};
    if (request.target == "/gone") return Response{.file = folder_ / "none"};
    if (request.target == "/later") {
      Response response;
      response.later = [this]() -> std::optional<Response> {
        if (++polls < 3) return std::nullopt;
        return Response{.body = "at last"};
      };
      return response;
    }
    return Response{.body = request.method + " " + request.target + " " + request.body +
                            std::to_string(request.bytes)};
  }
  Response Refuse(int status, const std::string& detail) override {
    return Response{.status = status, .body = detail};
  }

  std::atomic<int> answered = 0;
  std::atomic<int> polls = 0;
  std::shared_ptr<Stream> stream;

 private:
  Path folder_;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() : handler_(folder_.path()) {}
  void SetUp() override { Start({}); }
  void Start(ServerOptions options) {
    server_.reset();
    options.threads = 2;
    auto started = Server::Start(options, handler_);
    ASSERT_TRUE(started) << started.error().ToString();
    server_ = *std::move(started);
  }
  Origin origin() const { return {"127.0.0.1", std::to_string(server_->port())}; }
  Result<Response> Get(const std::string& target) {
    return Call(origin(), {.method = "GET", .target = target});
  }
  int Connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  /// All that the server says until it closes.
  static std::string ReadAll(int fd) {
    std::string all;
    char bytes[4096];
    for (ssize_t got = 0; (got = ::read(fd, bytes, sizeof bytes)) > 0;)
      all.append(bytes, static_cast<size_t>(got));
    return all;
  }
  std::string Raw(const std::string& bytes) const {
    const int fd = Connect();
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
    std::string all = ReadAll(fd);
    ::close(fd);
    return all;
  }

  TemporaryDirectory folder_;
  EchoHandler handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersRequests) {
  const auto answer = Call(origin(), {.method = "POST", .target = "/x?y=1", .body = "hello "});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "POST /x?y=1 hello 6");
  EXPECT_EQ(Call(origin(), {.method = "HEAD", .target = "/x"})->body, "");
}

TEST_F(ServerTest, KeepsConnections) {
  const std::string request = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string all = Raw(request + request);
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(handler_.answered, 2);
}

TEST_F(ServerTest, RefusesWhatIsNoRequest) {
  for (const char* bytes :
       {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nbad\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "\x16\x03\x01\x02\x03\x04"})
    EXPECT_THAT(Raw(bytes), StartsWith("HTTP/1.1 400 ")) << bytes;
  EXPECT_EQ(handler_.answered, 0);
  EXPECT_EQ(Get("/x")->status, 200);
}

TEST_F(ServerTest, RefusesLongHeaders) {
  const std::string header = "GET / HTTP/1.1\r\nA: " + std::string(20000, 'a') + "\r\n\r\n";
  EXPECT_THAT(Raw(header), StartsWith("HTTP/1.1 431 "));
}

TEST_F(ServerTest, RefusesBeforeTheBodyIsRead) {
  EXPECT_EQ(Call(origin(), {.method = "POST", .target = "/forbidden", .body = "abc"})->status, 403);
  const auto large = Call(origin(),
                          {.method = "POST", .target = "/", .body = std::string(1001, 'a')});
  EXPECT_EQ(large->status, 413);
  const std::string announced = "POST / HTTP/1.1\r\nContent-Length: 2147483648\r\n\r\n";
  EXPECT_THAT(Raw(announced), StartsWith("HTTP/1.1 413 "));
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                              std::string(2000, 'a') + "\r\n0\r\n\r\n";
  EXPECT_THAT(Raw(chunked), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, UploadsGoToDiskAndComeBack) {
  std::string content;
  Random random(5);
  for (int i = 0; i < 300000; ++i) content += static_cast<char>(random.Below(256));
  ASSERT_TRUE(WriteFileAtomic(folder_.path() / "source", content));
  Request upload{.method = "POST", .target = "/upload", .file = folder_.path() / "source"};
  EXPECT_THAT(Call(origin(), upload)->body, HasSubstr("300000"));
  EXPECT_EQ(ReadFile(folder_.path() / "upload").value(), content);
  EXPECT_EQ(Get("/file")->body, content);
  EXPECT_EQ(Get("/gone")->status, 404);
  CallOptions options;
  options.to_file = folder_.path() / "copy";
  ASSERT_TRUE(Call(origin(), {.method = "GET", .target = "/file"}, options));
  EXPECT_EQ(ReadFile(folder_.path() / "copy").value(), content);
}

TEST_F(ServerTest, AnUploadThatBreaksOffLeavesNoFile) {
  EXPECT_EQ(Raw("POST /upload HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf").find("200 OK"),
            std::string::npos);
  EXPECT_FALSE(Exists(folder_.path() / "upload"));
}

TEST_F(ServerTest, CutsOffSlowClients) {
  ServerOptions options;
  options.header_seconds = 0.05;
  options.idle_seconds = 0.05;
  Start(options);
  const int silent = Connect();
  EXPECT_EQ(ReadAll(silent), "");  // returns, because the server closes
  ::close(silent);
  const int slow = Connect();
  (void)::send(slow, "GET / HT", 8, MSG_NOSIGNAL);
  EXPECT_EQ(ReadAll(slow), "");
  ::close(slow);
  options.body_seconds = 0.05;
  options.slowest_rate = 1e9;
  Start(options);
  const int body = Connect();
  const std::string half = "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf";
  (void)::send(body, half.data(), half.size(), MSG_NOSIGNAL);
  EXPECT_THAT(ReadAll(body), testing::Not(HasSubstr("200 OK")));
  ::close(body);
}

TEST_F(ServerTest, StreamsUntilTheEnd) {
  ServerOptions options;
  options.keep_alive_seconds = 0.05;
  Start(options);
  std::string all;
  std::thread client([&] { all = Get("/stream")->body; });
  while (handler_.answered == 0) std::this_thread::yield();
  ::usleep(200000);
  handler_.stream->Write("second\n");
  handler_.stream->Finish();
  client.join();
  EXPECT_THAT(all, StartsWith("first\n: keep-alive\n"));
  EXPECT_THAT(all, testing::EndsWith("second\n"));
  EXPECT_TRUE(handler_.stream->closed());
}

TEST_F(ServerTest, AStreamNotesThatItsClientIsGone) {
  ServerOptions options;
  options.keep_alive_seconds = 0.02;
  Start(options);
  const int fd = Connect();
  const std::string request = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
  (void)::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  while (handler_.answered == 0) std::this_thread::yield();
  const std::shared_ptr<Stream> stream = handler_.stream;
  ::close(fd);
  while (!stream->closed()) std::this_thread::yield();  // ctest's time-out is the failure
}

TEST(Stream, CutsOffClientsThatDoNotRead) {
  Stream stream;
  for (int i = 0; i < 20; ++i) stream.Write(std::string(100000, 'a'));
  EXPECT_TRUE(stream.closed());
}

TEST_F(ServerTest, AnswersLater) { EXPECT_EQ(Get("/later")->body, "at last"); }

TEST_F(ServerTest, DrainsStreamsAndIdleConnections) {
  const int idle = Connect();
  std::string all;
  std::thread client([&] { all = Get("/stream")->body; });
  while (handler_.answered == 0) std::this_thread::yield();
  server_->Drain(20);
  client.join();
  EXPECT_EQ(all, "first\n");
  EXPECT_EQ(ReadAll(idle), "");
  ::close(idle);
  EXPECT_EQ(server_->connections(), 0);
  EXPECT_EQ(Get("/x").error().code, ErrorCode::kUnavailable);
}

TEST_F(ServerTest, RefusesAddressesInUse) {
  ServerOptions options;
  options.port = server_->port();
  EXPECT_EQ(Server::Start(options, handler_).error().where, "listen");
  options.address = "nowhere";
  EXPECT_EQ(Server::Start(options, handler_).error().where, "listen");
}

/// The server shows a certificate for 127.0.0.1 that signs itself.
class TlsTest : public ServerTest {
 protected:
  void SetUp() override {
    WriteSelfSigned(certificate_, key_);
    ServerOptions options;
    options.tls_certificate = certificate_;
    options.tls_key = key_;
    options.header_seconds = 0.3;
    Start(options);
  }
  Origin Trusted(const std::string& host = "127.0.0.1") const {
    return {host, std::to_string(server_->port()), true, certificate_};
  }

  Path certificate_ = folder_.path() / "certificate.pem";
  Path key_ = folder_.path() / "key.pem";
};

TEST_F(TlsTest, AnswersUploadsAndStreams) {
  const auto answer = Call(Trusted(), {.method = "POST", .target = "/x", .body = "hello "});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->body, "POST /x hello 6");
  ASSERT_TRUE(WriteFileAtomic(folder_.path() / "big", std::string(900'000, 'b')));
  const auto sent = Call(Trusted(),
                         {.method = "POST", .target = "/upload", .file = folder_.path() / "big"});
  ASSERT_TRUE(sent) << sent.error().ToString();
  EXPECT_EQ(Call(Trusted(), {.method = "GET", .target = "/file"})->body.size(), 900'000);
  std::thread end([&] {
    while (!handler_.stream) std::this_thread::yield();
    handler_.stream->Finish();
  });
  EXPECT_EQ(Call(Trusted(), {.method = "GET", .target = "/stream"})->body, "first\n");
  end.join();
}

TEST_F(TlsTest, ClientsWantATrustedCertificateOfTheRightHost) {
  Origin unknown = Trusted();
  unknown.authorities.clear();
  const auto untrusted = Call(unknown, {.method = "GET", .target = "/x"});
  ASSERT_FALSE(untrusted);
  EXPECT_THAT(untrusted.error().what, HasSubstr("certificate is not accepted"));
  EXPECT_THAT(untrusted.error().hint, HasSubstr("--ca"));
  EXPECT_FALSE(Call(Trusted("localhost"), {.method = "GET", .target = "/x"}));
  Origin wrong = Trusted();
  wrong.authorities = key_;
  EXPECT_EQ(Call(wrong, {.method = "GET", .target = "/x"}).error().where, "--ca");
}

/// A proxy for one connection: it answers CONNECT, and then only carries bytes.
class OneTunnel {
 public:
  explicit OneTunnel(uint16_t to) : to_(to), thread_([this] { Carry(); }) {}
  ~OneTunnel() { thread_.join(); }
  uint16_t port() const { return listener_.local_endpoint().port(); }
  std::string head;  ///< of the request, after the destructor of the client's connection

 private:
  using tcp = boost::asio::ip::tcp;
  void Carry() {
    tcp::socket client(context_);
    listener_.accept(client);
    boost::asio::read_until(client, boost::asio::dynamic_buffer(head), "\r\n\r\n");
    tcp::socket server(context_);
    server.connect({boost::asio::ip::address_v4::loopback(), to_});
    boost::asio::write(client, boost::asio::buffer(std::string("HTTP/1.1 200 Yes\r\n\r\n")));
    std::thread back([&] { Copy(server, client); });
    Copy(client, server);
    back.join();
  }
  static void Copy(tcp::socket& from, tcp::socket& to) {
    std::array<char, 4096> bytes;
    boost::system::error_code error;
    while (!error) {
      const size_t got = from.read_some(boost::asio::buffer(bytes), error);
      if (!error) boost::asio::write(to, boost::asio::buffer(bytes, got), error);
    }
    to.shutdown(tcp::socket::shutdown_send, error);
  }

  uint16_t to_;
  boost::asio::io_context context_;
  tcp::acceptor listener_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

TEST_F(TlsTest, GoesThroughTheProxyOfTheEnvironment) {
  OneTunnel tunnel(server_->port());
  CallOptions options;
  options.environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name != "https_proxy") return std::nullopt;
    return "http://127.0.0.1:" + std::to_string(tunnel.port());
  };
  const auto refused = Call(Trusted("far.example"), {.method = "GET", .target = "/x"}, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("certificate is not accepted"))
      << "the tunnel does not stand for the server";
  EXPECT_THAT(tunnel.head, StartsWith("CONNECT far.example:"));
}

TEST_F(TlsTest, ASinkTakesTheBodyAsItComes) {
  ASSERT_TRUE(WriteFileAtomic(folder_.path() / "upload", "file"));
  std::thread end([&] {
    while (!handler_.stream) std::this_thread::yield();
    handler_.stream->Write("second\n");
    handler_.stream->Finish();
  });
  std::string taken;
  CallOptions options;
  options.sink = [&](std::string_view bytes) {
    taken += bytes;
    return true;
  };
  const auto all = Call(Trusted(), {.method = "GET", .target = "/stream"}, options);
  end.join();
  ASSERT_TRUE(all) << all.error().ToString();
  EXPECT_EQ(all->body, "");
  EXPECT_EQ(taken, "first\nsecond\n");
  options.sink = [](std::string_view) { return false; };
  const auto ended = Call(Trusted(), {.method = "GET", .target = "/file"}, options);
  EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
}

TEST_F(TlsTest, PlainTextAndSilenceAreClosed) {
  EXPECT_THAT(Raw("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"), testing::Not(HasSubstr("200")));
  const int silent = Connect();
  ReadAll(silent);  // ends when the time for the handshake is over
  ::close(silent);
  EXPECT_EQ(handler_.answered, 0);
  EXPECT_TRUE(Call(Trusted(), {.method = "GET", .target = "/x"}));
}

TEST_F(TlsTest, WrongFilesAreNamed) {
  const auto problem = [&](const Path& certificate, const Path& key) {
    ServerOptions options;
    options.tls_certificate = certificate;
    options.tls_key = key;
    const auto started = Server::Start(options, handler_);
    return started ? "" : started.error().where;
  };
  EXPECT_EQ(problem(certificate_, ""), "--tls-key");
  EXPECT_EQ(problem("", key_), "--tls-cert");
  EXPECT_EQ(problem(key_, key_), "--tls-cert");
  EXPECT_EQ(problem(certificate_, folder_.path() / "none"), "--tls-key");
  const Path other = folder_.path() / "other.pem";
  WriteSelfSigned(folder_.path() / "other_certificate.pem", other);
  EXPECT_EQ(problem(certificate_, other), "--tls-key");
}

}  // namespace
}  // namespace atunner::http
