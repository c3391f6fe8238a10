// Edits of a source that keep line numbers.
#pragma once

#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// A list of replacements of token ranges that do not overlap.
class Edits {
 public:
  explicit Edits(const CudaSyntax& syntax) : syntax_(syntax) {}

  bool empty() const { return all_.empty(); }
  void Replace(TokenRange range, std::string text);
  void Insert(size_t before, std::string text);
  /// The edited text. A replacement with fewer lines than the original is followed by empty lines.
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
