// Replacements in a source text, made in one go.
#pragma once

#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner::rewrites {

class TextEdits {
 public:
  explicit TextEdits(const CudaSyntax& syntax) : syntax_(syntax) {}

  bool empty() const { return all_.empty(); }
  /// Ranges must not overlap.
  void Replace(TokenRange range, std::string text);
  void Replace(size_t token, std::string text) { Replace({token, token + 1}, std::move(text)); }
  void InsertBefore(size_t token, std::string text);
  void InsertBehind(size_t token, std::string text);
  std::string Apply() const;

 private:
  struct Edit {
    size_t offset = 0, length = 0;
    std::string text;
  };
  const CudaSyntax& syntax_;
  std::vector<Edit> all_;
};

/// The blanks in front of the first token of the line in which the token stands.
std::string IndentAt(const CudaSyntax& syntax, size_t token);

}  // namespace atunner::rewrites
