// Lines of a kernel's source and of the headers that it includes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/base/files.h"

namespace atunner::cli {

/// Lines by file and number. A header is read when a line of it is asked for.
class SourceLines {
 public:
  /// `name`: what reports call the file of `text`. Files that it includes are looked for in
  /// `folder` too.
  SourceLines(const std::string& name, const std::string& text, Path folder);

  /// The file as a person names it: compilers put the working directory in front of its name.
  static std::string Short(const std::string& file);
  /// The line without the blanks around it; "" when the file cannot be read.
  std::string At(const std::string& file, uint32_t line);

 private:
  void Add(const std::string& name, const std::string& text);

  Path folder_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace atunner::cli
