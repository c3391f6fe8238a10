#include "atunner/trace/readers/json_scanner.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace atunner::trace {
namespace {

void AppendUtf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xe0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

char Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    default:
      return c;
  }
}

bool EndsLiteral(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == ',' || c == ']' || c == '}' || c == ':' ||
         c == '"' || c == '[' || c == '{';
}

}  // namespace

bool JsonScanner::Refill() {
  if (at_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + at_, end_ - at_);
    before_ += at_;
    end_ -= at_;
    at_ = 0;
  }
  if (end_ == bytes_.size()) {
    if (bytes_.size() >= kLongest) return false;
    bytes_.resize(bytes_.size() * 2);
  }
  const size_t got = source_.Read(bytes_.data() + end_, bytes_.size() - end_);
  end_ += got;
  return got > 0;
}

bool JsonScanner::FindQuote(size_t& quote, bool& escapes) {
  size_t searched = 0;  // after at_
  escapes = false;
  for (;;) {
    const char* const begin = bytes_.data() + at_;
    const auto* found = static_cast<const char*>(
        std::memchr(begin + searched, '"', end_ - at_ - searched));
    if (found == nullptr) {
      searched = end_ - at_;
      if (!Refill()) return false;
      continue;
    }
    size_t backslashes = 0;
    while (found - backslashes > begin && found[-1 - static_cast<ptrdiff_t>(backslashes)] == '\\')
      ++backslashes;
    searched = static_cast<size_t>(found - begin) + 1;
    if (backslashes % 2 == 1) continue;
    quote = at_ + searched - 1;
    escapes = std::memchr(begin, '\\', searched) != nullptr;
    return true;
  }
}

bool JsonScanner::String(std::string_view& text) {
  size_t quote = 0;
  bool escapes = false;
  if (!Take('"') || !FindQuote(quote, escapes)) return false;
  text = {bytes_.data() + at_, quote - at_};
  at_ = quote + 1;
  if (escapes) text = Unescaped(text);
  return true;
}

std::string_view JsonScanner::Unescaped(std::string_view text) {
  unescaped_.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      unescaped_ += text[i];
    } else if (text[++i] == 'u' && i + 4 < text.size()) {
      uint32_t code = '?';
      std::from_chars(text.data() + i + 1, text.data() + i + 5, code, 16);
      AppendUtf8(code & 0xffff, unescaped_);
      i += 4;
    } else {
      unescaped_ += Escaped(text[i]);
    }
  }
  return unescaped_;
}

bool JsonScanner::Literal(std::string_view& text) {
  Peek();
  size_t length = 0;
  for (;; ++length) {
    if (at_ + length == end_ && !Refill()) break;
    if (EndsLiteral(bytes_[at_ + length])) break;
  }
  text = {bytes_.data() + at_, length};
  at_ += length;
  return length > 0;
}

bool JsonScanner::SkipString() {
  size_t quote = 0;
  bool escapes = false;
  if (!Take('"') || !FindQuote(quote, escapes)) return false;
  at_ = quote + 1;
  return true;
}

bool JsonScanner::SkipValue() {
  size_t depth = 0;
  std::string_view literal;
  do {
    const char c = Peek();
    if (c == '\0') return false;
    if (c == '"') {
      if (!SkipString()) return false;
      continue;
    }
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return false;
      --depth;
    } else if (c != ',' && c != ':') {
      if (!Literal(literal)) return false;
      continue;
    } else if (depth == 0) {
      return false;
    }
    ++at_;
  } while (depth > 0);
  return true;
}

}  // namespace atunner::trace
