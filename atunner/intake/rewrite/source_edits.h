// Rewriting a source: replacements of tokens that keep the numbers of lines.
#pragma once

#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// Replacements in a source, of tokens that do not overlap.
class Edits {
 public:
  explicit Edits(const CudaSyntax& syntax) : syntax_(syntax) {}

  bool empty() const { return all_.empty(); }
  void Replace(TokenRange range, std::string text);
  void Insert(size_t before, std::string text);
  /// Lines that a replacement lost follow it.
  std::string Apply();

 private:
  struct Edit {
    size_t offset = 0;
    size_t length = 0;
    std::string text;
  };
  const CudaSyntax& syntax_;
  std::vector<Edit> all_;
};

}  // namespace atunner
