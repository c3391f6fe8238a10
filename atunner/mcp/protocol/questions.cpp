#include "atunner/mcp/protocol/questions.h"

#include <chrono>
#include <utility>

#include "atunner/mcp/protocol/sealed_state.h"

namespace atunner::mcp {
namespace {

constexpr std::chrono::minutes kPatience{10};

}  // namespace

std::string CapabilityOf(const std::string& method) { return method.substr(0, method.find('/')); }

std::string OpenQuestions::Open() {
  const std::scoped_lock lock(mutex_);
  std::string id = "question-" + std::to_string(next_++);
  open_.emplace(id, std::nullopt);
  return id;
}

void OpenQuestions::Answered(const Json& id, Json result) {
  const std::scoped_lock lock(mutex_);
  const auto found = id.is_string() ? open_.find(id.get<std::string>()) : open_.end();
  if (found == open_.end()) return;
  found->second = std::move(result);
  changed_.notify_all();
}

Result<Json> OpenQuestions::Wait(const std::string& id, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool answered = changed_.wait_for(lock, stop, kPatience,
                                          [&] { return open_.at(id).has_value(); });
  const std::optional<Json> answer = std::exchange(open_.at(id), std::nullopt);
  open_.erase(id);
  if (answered && !answer->is_null()) return *answer;
  if (answered) return Fail(ErrorCode::kUnavailable, "the client refused the question");
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the client cancelled the call");
  return Fail(ErrorCode::kTimeout, "the client did not answer the question");
}

Result<Json> CallRound::Ask(const std::vector<Question>& questions, const Json& capabilities) {
  Json given = Json::object();
  std::vector<Question> missing;
  Json lacking = Json::object();
  for (const Question& question : questions) {
    const Json answer = Member(answers, question.key);
    const std::string capability = CapabilityOf(question.method);
    if (!capabilities.contains(capability))
      lacking[capability] = Json::object();
    else if (answer.is_object())
      given[question.key] = answer;
    else
      missing.push_back(question);
  }
  if (!lacking.empty()) {
    refused = RpcError{RpcCode::kMissingCapability,
                       "the client must declare capabilities to make this call",
                       {{"requiredCapabilities", lacking}},
                       nullptr};
    return Fail(ErrorCode::kUnsupported, refused->message);
  }
  if (missing.empty()) return given;
  asked.insert(asked.end(), missing.begin(), missing.end());
  return Fail(ErrorCode::kCancelled, "the client is asked first");
}

Json CallRound::InputRequired(const std::string& secret, const std::string& purpose) const {
  Json requests = Json::object();
  for (const Question& question : asked)
    requests[question.key] = {{"method", question.method}, {"params", question.params}};
  Json result{{"resultType", "input_required"}, {"inputRequests", std::move(requests)}};
  if (!kept.empty()) result["requestState"] = Seal(secret, purpose, kept);
  return result;
}

}  // namespace atunner::mcp
