#include "atunner/knowledge/chunks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace atunner::knowledge {
namespace {

/// Removes and returns the first line of `text`, without its end.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The number of '#' at the beginning of a heading; 0 for other lines.
size_t LevelOf(std::string_view line) {
  const size_t level = std::min(line.find_first_not_of('#'), line.size());
  return level > 0 && level <= 6 && level < line.size() && line[level] == ' ' ? level : 0;
}

class Divider {
 public:
  explicit Divider(size_t bytes) : bytes_(bytes) {}

  void Heading(size_t level, std::string_view text) {
    Flush();
    headings_.resize(std::min(headings_.size(), level - 1));
    headings_.emplace_back(text);
  }
  void Line(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos && text_.size() >= bytes_)
      Flush();
    // A text without blank lines is divided, too.
    if (text_.size() >= 2 * bytes_) Flush();
    for (; line.size() > 8 * bytes_; line.remove_prefix(8 * bytes_)) {
      text_.append(line.substr(0, 8 * bytes_));
      Flush();
    }
    text_.append(line).push_back('\n');
  }
  void Flush() {
    std::string text = std::exchange(text_, {});
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return;
    std::string heading;
    for (const std::string& one : headings_) heading += (heading.empty() ? "" : " > ") + one;
    chunks_.push_back({std::move(heading), std::move(text)});
  }
  std::vector<Chunk> Take() {
    Flush();
    return std::move(chunks_);
  }

 private:
  size_t bytes_;
  std::vector<std::string> headings_;
  std::string text_;
  std::vector<Chunk> chunks_;
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// The name of a tag: "h2" of "h2 class='x'", "/p" of "/p".
std::string TagName(std::string_view tag) {
  const size_t end = tag.find_first_of(" \t\r\n/", tag.starts_with('/') ? 1 : 0);
  return Lower(tag.substr(0, end));
}

/// What a tag becomes in the text.
std::string TextOfTag(const std::string& name) {
  static constexpr std::array kLines = {"p",    "/p",    "br",     "li",     "/li",  "div",
                                        "/div", "tr",    "/tr",    "pre",    "/pre", "ul",
                                        "/ul",  "table", "/table", "section"};
  if (name.size() == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6')
    return "\n\n" + std::string(static_cast<size_t>(name[1] - '0'), '#') + " ";
  if (name.size() == 3 && name[0] == '/' && name[1] == 'h') return "\n\n";
  return std::ranges::find(kLines, name) != kLines.end() ? "\n" : " ";
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::vector<Chunk> ChunksOfMarkdown(std::string_view text, size_t bytes) {
  Divider divider(bytes);
  bool in_code = false;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.starts_with("```")) in_code = !in_code;
    const size_t level = in_code ? 0 : LevelOf(line);
    if (level > 0)
      divider.Heading(level, line.substr(level + 1));
    else
      divider.Line(line);
  }
  return divider.Take();
}

std::string TextOfHtml(std::string_view html) {
  std::string text;
  while (!html.empty()) {
    const size_t open = std::min(html.find('<'), html.size());
    text.append(html.substr(0, open));
    html.remove_prefix(open);
    if (html.empty()) break;
    const bool comment = html.starts_with("<!--");
    const size_t close = html.find(comment ? "-->" : ">");
    if (close == std::string_view::npos) break;
    const std::string name = comment ? "" : TagName(html.substr(1, close - 1));
    html.remove_prefix(close + (comment ? 3 : 1));
    if (name == "script" || name == "style") {
      const size_t end = html.find("</" + name);
      html.remove_prefix(std::min(end, html.size()));
      continue;
    }
    if (!comment) text += TextOfTag(name);
  }
  for (const auto& [from, to] : {std::pair{"&lt;", "<"},
                                 {"&gt;", ">"},
                                 {"&quot;", "\""},
                                 {"&#39;", "'"},
                                 {"&nbsp;", " "},
                                 {"&amp;", "&"}})
    ReplaceAll(text, from, to);
  return text;
}

}  // namespace atunner::knowledge
