// Bytes of a file, plain or packed by gzip, in pieces: traces are larger than memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills the start of `room` and returns how many bytes; 0 at the end or after an error.
  virtual size_t Read(char* room, size_t bytes) = 0;
  /// Says why the bytes ended early; "" if they did not.
  virtual std::string problem() const { return ""; }
};

/// The bytes that `text` refers to.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : left_(text) {}
  size_t Read(char* room, size_t bytes) override;

 private:
  std::string_view left_;
};

/// Unpacks the file if it begins as gzip does. Several gzip members one after another are one text.
/// kNotFound, or kInvalidInput if it is no regular file.
Result<std::unique_ptr<ByteSource>> OpenSource(const Path& path);

}  // namespace atunner::trace
