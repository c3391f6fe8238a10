#include "atunner/llm/scripted_endpoint_test.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/model/json/json.h"

namespace atunner::llm {
namespace {

/// Reads one request: its headers, and as many bytes of its body as they announce.
std::string ReadRequest(int socket) {
  std::string text;
  size_t wanted = std::string::npos;
  char buffer[4096];
  while (text.size() < wanted) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
    const size_t end = text.find("\r\n\r\n");
    const size_t length = text.find("Content-Length: ");
    if (wanted == std::string::npos && end != std::string::npos)
      wanted = end + 4 + (length < end ? std::strtoul(text.c_str() + length + 16, nullptr, 10) : 0);
  }
  return text;
}

}  // namespace

ScriptedEndpoint::ScriptedEndpoint(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* place = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, place, size) != 0 || ::listen(listener_, 16) != 0) std::abort();
  ::getsockname(listener_, place, &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

ScriptedEndpoint::~ScriptedEndpoint() {
  stop_ = true;
  thread_.join();
  ::close(listener_);
}

void ScriptedEndpoint::Serve() {
  while (!stop_) {
    pollfd waiting = {listener_, POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    const int socket = ::accept(listener_, nullptr, nullptr);
    if (socket < 0) continue;
    const std::string answer = script_(ReadRequest(socket), requests_++);
    (void)!::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(socket);
  }
}

std::string ScriptedEndpoint::Http(int status, const std::string& body,
                                   const std::string& headers) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}"
      "Connection: close\r\n\r\n{}",
      status, body.size(), headers, body);
}

std::string ScriptedEndpoint::OpenAi(const std::string& text) {
  const Json body{{"choices", {{{"message", {{"role", "assistant"}, {"content", text}}}}}},
                  {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 50}}}};
  return Http(200, DumpJson(body));
}

std::string ScriptedEndpoint::Anthropic(const std::string& text) {
  const Json body{{"content", {{{"type", "text"}, {"text", text}}}},
                  {"usage", {{"input_tokens", 100}, {"output_tokens", 50}}}};
  return Http(200, DumpJson(body));
}

}  // namespace atunner::llm
