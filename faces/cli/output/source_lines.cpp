#include "faces/cli/output/source_lines.h"

#include <algorithm>
#include <sstream>

namespace atunner::cli {

std::string SourceLines::Short(const std::string& file) {
  const std::string here = std::filesystem::current_path().string() + "/";
  return file.starts_with(here) ? file.substr(here.size()) : file;
}

SourceLines::SourceLines(const std::string& name, const std::string& text, Path folder)
    : folder_(std::move(folder)) {
  Add(name, text);
}

/// Lines behind `#line 12 "grid.h"` are that header's.
void SourceLines::Add(const std::string& name, const std::string& text) {
  std::vector<std::string>* lines = &files_[name];
  size_t next = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    constexpr size_t kMostLines = size_t{1} << 20;
    const size_t directive = line.find("#line "), quote = line.find('"'), end = line.rfind('"');
    if (directive != std::string::npos && line.find_first_not_of(" \t") == directive) {
      next = std::min(std::strtoul(line.c_str() + directive + 6, nullptr, 10), kMostLines);
      next -= next > 0;
      if (quote != end) lines = &files_[line.substr(quote + 1, end - quote - 1)];
      continue;
    }
    if (lines->size() <= next) lines->resize(next + 1);
    (*lines)[next++] = line;
  }
}

std::string SourceLines::At(const std::string& file, uint32_t line) {
  const std::string name = Short(file);
  if (!files_.contains(name)) {
    auto text = ReadFile(name);
    if (!text) text = ReadFile(folder_ / name);
    Add(name, text.value_or(""));
  }
  const std::vector<std::string>& lines = files_[name];
  if (line == 0 || line > lines.size()) return "";
  const std::string& text = lines[line - 1];
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace atunner::cli
