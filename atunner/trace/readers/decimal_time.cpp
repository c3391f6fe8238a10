#include "atunner/trace/readers/decimal_time.h"

#include <charconv>
#include <system_error>

namespace atunner::trace {
namespace {

constexpr int64_t kLimit = 4'000'000'000'000'000'000;

/// The digits of `text` before an exponent, and the power of ten that they are to be scaled by.
struct Digits {
  int64_t value = 0;
  int exponent = 0;
  bool any = false, good = true;

  void Take(char c, bool fraction) {
    any = true;
    if (value > (kLimit - 9) / 10) {  // further digits of a fraction lie below a nanosecond
      good &= fraction;
      return;
    }
    value = value * 10 + (c - '0');
    exponent -= fraction;
  }
};

std::optional<int64_t> Scale(int64_t value, int exponent) {
  for (; exponent < 0 && value != 0; ++exponent) value /= 10;
  for (; exponent > 0 && value != 0; --exponent) {
    if (value > kLimit / 10) return std::nullopt;
    value *= 10;
  }
  return value;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> NanosecondsOf(std::string_view text) {
  const bool negative = text.starts_with('-');
  size_t at = negative ? 1 : 0;
  Digits digits;
  for (; at < text.size() && IsDigit(text[at]); ++at) digits.Take(text[at], false);
  if (at < text.size() && text[at] == '.')
    for (++at; at < text.size() && IsDigit(text[at]); ++at) digits.Take(text[at], true);
  int64_t exponent = 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at += at + 1 < text.size() && text[at + 1] == '+' ? 2 : 1;
    const auto written = IntegerOf(text.substr(at));
    if (!written || *written < -1000 || *written > 1000) return std::nullopt;
    exponent = *written;
    at = text.size();
  }
  if (!digits.any || !digits.good || at != text.size()) return std::nullopt;
  const auto value = Scale(digits.value, digits.exponent + static_cast<int>(exponent) + 3);
  if (!value || *value > kLimit) return std::nullopt;
  return negative ? -*value : *value;
}

}  // namespace atunner::trace
