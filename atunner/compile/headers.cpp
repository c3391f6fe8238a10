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

/// Follows #include lines through the include folders and collects the headers' digests.
class HeaderWalk {
 public:
  explicit HeaderWalk(std::vector<Path> folders) : folders_(std::move(folders)) {}

  /// False if an #include cannot be read or there are too many headers.
  bool Run(const std::string& source) {
    texts_ = {source};
    homes_ = {Path()};
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_.size() > kMostHeaders) return false;
      const std::string text = std::move(texts_[i]);
      const auto names = NamesIn(text);
      if (!names) return false;
      std::vector<Path> places = folders_;
      if (!homes_[i].empty()) places.push_back(homes_[i]);
      for (const std::string_view name : *names) {
        for (const Path& place : places) Add((place / name).lexically_normal());
      }
    }
    return true;
  }

  Digest digest() const { return DigestOf(fields_); }

 private:
  void Add(const Path& file) {
    if (seen_.contains(file)) return;
    auto content = ReadFile(file, kLargestHeader);
    if (!content) return;
    seen_.insert(file);
    fields_.push_back(file.string());
    fields_.push_back(DigestOf(*content).ToHex());
    homes_.push_back(file.parent_path());
    texts_.push_back(*std::move(content));
  }

  std::vector<Path> folders_;
  std::vector<std::string> texts_;
  std::vector<Path> homes_;  ///< the folder of each text, where quoted names are looked for
  std::set<Path> seen_;
  std::vector<std::string> fields_;
};

}  // namespace

std::optional<Digest> HeaderDigest(const SourceUnit& source) {
  const auto folders = FoldersOf(source);
  if (!folders) return std::nullopt;
  HeaderWalk walk(*folders);
  return walk.Run(source.text) ? std::optional(walk.digest()) : std::nullopt;
}

}  // namespace atunner
