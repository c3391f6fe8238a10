#include "atunner/llm/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "atunner/base/digest.h"

namespace atunner::llm {
namespace {

std::string DigestOfRequest(const ChatRequest& request) {
  return DigestOf(DumpJson(ToJson(request))).ToHex();
}

}  // namespace

Result<ChatReply> RecordingChat::Ask(const ChatRequest& request, const std::stop_token& stop) {
  ATUNNER_TRY(ChatReply reply, inner_->Ask(request, stop));
  const Json line{{"request", DigestOfRequest(request)},
                  {"reply", reply.text},
                  {"input_tokens", reply.input_tokens},
                  {"output_tokens", reply.output_tokens}};
  std::ofstream out(file_, std::ios::app);
  out << DumpJson(line) << "\n" << std::flush;
  if (!out) return Invalid("the recording cannot be written", file_.string());
  return reply;
}

Result<std::unique_ptr<ReplayChat>> ReplayChat::Open(const Path& file) {
  ATUNNER_TRY(const std::string text, ReadFile(file));
  auto chat = std::make_unique<ReplayChat>();
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string where = fmt::format("{}:{}", file.string(), ++number);
    ATUNNER_TRY(const Json line, ParseJson(std::string_view(text).substr(at, end - at), where));
    try {
      chat->replies_[line.at("request").get<std::string>()].push_back(
          {line.at("reply").get<std::string>(), line.at("input_tokens").get<int64_t>(),
           line.at("output_tokens").get<int64_t>()});
    } catch (const Json::exception&) {
      return Invalid("this line is no recorded exchange", where);
    }
    at = end + 1;
  }
  return chat;
}

Result<ChatReply> ReplayChat::Ask(const ChatRequest& request, const std::stop_token&) {
  const auto found = replies_.find(DigestOfRequest(request));
  if (found == replies_.end() || found->second.empty())
    return Fail(ErrorCode::kNotFound, "this request to the language model was not recorded", "",
                "record it again: the task, the device or the program has changed");
  ChatReply reply = std::move(found->second.front());
  found->second.pop_front();
  return reply;
}

}  // namespace atunner::llm
