#include "atunner/compile/headers.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "atunner/base/files.h"

namespace atunner {
namespace {

constexpr size_t kMostHeaders = 4096;
constexpr size_t kLargestHeader = size_t{64} << 20;
constexpr std::string_view kSpaces = " \t\r";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text;
}

/// The name in quotes or angle brackets at the begin of `text`; "" if there is none.
std::string_view NameAt(std::string_view text) {
  text = Trimmed(text);
  if (text.empty() || (text[0] != '"' && text[0] != '<')) return {};
  const size_t end = text.find(text[0] == '<' ? '>' : '"', 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
}

/// The text behind an #include, #include_next or __has_include( whose word "include" is at `at`;
/// nullopt if the word is part of something else.
std::optional<std::string_view> AfterInclude(std::string_view text, size_t at) {
  const size_t line = text.rfind('\n', at) + 1;  // npos + 1 = 0
  const std::string_view before = Trimmed(text.substr(line, at - line));
  std::string_view rest = text.substr(at + std::string_view("include").size());
  if (before.starts_with('#') && Trimmed(before.substr(1)).empty()) {
    if (rest.starts_with("_next")) rest.remove_prefix(5);
    return rest;
  }
  if (!before.ends_with("__has_")) return std::nullopt;
  rest = Trimmed(rest);
  if (!rest.starts_with('(')) return std::nullopt;  // `#ifdef __has_include` names no file
  return rest.substr(1);
}

/// Names after #include, #include_next and __has_include; nullopt if one of them is not a literal.
std::optional<std::vector<std::string_view>> NamesIn(std::string_view text) {
  std::vector<std::string_view> names;
  for (size_t at = text.find("include"); at != std::string_view::npos;
       at = text.find("include", at + 1)) {
    const auto rest = AfterInclude(text, at);
    if (!rest) continue;
    names.push_back(NameAt(rest->substr(0, rest->find('\n'))));
    if (names.back().empty()) return std::nullopt;
  }
  return names;
}

/// Include folders with those of -I options; nullopt if an option includes a file by itself.
std::optional<std::vector<Path>> FoldersOf(const SourceUnit& source) {
  std::vector<Path> folders(source.include_folders.begin(), source.include_folders.end());
  for (const std::string& option : source.options) {
    constexpr std::string_view kLong = "--include-path=";
    if (option.starts_with("-include") || option.starts_with("--pre-include") || option == "-I")
      return std::nullopt;
    if (option.starts_with("-I")) folders.emplace_back(option.substr(2));
    if (option.starts_with(kLong)) folders.emplace_back(option.substr(kLong.size()));
  }
  return folders;
}

}  // namespace

std::optional<Digest> HeaderDigest(const SourceUnit& source) {
  const auto folders = FoldersOf(source);
  if (!folders) return std::nullopt;
  std::vector<std::string> fields, texts = {source.text};
  std::set<Path> seen;
  std::vector<Path> homes = {Path()};  // the folder of each text, where quoted names are looked for
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts.size() > kMostHeaders) return std::nullopt;
    const std::string text = std::move(texts[i]);
    const auto names = NamesIn(text);
    if (!names) return std::nullopt;
    std::vector<Path> places = *folders;
    if (!homes[i].empty()) places.push_back(homes[i]);
    for (const std::string_view name : *names) {
      for (const Path& place : places) {
        const Path file = (place / name).lexically_normal();
        if (seen.contains(file)) continue;
        auto content = ReadFile(file, kLargestHeader);
        if (!content) continue;
        seen.insert(file);
        fields.push_back(file.string());
        fields.push_back(DigestOf(*content).ToHex());
        homes.push_back(file.parent_path());
        texts.push_back(*std::move(content));
      }
    }
  }
  return DigestOf(fields);
}

}  // namespace atunner
