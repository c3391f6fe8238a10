// A connection to a nats-server that is made when it is needed, and again when it breaks.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/nats/protocol.h"
#include "atunner/nats/url.h"

namespace atunner::nats {

struct ClientOptions {
  std::string name;    ///< by which the server lists this connection
  Path authorities;    ///< PEM file of certificates to trust beside the system's; "" for none
  double seconds = 5;  ///< for connecting, and for each call
};

/// Safe to use from several threads, of which one is served at a time. It has no thread of its own:
/// what the server sends meanwhile is read by the next call, which should come within two minutes.
/// Errors: kUnavailable if no server answers or the connection breaks twice, kTimeout if an answer
/// does not come in time, kInvalidInput at "--queue" if the server refuses the credentials or a
/// certificate file is wrong.
class Client {
 public:
  Client(Url url, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Connects if there is no connection.
  Status Connect();
  /// Publishes, and waits for the first answer. A status in it is no error here, except that nobody
  /// listens to the subject (503), which is kUnavailable. When the connection breaks meanwhile the
  /// request is sent once more, so that the server may have seen it twice.
  Result<Message> Request(const std::string& subject, std::string_view payload,
                          const Headers& headers = {});
  /// Publishes without waiting for the server.
  Status Publish(const std::string& subject, std::string_view payload);
  /// From now on, and after each reconnection, messages of `subject` are kept for Received().
  void Subscribe(const std::string& subject);
  /// The messages of subscriptions since the last call: those that other calls have read.
  std::vector<Message> Received();

  const Url& url() const { return url_; }

 private:
  class Connection;
  Status Open();
  template <class Work>
  auto Twice(const Work& work) -> decltype(work());

  Url url_;
  ClientOptions options_;
  std::mutex mutex_;
  std::vector<std::string> subjects_;
  std::vector<Message> received_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace atunner::nats
