#include "atunner/nats/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace atunner::nats {
namespace {

using Kind = Operation::Kind;

/// INFO of a large cluster names all of its servers.
constexpr size_t kLongestLine = size_t{256} << 10;
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kVersion = "NATS/1.0";

std::unexpected<Error> Malformed(std::string_view what) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("the server does not speak the protocol of NATS: {}", what), "--queue",
              "is a nats-server at this address and port?");
}

/// The words of a line, divided by any number of blanks.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <class Number>
bool Parse(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool IsKeyword(std::string_view word, std::string_view keyword) {
  return std::ranges::equal(word, keyword,
                            [](char a, char b) { return (a & ~0x20) == (b & ~0x20); });
}

/// "NATS/1.0 503 No Responders\r\nName: value\r\n\r\n".
Status ParseHeaders(std::string_view text, Message& message) {
  if (!text.starts_with(kVersion) || !text.ends_with("\r\n\r\n"))
    return Malformed("headers without version or end");
  bool first = true;
  while (text != kLineEnd && !text.empty()) {
    const size_t end = text.find(kLineEnd);
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + kLineEnd.size());
    if (first) {
      line = Trimmed(line.substr(kVersion.size()));
      const size_t space = std::min(line.find(' '), line.size());
      if (!line.empty() && !Parse(line.substr(0, space), message.status))
        return Malformed("a status that is no number");
      message.description = Trimmed(line.substr(space));
    } else {
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return Malformed("a header without a value");
      message.headers.emplace_back(line.substr(0, colon), Trimmed(line.substr(colon + 1)));
    }
    first = false;
  }
  return {};
}

}  // namespace

void Parser::Consume(size_t count) {
  begin_ += count;
  if (begin_ < bytes_.size() / 2) return;  // moving all bytes for each operation would be quadratic
  bytes_.erase(0, begin_);
  begin_ = 0;
}

Result<std::optional<Operation>> Parser::Next() {
  if (pending_) return Payload();
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  const size_t end = rest.find(kLineEnd);
  if (end == std::string_view::npos) {
    if (rest.size() > kLongestLine) return Malformed("a line without an end");
    return std::nullopt;
  }
  const std::string line(rest.substr(0, end));
  Consume(end + kLineEnd.size());
  return Line(line);
}

Result<std::optional<Operation>> Parser::Line(std::string_view line) {
  const size_t space = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = Trimmed(line.substr(space));
  Operation operation;
  if (IsKeyword(word, "MSG") || IsKeyword(word, "HMSG")) {
    ATUNNER_RETURN_IF_ERROR(Head(rest, word.size() == 4));
    return Payload();
  }
  if (IsKeyword(word, "PING")) {
    operation.kind = Kind::kPing;
  } else if (IsKeyword(word, "PONG")) {
    operation.kind = Kind::kPong;
  } else if (IsKeyword(word, "INFO")) {
    operation.kind = Kind::kInfo;
    operation.text = rest;
  } else if (word == "-ERR") {
    operation.kind = Kind::kError;
    const bool quoted = rest.size() >= 2 && rest.starts_with('\'') && rest.ends_with('\'');
    operation.text = quoted ? rest.substr(1, rest.size() - 2) : rest;
  } else if (word != "+OK") {
    return Malformed("an unknown operation");
  }
  return operation;
}

Status Parser::Head(std::string_view arguments, bool has_headers) {
  const std::vector<std::string_view> words = Words(arguments);
  const size_t sizes = has_headers ? 2 : 1;
  if (words.size() < 2 + sizes || words.size() > 3 + sizes)
    return Malformed("a message with a wrong number of words");
  Operation operation;
  operation.kind = Kind::kMessage;
  operation.message.subject = words[0];
  if (words.size() == 3 + sizes) operation.message.reply = words[2];
  header_bytes_ = 0;
  if (!Parse(words[1], operation.subscription) || !Parse(words.back(), total_bytes_) ||
      (has_headers && !Parse(words[words.size() - 2], header_bytes_)))
    return Malformed("a message whose sizes are no numbers");
  if (header_bytes_ > total_bytes_ || total_bytes_ > most_bytes_)
    return Malformed("a message that is too large");
  pending_ = std::move(operation);
  return {};
}

Result<std::optional<Operation>> Parser::Payload() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < total_bytes_ + kLineEnd.size()) return std::nullopt;
  if (rest.substr(total_bytes_, kLineEnd.size()) != kLineEnd)
    return Malformed("a message without an end");
  Operation operation = *std::move(pending_);
  pending_.reset();
  if (header_bytes_ > 0)
    ATUNNER_RETURN_IF_ERROR(ParseHeaders(rest.substr(0, header_bytes_), operation.message));
  operation.message.payload = rest.substr(header_bytes_, total_bytes_ - header_bytes_);
  Consume(total_bytes_ + kLineEnd.size());
  return operation;
}

bool IsSubject(std::string_view subject) {
  if (subject.empty() || subject.starts_with('.') || subject.ends_with('.')) return false;
  if (subject.find("..") != std::string_view::npos) return false;
  return std::ranges::none_of(
      subject, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '*' || c == '>'; });
}

std::string PublishText(std::string_view subject, std::string_view reply, const Headers& headers,
                        std::string_view payload) {
  const std::string to = fmt::format("{}{}{}", subject, reply.empty() ? "" : " ", reply);
  if (headers.empty()) return fmt::format("PUB {} {}\r\n{}\r\n", to, payload.size(), payload);
  std::string head = fmt::format("{}\r\n", kVersion);
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  head += kLineEnd;
  return fmt::format("HPUB {} {} {}\r\n{}{}\r\n", to, head.size(), head.size() + payload.size(),
                     head, payload);
}

std::string SubscribeText(std::string_view subject, uint64_t subscription) {
  return fmt::format("SUB {} {}\r\n", subject, subscription);
}

std::string UnsubscribeText(uint64_t subscription, int after) {
  if (after == 0) return fmt::format("UNSUB {}\r\n", subscription);
  return fmt::format("UNSUB {} {}\r\n", subscription, after);
}

}  // namespace atunner::nats
