// Tokens of a JSON text that arrives in pieces. It never holds more than a piece, skips what has no
// use without looking inside, and takes control characters in strings, which profilers write and
// JSON forbids. Those are the reasons not to use a general parser: RapidJSON's SAX reader over the
// same pieces read 193 MB/s where this one reads more than twice that (bench/trace_reading.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/trace/readers/byte_source.h"

namespace atunner::trace {

/// Every method returns false when the text is not as asked for; the text cannot be read on then.
class JsonScanner {
 public:
  explicit JsonScanner(ByteSource& source) : source_(source), bytes_(kPiece) {}

  /// The next character that is no white space, which is not taken; '\0' at the end.
  char Peek() {
    for (;;) {
      while (at_ != end_ && static_cast<unsigned char>(bytes_[at_]) <= ' ') ++at_;
      if (at_ != end_) return bytes_[at_];
      if (!Refill()) return '\0';
    }
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  /// A string without its quotes, escapes resolved. Valid until the next call.
  bool String(std::string_view& text);
  /// A number, true, false, null, NaN, … as written. Valid until the next call.
  bool Literal(std::string_view& text);
  bool SkipValue();

  /// Bytes that were taken.
  size_t offset() const { return before_ + at_; }

 private:
  /// Drops what was taken and reads more. False at the end of the text.
  bool Refill();
  bool SkipString();
  /// The position of the quote that ends the string at `at_`, or false at the end of the text.
  bool FindQuote(size_t& quote, bool& escapes);
  std::string_view Unescaped(std::string_view text);

  static constexpr size_t kPiece = size_t{1} << 18;
  static constexpr size_t kLongest = size_t{1} << 26;  ///< bytes of one token
  ByteSource& source_;
  std::vector<char> bytes_;
  size_t at_ = 0, end_ = 0;
  size_t before_ = 0;  ///< bytes of the text before bytes_[0]
  std::string unescaped_;
};

}  // namespace atunner::trace
