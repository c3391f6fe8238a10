// A service on a local port that answers as a test scripts it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace atunner::llm {

class ScriptedEndpoint {
 public:
  /// From the whole request (headers and body) and its number, 0, 1, …, to the bytes to send. After
  /// them the connection is closed.
  using Script = std::function<std::string(const std::string& request, int number)>;

  explicit ScriptedEndpoint(Script script);
  ~ScriptedEndpoint();
  ScriptedEndpoint(const ScriptedEndpoint&) = delete;
  ScriptedEndpoint& operator=(const ScriptedEndpoint&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  int requests() const { return requests_; }

  /// A complete HTTP answer.
  static std::string Http(int status, const std::string& body, const std::string& headers = "");
  /// The answer of an OpenAI-compatible service with this text.
  static std::string OpenAi(const std::string& text);
  static std::string Anthropic(const std::string& text);

 private:
  void Serve();

  Script script_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> requests_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace atunner::llm
