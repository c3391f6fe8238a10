#include "atunner/nats/client.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "atunner/http/tls.h"
#include "atunner/model/json/json.h"

namespace atunner::nats {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using TimePoint = std::chrono::steady_clock::time_point;

/// Subscriptions to subjects of users have numbers from here; those below are inboxes of requests.
constexpr uint64_t kFirstSubject = uint64_t{1} << 32;
constexpr size_t kMostReceived = 10'000;
constexpr int kNoResponders = 503;

/// Inboxes of different connections must differ, and nobody should be able to guess them.
std::string RandomInbox() {
  std::random_device device;
  return fmt::format("_INBOX.{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

/// One connection. All its operations run while Pump runs, in the thread that calls it.
class Client::Connection {
 public:
  Connection(const Url& url, const ClientOptions& options)
      : url_(url), options_(options), socket_(context_), inbox_(RandomInbox()) {}

  Status Open(const std::vector<std::string>& subjects) {
    const TimePoint deadline = Deadline();
    ATUNNER_RETURN_IF_ERROR(Reach(deadline));
    ATUNNER_RETURN_IF_ERROR(Pump([this] { return info_.has_value(); }, deadline));
    ATUNNER_TRY(const Json info, ParseJson(*info_, "INFO"));
    if (url_.tls || info.value("tls_required", false)) ATUNNER_RETURN_IF_ERROR(Encrypt(deadline));
    std::string text = "CONNECT " + DumpJson(ConnectJson()) + "\r\nPING\r\n";
    for (size_t i = 0; i < subjects.size(); ++i)
      text += SubscribeText(subjects[i], kFirstSubject + i);
    ATUNNER_RETURN_IF_ERROR(Send(std::move(text), deadline));
    return Pump([this] { return pongs_ > 0; }, deadline);
  }

  Result<Message> Request(const std::string& subject, std::string_view payload,
                          const Headers& headers) {
    const TimePoint deadline = Deadline();
    const uint64_t number = ++last_request_;
    const std::string reply = fmt::format("{}.{}", inbox_, number);
    std::optional<Message>& answer = answers_[number];
    Status done = Send(SubscribeText(reply, number) + UnsubscribeText(number, 1) +
                           PublishText(subject, reply, headers, payload),
                       deadline);
    if (done) done = Pump([&] { return answer.has_value(); }, deadline);
    std::optional<Message> got = std::move(answer);
    answers_.erase(number);
    if (got) return *std::move(got);
    if (done.error().code == ErrorCode::kTimeout)
      (void)Send(UnsubscribeText(number, 0), Deadline());
    return std::unexpected(std::move(done).error());
  }

  Status Publish(const std::string& subject, std::string_view payload) {
    ATUNNER_RETURN_IF_ERROR(Send(PublishText(subject, "", {}, payload), Deadline()));
    return Read();
  }

  /// Takes what has come meanwhile, without waiting.
  Status Read() {
    const Status read = Pump([] { return false; }, std::chrono::steady_clock::now());
    return read || read.error().code == ErrorCode::kTimeout ? Status() : read;
  }

  std::vector<Message> TakeReceived() { return std::exchange(received_, {}); }

 private:
  TimePoint Deadline() const {
    return std::chrono::steady_clock::now() +
           std::chrono::milliseconds(static_cast<int64_t>(options_.seconds * 1e3));
  }

  Json ConnectJson() const {
    Json json{{"verbose", false}, {"pedantic", false},     {"lang", "c++"},
              {"protocol", 1},    {"headers", true},       {"no_responders", true},
              {"echo", true},     {"name", options_.name}, {"version", ATUNNER_VERSION}};
    if (!url_.token.empty()) json["auth_token"] = url_.token;
    if (!url_.user.empty()) json["user"] = url_.user;
    if (!url_.user.empty()) json["pass"] = url_.password;
    return json;
  }

  Error Broken(const std::string& what) const {
    return {ErrorCode::kUnavailable, what, url_.Text(), "is nats-server running there?"};
  }

  Status Reach(TimePoint deadline) {
    asio::ip::tcp::resolver resolver(context_);
    bool connected = false;
    resolver.async_resolve(url_.host, url_.port, [&](error_code error, const auto& found) {
      if (error) return Note(error, "the name is not known");
      asio::async_connect(socket_, found, [&](error_code failed, const auto&) {
        if (failed) return Note(failed, "no connection");
        connected = true;
      });
    });
    const Status reached = Wait([&] { return connected; }, deadline);
    if (!reached) Abandon([&] { resolver.cancel(); });
    if (reached) socket_.set_option(asio::ip::tcp::no_delay(true));
    return reached;
  }

  /// Ends what is in flight: it must not outlive the variables that it refers to.
  void Abandon(const std::function<void()>& cancel = {}) {
    if (cancel) cancel();
    error_code ignored;
    socket_.close(ignored);
    context_.restart();
    context_.run_for(std::chrono::seconds(1));
  }

  Status Encrypt(TimePoint deadline) {
    ATUNNER_RETURN_IF_ERROR(http::TrustAuthorities(tls_context_, options_.authorities));
    tls_.emplace(socket_, tls_context_);
    if (SSL_set_tlsext_host_name(tls_->native_handle(), url_.host.c_str()) != 1)
      return std::unexpected(Broken("the host's name cannot be set"));
    tls_->set_verify_callback(asio::ssl::host_name_verification(url_.host));
    bool greeted = false;
    tls_->async_handshake(asio::ssl::stream_base::client, [&](error_code error) {
      greeted = !error;
      if (error)
        failure_ = Error{ErrorCode::kUnavailable,
                         "the server's certificate is not accepted: " + error.message(),
                         url_.Text(), "name its authority by --ca FILE or in $SSL_CERT_FILE"};
    });
    const Status done = Wait([&] { return greeted; }, deadline);
    if (!done) Abandon();
    return done;
  }

  /// Asio calls the handler of each operation once, also after a failure.
  void Note(error_code error, const char* what) {
    if (!failure_) failure_ = Broken(fmt::format("{}: {}", what, error.message()));
  }

  Status Send(std::string text, TimePoint deadline) {
    bool sent = false;
    const auto handler = [&](error_code error, size_t) {
      if (error) Note(error, "the connection broke");
      sent = true;
    };
    if (tls_)
      asio::async_write(*tls_, asio::buffer(text), handler);
    else
      asio::async_write(socket_, asio::buffer(text), handler);
    const Status done = Wait([&] { return sent; }, deadline);
    if (!sent) {
      Abandon();
      if (!failure_) failure_ = Broken("the server takes no bytes");
    }
    if (failure_) return std::unexpected(*failure_);
    return done;
  }

  /// Runs operations until `done`. kTimeout at the deadline.
  Status Wait(const std::function<bool()>& done, TimePoint deadline) {
    while (!done()) {
      if (failure_) return std::unexpected(*failure_);
      context_.restart();
      if (context_.poll_one() > 0) continue;
      if (std::chrono::steady_clock::now() >= deadline)
        return Fail(
            ErrorCode::kTimeout,
            "the server does not answer in time" + (last_error_.empty() ? "" : ": " + last_error_),
            url_.Text());
      context_.restart();
      context_.run_one_until(deadline);
    }
    return {};
  }

  /// As Wait, and reads what the server sends. It ends connections that do not answer its PING;
  /// the answer is sent here, because another message may be under way while a PING is read.
  Status Pump(const std::function<bool()>& done, TimePoint deadline) {
    while (true) {
      ATUNNER_RETURN_IF_ERROR(Wait(
          [&] {
            if (done() || pong_due_) return true;
            StartReading();
            return false;
          },
          deadline));
      if (!std::exchange(pong_due_, false)) return {};
      ATUNNER_RETURN_IF_ERROR(Send("PONG\r\n", Deadline()));
    }
  }

  void StartReading() {
    if (reading_ || failure_) return;
    reading_ = true;
    const auto handler = [this](error_code error, size_t count) {
      reading_ = false;
      if (error) return Note(error, "the connection broke");
      parser_.Feed({buffer_.data(), count});
      Understand();
    };
    if (tls_)
      tls_->async_read_some(asio::buffer(buffer_), handler);
    else
      socket_.async_read_some(asio::buffer(buffer_), handler);
  }

  void Understand() {
    while (!failure_) {
      auto next = parser_.Next();
      if (!next) failure_ = next.error();
      if (!next || !*next) return;
      Handle(**std::move(next));
    }
  }

  void Handle(Operation operation) {
    switch (operation.kind) {
      case Operation::Kind::kInfo:
        info_ = std::move(operation.text);
        break;
      case Operation::Kind::kMessage:
        Keep(operation.subscription, std::move(operation.message));
        break;
      case Operation::Kind::kPing:
        pong_due_ = true;
        break;
      case Operation::Kind::kPong:
        ++pongs_;
        break;
      case Operation::Kind::kError:
        HandleError(operation.text);
        break;
      case Operation::Kind::kOk:
        break;
    }
  }

  /// A refusal of one subject leaves the connection open; the call that it concerns runs out of
  /// time and gives it as the reason.
  void HandleError(const std::string& text) {
    last_error_ = text;
    if (text.starts_with("Permissions Violation")) return;
    if (text.starts_with("Authorization") || text.starts_with("User Authentication"))
      failure_ = Error{ErrorCode::kInvalidInput,
                       "the nats-server refuses these credentials: " + text, "--queue",
                       "put USER:PASSWORD@ or TOKEN@ before the host"};
    else
      failure_ = Broken("the server ends the connection: " + text);
  }

  void Keep(uint64_t subscription, Message message) {
    if (subscription >= kFirstSubject) {
      if (received_.size() < kMostReceived) received_.push_back(std::move(message));
      return;
    }
    // Nobody waits any more for an answer that came too late.
    const auto waiting = answers_.find(subscription);
    if (waiting != answers_.end()) waiting->second = std::move(message);
  }

  const Url& url_;
  const ClientOptions& options_;
  asio::io_context context_;
  asio::ip::tcp::socket socket_;
  asio::ssl::context tls_context_{asio::ssl::context::tls_client};
  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>> tls_;
  std::array<char, size_t{64} << 10> buffer_{};
  bool reading_ = false;
  bool pong_due_ = false;
  Parser parser_;
  std::string inbox_;
  std::optional<std::string> info_;
  int pongs_ = 0;
  uint64_t last_request_ = 0;
  std::map<uint64_t, std::optional<Message>> answers_;
  std::vector<Message> received_;
  std::string last_error_;
  std::optional<Error> failure_;
};

Client::Client(Url url, ClientOptions options)
    : url_(std::move(url)), options_(std::move(options)) {}

Client::~Client() = default;

Status Client::Open() {
  if (connection_ != nullptr) return {};
  auto fresh = std::make_unique<Connection>(url_, options_);
  ATUNNER_RETURN_IF_ERROR(fresh->Open(subjects_));
  connection_ = std::move(fresh);
  return {};
}

/// A connection may have broken long before this call, so that a second attempt is made.
template <class Work>
auto Client::Twice(const Work& work) -> decltype(work()) {
  const std::scoped_lock lock(mutex_);
  try {
    for (bool first = true;; first = false) {
      ATUNNER_RETURN_IF_ERROR(Open());
      auto result = work();
      for (Message& one : connection_->TakeReceived()) received_.push_back(std::move(one));
      if (result || result.error().code == ErrorCode::kTimeout) return result;
      connection_.reset();
      if (!first) return result;
    }
  } catch (const std::exception& error) {
    connection_.reset();
    return Fail(ErrorCode::kUnavailable, error.what(), url_.Text());
  }
}

Status Client::Connect() {
  return Twice([&] { return connection_->Read(); });
}

Result<Message> Client::Request(const std::string& subject, std::string_view payload,
                                const Headers& headers) {
  if (!IsSubject(subject)) return Invalid("'" + subject + "' is no subject", "subject");
  ATUNNER_TRY(Message answer,
              Twice([&] { return connection_->Request(subject, payload, headers); }));
  if (answer.status == kNoResponders)
    return Fail(ErrorCode::kUnavailable, "nobody answers to '" + subject + "'", url_.Text(),
                "start nats-server with JetStream: nats-server --jetstream");
  return answer;
}

Status Client::Publish(const std::string& subject, std::string_view payload) {
  if (!IsSubject(subject)) return Invalid("'" + subject + "' is no subject", "subject");
  return Twice([&] { return connection_->Publish(subject, payload); });
}

void Client::Subscribe(const std::string& subject) {
  const std::scoped_lock lock(mutex_);
  subjects_.push_back(subject);
  connection_.reset();  // the next call connects with all subscriptions
}

std::vector<Message> Client::Received() {
  (void)Connect();
  const std::scoped_lock lock(mutex_);
  return std::exchange(received_, {});
}

}  // namespace atunner::nats
