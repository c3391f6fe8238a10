#include "atunner/intake/rewrite/source_headers.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/intake/cuda/cuda_lexer.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

constexpr size_t kLargestHeader = size_t{1} << 18;
// Bytes of all headers together: template libraries are left to the compiler.
constexpr size_t kLargestSource = size_t{1} << 21;
constexpr int kMostNested = 16;

/// The argument of a directive of that kind, e.g. "\"grid.h\"" of `#include "grid.h"`; "" for
/// others.
std::string Directed(const Token& token, std::string_view kind) {
  if (token.kind != Token::Kind::kDirective) return "";
  const std::string line = Trim(token.text.substr(1));
  return line.starts_with(kind) ? Trim(std::string_view(line).substr(kind.size())) : "";
}

class Inliner {
 public:
  Inliner(const std::string& source, const FileReader& read,
          const std::vector<std::string>& options)
      : read_(read) {
    for (const std::string& option : options) {
      if (option.starts_with("-I")) folders_.emplace_back(Trim(option.substr(2)));
    }
    for (const Annotation& annotation : Lex(source).annotations) {
      const size_t option = annotation.text.find("-I");
      if (annotation.text.starts_with("option") && option != std::string_view::npos)
        folders_.emplace_back(Trim(annotation.text.substr(option + 2)));
    }
  }

  std::string Run(const std::string& text, const Path& name, int depth) {
    const LexedSource lexed = Lex(text);
    std::string out;
    size_t at = 0;
    for (const Token& token : lexed.tokens) {
      const bool once = depth > 0 && Directed(token, "pragma") == "once";
      const std::string include = Directed(token, "include");
      const bool own = include.size() > 2 && include.front() == '"' && include.back() == '"';
      if (!once && !own) continue;
      std::string put;
      if (own && !Included(include.substr(1, include.size() - 2), name, depth, put)) continue;
      out.append(text, at, token.offset - at).append(put);
      if (!put.empty()) out += fmt::format("#line {} \"{}\"", token.line + 1, name.string());
      at = token.offset + token.text.size();
    }
    return out.append(text, at);
  }

 private:
  /// Finds a header and sets `put` to its text, or to "" if it is there already; false if the
  /// directive must stay.
  bool Included(const std::string& header, const Path& from, int depth, std::string& put) {
    if (depth >= kMostNested) return false;
    std::vector<Path> places = {from.parent_path()};
    places.insert(places.end(), folders_.begin(), folders_.end());
    for (const Path& folder : places) {
      const Path path = (folder / header).lexically_normal();
      if (seen_.contains(path)) return true;
      const auto text = read_(path.string());
      if (!text) continue;
      if (text->size() > kLargestHeader || total_ + text->size() > kLargestSource) return false;
      total_ += text->size();
      if (text->find("#pragma once") != std::string::npos ||
          text->find("#ifndef") != std::string::npos)
        seen_.insert(path);
      put = fmt::format("#line 1 \"{}\"\n{}\n", path.string(), Run(*text, path, depth + 1));
      return true;
    }
    return false;
  }

  const FileReader& read_;
  std::vector<Path> folders_;
  std::set<Path> seen_;  ///< headers that are inlined only once
  size_t total_ = 0;
};

}  // namespace

std::string WithHeaders(const std::string& text, const std::string& name, const FileReader& read,
                        const std::vector<std::string>& options) {
  return Inliner(text, read, options).Run(text, name, 0);
}

}  // namespace atunner
