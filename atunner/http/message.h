// Requests and answers as plain values, and what a program that serves them implements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/base/files.h"

namespace atunner::http {

/// Names are compared without regard to case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> list) : list_(list) {}
  void Set(std::string_view name, std::string value);
  /// The value of the first header of this name; "" if there is none.
  std::string Get(std::string_view name) const;
  bool Has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& list() const { return list_; }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

struct Request {
  std::string method;  ///< "GET"
  std::string target;  ///< "/api/v1/runs?limit=5", as it was sent
  Headers headers;
  std::string body;
  Path file;           ///< holds the body instead, if the plan said so
  uint64_t bytes = 0;  ///< of the body
  std::string remote;  ///< address of the client
};

/// Bytes that a handler sends bit by bit, from any thread, as long as the client listens.
class Stream {
 public:
  /// Ignored after Finish, or when the client is gone. A client that lets more than a megabyte wait
  /// is cut off; it may resume.
  void Write(std::string_view bytes);
  /// Ends the answer after what was written.
  void Finish();
  /// True when nobody listens any more.
  bool closed() const;
  /// Bytes that the client has not taken yet.
  size_t waiting() const;
  /// `closed` is called once, when nobody listens any more or the answer has ended.
  void OnClose(std::function<void()> closed);

  // For the server.
  void OnChange(std::function<void()> wake);
  /// Takes what was written. The second is true at the end.
  std::pair<std::string, bool> Take();
  void Close();

 private:
  mutable std::mutex mutex_;
  std::string waiting_;
  bool finished_ = false;
  bool closed_ = false;
  std::function<void()> wake_;
  std::function<void()> on_close_;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  Path file;                       ///< sent instead of `body` if not empty
  std::shared_ptr<Stream> stream;  ///< sent instead of `body` if there is one
  std::string keep_alive;          ///< sent by a stream after 15 seconds of silence
  /// Asked several times a second, instead of all above, until it returns an answer.
  std::function<std::optional<Response>()> later;
};

/// Where the body of a request goes, and how large it may be.
struct BodyPlan {
  uint64_t max_bytes = 0;
  Path file;  ///< empty: Request::body
};

/// Called from several threads.
class Handler {
 public:
  virtual ~Handler() = default;
  /// Looks at a request without its body: either it is refused, or the body is read as planned.
  virtual std::variant<BodyPlan, Response> Accept(const Request& head) = 0;
  virtual Response Answer(const Request& request) = 0;
  /// The answer to what is no request, or one beyond the limits.
  virtual Response Refuse(int status, const std::string& detail) = 0;
};

/// "Not Found" for 404.
std::string_view ReasonOf(int status);

}  // namespace atunner::http
