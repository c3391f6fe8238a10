#include "atunner/http/url.h"

#include <algorithm>
#include <cctype>

namespace atunner::http {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

int HexValue(char c) {
  const auto at = kDigits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

bool IsSafeSegment(std::string_view segment) {
  if (segment.empty() || segment == "." || segment == "..") return false;
  return std::ranges::none_of(
      segment, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/' || c == '\\'; });
}

std::unexpected<Error> BadTarget(std::string_view why) {
  return Invalid("the request's target " + std::string(why), "target");
}

Status ParsePath(std::string_view text, Url& url) {
  while (!text.empty()) {
    text.remove_prefix(1);  // the slash
    const size_t end = std::min(text.find('/'), text.size());
    const auto segment = PercentDecode(text.substr(0, end), false);
    text.remove_prefix(end);
    if (segment && segment->empty() && text.empty()) break;  // a slash at the end
    if (!segment || !IsSafeSegment(*segment)) return BadTarget("has a wrong segment");
    url.path.push_back(*segment);
  }
  return {};
}

Status ParseQuery(std::string_view text, Url& url) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    const size_t equals = std::min(one.find('='), one.size());
    const auto name = PercentDecode(one.substr(0, equals), true);
    const auto value = PercentDecode(one.substr(std::min(equals + 1, one.size())), true);
    if (!name || !value) return BadTarget("has a broken escape in its query");
    url.query.emplace_back(*name, *value);
  }
  return {};
}

}  // namespace

std::optional<std::string> Url::Find(std::string_view name) const {
  for (const auto& [each, value] : query) {
    if (each == name) return value;
  }
  return std::nullopt;
}

Result<Url> ParseUrl(std::string_view target) {
  if (!target.starts_with('/')) return BadTarget("is no absolute path");
  const size_t question = std::min(target.find('?'), target.size());
  Url url;
  ATUNNER_RETURN_IF_ERROR(ParsePath(target.substr(0, question), url));
  if (question < target.size())
    ATUNNER_RETURN_IF_ERROR(ParseQuery(target.substr(question + 1), url));
  return url;
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  for (const unsigned char c : text) {
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += static_cast<char>(c);
    } else {
      encoded += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return encoded;
}

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace atunner::http
