#include "faces/cli/output/field_paths.h"

#include <algorithm>
#include <utility>

namespace atunner::cli {
namespace {

constexpr std::string_view kRequest = "request.";

/// Fields whose flag has another name. The others' flag is the field with dashes: `compile_threads`
/// is set by `--compile-threads`.
constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"shapes", "--input-shape"}, {"attributes", "--attr"},      {"dims", "--dim"},
    {"target", "--target-gpu"},  {"configuration", "--config"}, {"configurations", "--configs"},
    {"parallel", "--jobs"},
};

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The characters at the beginning of `text` that may belong to a name.
std::string_view WordAt(std::string_view text) {
  return text.substr(0, static_cast<size_t>(std::ranges::find_if_not(text, IsWord) - text.begin()));
}

std::string FlagOf(std::string_view field) {
  for (const auto& [name, flag] : kFlags) {
    if (name == field) return std::string(flag);
  }
  std::string flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

/// The length of "[12]" at the beginning of `text`; 0 where there is no index.
size_t IndexLength(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const size_t end = text.find_first_not_of("0123456789", 1);
  return end != std::string_view::npos && end > 1 && text[end] == ']' ? end + 1 : 0;
}

/// Appends the flag of the path whose field begins `rest`, and returns how much of `rest` the path
/// takes.
size_t AppendFlag(std::string_view rest, std::string& out) {
  const std::string_view field = WordAt(rest);
  out += FlagOf(field);
  rest.remove_prefix(field.size());
  if (const size_t index = IndexLength(rest)) return field.size() + index;
  const std::string_view key = rest.starts_with('.') ? WordAt(rest.substr(1)) : "";
  if (key.empty()) return field.size();
  out += " " + std::string(key);
  return field.size() + 1 + key.size();
}

}  // namespace

std::string WithFlags(std::string_view text) {
  std::string out;
  while (true) {
    const size_t at = text.find(kRequest);
    const bool inside_word = at != std::string_view::npos && at > 0 && IsWord(text[at - 1]);
    const size_t end = at == std::string_view::npos ? text.size() : at + kRequest.size();
    if (end == text.size() || inside_word || WordAt(text.substr(end)).empty()) {
      out += text.substr(0, end);
      text.remove_prefix(end);
    } else {
      out += text.substr(0, at);
      text.remove_prefix(end);
      text.remove_prefix(AppendFlag(text, out));
    }
    if (text.empty()) return out;
  }
}

Error WithFlags(Error error) {
  error.what = WithFlags(error.what);
  error.where = WithFlags(error.where);
  error.hint = WithFlags(error.hint);
  return error;
}

}  // namespace atunner::cli
