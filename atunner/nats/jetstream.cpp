#include "atunner/nats/jetstream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::nats {
namespace {

constexpr double kNanoseconds = 1e9;

// Error codes of JetStream (errors.json of nats-server).
constexpr int kStreamNameInUse = 10058;
constexpr int kWrongLastSequence = 10071;

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(seconds * kNanoseconds); }

int64_t IntegerOr(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string TextOr(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The error of an answer; its number in JetStream's list is in `where`, after "JetStream ".
std::optional<Error> ErrorOf(const Json& answer) {
  const auto found = answer.find("error");
  if (found == answer.end() || !found->is_object()) return std::nullopt;
  const int64_t status = IntegerOr(*found, "code");
  const bool passing = status >= 500;
  return Error{status == 404 ? ErrorCode::kNotFound
               : passing     ? ErrorCode::kUnavailable
                             : ErrorCode::kInvalidInput,
               TextOr(*found, "description"),
               fmt::format("JetStream {}", IntegerOr(*found, "err_code")), ""};
}

bool Is(const Error& error, int number) {
  return error.where == fmt::format("JetStream {}", number);
}

Result<Json> ObjectOf(const std::string& text) {
  ATUNNER_TRY(Json json, ParseJson(text, "JetStream"));
  if (!json.is_object())
    return Fail(ErrorCode::kUnavailable, "an answer is no object", "JetStream");
  if (auto error = ErrorOf(json)) return std::unexpected(*std::move(error));
  return json;
}

}  // namespace

Result<Json> JetStream::Ask(const std::string& what, const Json& request) {
  ATUNNER_TRY(const Message answer, client_.Request("$JS.API." + what, DumpJson(request)));
  return ObjectOf(answer.payload);
}

Status JetStream::EnsureStream(const WorkStream& stream) {
  const Json config{{"name", stream.name},      {"subjects", Json::array({stream.subjects})},
                    {"retention", "workqueue"}, {"storage", "file"},
                    {"discard", "old"},         {"max_age", Nanoseconds(stream.max_age_seconds)},
                    {"num_replicas", 1}};
  const auto made = Ask("STREAM.CREATE." + stream.name, config);
  if (made) return {};
  if (!Is(made.error(), kStreamNameInUse)) return std::unexpected(made.error());
  const auto changed = Ask("STREAM.UPDATE." + stream.name, config);
  if (!changed) return std::unexpected(changed.error());
  return {};
}

Status JetStream::EnsureConsumer(const std::string& stream, const ConsumerOptions& options) {
  const Json config{{"durable_name", options.name},
                    {"deliver_policy", "all"},
                    {"ack_policy", "explicit"},
                    {"ack_wait", Nanoseconds(options.acknowledge_seconds)},
                    {"max_deliver", options.max_deliveries},
                    {"max_ack_pending", -1},
                    {"filter_subject", options.subject}};
  const auto made = Ask("CONSUMER.DURABLE.CREATE." + stream + "." + options.name,
                        {{"stream_name", stream}, {"config", config}});
  if (!made) return std::unexpected(made.error());
  return {};
}

Result<std::vector<std::string>> JetStream::Subjects(const std::string& stream) {
  std::vector<std::string> subjects;
  while (true) {
    ATUNNER_TRY(const Json info, Ask("STREAM.INFO." + stream,
                                     {{"subjects_filter", ">"}, {"offset", subjects.size()}}));
    const Json state = info.value("state", Json::object());
    const Json found = state.value("subjects", Json::object());
    if (!found.is_object()) return subjects;
    for (const auto& [subject, count] : found.items()) subjects.push_back(subject);
    // A server without pages gives no total.
    const auto total = static_cast<size_t>(IntegerOr(info, "total"));
    if (found.empty() || subjects.size() >= total) return subjects;
  }
}

Result<std::vector<ConsumerState>> JetStream::Consumers(const std::string& stream) {
  std::vector<ConsumerState> consumers;
  while (true) {
    ATUNNER_TRY(const Json list, Ask("CONSUMER.LIST." + stream, {{"offset", consumers.size()}}));
    const Json found = list.value("consumers", Json::array());
    if (!found.is_array()) return consumers;
    for (const Json& one : found) {
      if (one.is_object())
        consumers.push_back({TextOr(one, "name"), IntegerOr(one, "num_pending"),
                             IntegerOr(one, "num_ack_pending")});
    }
    if (found.empty() || consumers.size() >= static_cast<size_t>(IntegerOr(list, "total")))
      return consumers;
  }
}

Status JetStream::PublishOnce(const std::string& subject, std::string_view payload) {
  ATUNNER_TRY(const Message answer,
              client_.Request(subject, payload, {{"Nats-Expected-Last-Subject-Sequence", "0"}}));
  const auto stored = ObjectOf(answer.payload);
  if (stored || Is(stored.error(), kWrongLastSequence)) return {};
  return std::unexpected(stored.error());
}

// By its number: nats-server 2.9.10 takes a purge of the only message of a subject for one of all
// messages, and its consumers skip the others.
Status JetStream::Remove(const std::string& stream, const std::string& subject) {
  auto removed = Ask("STREAM.MSG.GET." + stream, {{"last_by_subj", subject}});
  if (removed) {
    const int64_t number = IntegerOr(removed->value("message", Json::object()), "seq");
    removed = Ask("STREAM.MSG.DELETE." + stream, {{"seq", number}, {"no_erase", true}});
  }
  if (removed || removed.error().code == ErrorCode::kNotFound) return {};
  return std::unexpected(removed.error());
}

Result<std::string> JetStream::SubjectOf(const std::string& stream, uint64_t sequence) {
  ATUNNER_TRY(const Json got, Ask("STREAM.MSG.GET." + stream, {{"seq", sequence}}));
  return TextOr(got.value("message", Json::object()), "subject");
}

Result<std::optional<Delivery>> JetStream::Pull(const std::string& stream,
                                                const std::string& consumer) {
  ATUNNER_TRY(const Message message,
              client_.Request("$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
                              R"({"batch":1,"no_wait":true})"));
  if (message.status == 404 || message.status == 408) return std::nullopt;
  if (message.status != 0)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the consumer answers {} {}", message.status, message.description),
                "JetStream");
  return Delivery{message.subject, message.payload, message.reply};
}

Status JetStream::StillWorking(const Delivery& delivery) {
  return client_.Publish(delivery.reply, "+WPI");
}

Status JetStream::Acknowledge(const Delivery& delivery) {
  const auto answer = client_.Request(delivery.reply, "+ACK");
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Status JetStream::GiveBack(const Delivery& delivery, double seconds) {
  return client_.Publish(delivery.reply,
                         fmt::format("-NAK {{\"delay\": {}}}", Nanoseconds(seconds)));
}

}  // namespace atunner::nats
