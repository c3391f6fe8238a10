// Bytes of foreign clients over a real connection: whatever they are, the server answers or closes,
// and goes on.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "atunner/base/result.h"
#include "atunner/http/server.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::http {
namespace {

constexpr uint64_t kBodyBytes = 4096;
constexpr int kPatienceSeconds = 5;

class Echo : public Handler {
 public:
  std::variant<BodyPlan, Response> Accept(const Request& head) override {
    if (head.target == "/refused") return Refuse(403, "refused");
    return BodyPlan{kBodyBytes, {}};
  }
  Response Answer(const Request& request) override {
    ATUNNER_CHECK(request.body.size() <= kBodyBytes && request.bytes == request.body.size());
    Response response;
    response.body = request.method + " " + request.target + " " + request.body;
    return response;
  }
  Response Refuse(int status, const std::string& detail) override {
    Response response;
    response.status = status;
    response.body = detail;
    return response;
  }
};

class Client {
 public:
  Client() {
    ServerOptions options;
    options.threads = 1;
    server_ = Server::Start(options, echo_).value();
  }
  /// Sends all and nothing more. Returns everything that comes back until the server closes.
  std::string Send(std::string_view bytes) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{kPatienceSeconds, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ATUNNER_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // the server has closed, as it may
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    ::shutdown(socket, SHUT_WR);
    std::string answer;
    char chunk[4096];
    for (ssize_t got = 0; (got = ::recv(socket, chunk, sizeof chunk, 0)) != 0;) {
      // EAGAIN: it neither answers nor closes. A reset is an end, too.
      if (got < 0) ATUNNER_CHECK(errno == ECONNRESET);
      if (got < 0) break;
      answer.append(chunk, static_cast<size_t>(got));
    }
    ::close(socket);
    return answer;
  }

 private:
  Echo echo_;
  std::unique_ptr<Server> server_;
};

bool Use(std::string_view bytes) {
  static const Client client;
  const std::string answer = client.Send(bytes);
  ATUNNER_CHECK(answer.empty() || answer.starts_with("HTTP/1.1 "));
  return answer.starts_with("HTTP/1.1 200 ");
}

}  // namespace
}  // namespace atunner::http

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::http::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::http {
namespace {

TEST(ServerFuzz, DamagedRequestsAreAnsweredOrClosed) {
  const std::string good =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nCookie: a=b; c=d\r\n\r\nbody"
      "PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
      "GET /refused HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  ASSERT_TRUE(Use(good));
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) accepted += Use(Mutated(good, random));
  EXPECT_GT(accepted, 50);
  EXPECT_LT(accepted, 1000);
  EXPECT_TRUE(Use(good)) << "the server goes on";
}

}  // namespace
}  // namespace atunner::http
#endif
