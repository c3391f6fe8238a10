#include "atunner/intake/bare/record_buffers.h"

#include <fmt/format.h>

#include <map>

#include "atunner/intake/cuda/structures.h"

namespace atunner {
namespace {

constexpr size_t kMostFixed = 96;  // largest number of bytes that the fill lists one by one

/// Fixes the high bytes of a member so that floats lie between 0.1 and 2, whatever the low bytes
/// are, and integers are small.
void FixHighBytes(DType dtype, int64_t at, std::map<int64_t, int>& fixed) {
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  if (dtype == DType::kFloat16) {
    fixed[at + 1] = 0x30;
  } else if (dtype == DType::kFloat64) {
    fixed[at + 6] = 0xe0, fixed[at + 7] = 0x3f;
  } else if (IsFloat(dtype)) {
    if (bytes > 1) fixed[at + bytes - 1] = 0x3f;
  } else if (dtype == DType::kBool) {
    fixed[at] = 1;
  } else {
    for (int64_t high = 1; high < bytes; ++high) fixed[at + high] = 0;
  }
}

/// The type S of `(const S*)name` or `reinterpret_cast<const S*>(name`, which ends before token
/// `end`; "" if there is no cast.
std::string CastBefore(const CudaSyntax& syntax, size_t end) {
  const auto is = [&](size_t i, std::string_view text) { return syntax.token(i).Is(text); };
  size_t star = end;  // the * of the type
  if (end > 4 && is(end - 1, ")")) star = end - 2;
  if (end > 5 && is(end - 1, "(") && is(end - 2, ">")) star = end - 3;
  if (star >= end || !is(star, "*")) return "";
  size_t begin = star;
  while (begin > 0 && (syntax.token(begin - 1).kind == Token::Kind::kWord || is(begin - 1, "::")))
    --begin;
  if (begin == 0 || (!is(begin - 1, "(") && !is(begin - 1, "<"))) return "";
  std::string type;
  for (size_t i = begin; i < star; ++i) {
    if (!is(i, "const") && !is(i, "struct"))
      type += (type.empty() ? "" : " ") + std::string(syntax.token(i).text);
  }
  return type;
}

}  // namespace

std::optional<Record> RecordOf(const CudaSyntax& syntax, const std::string& type) {
  const auto structure = StructureOf(syntax, type);
  if (!structure) return std::nullopt;
  std::map<int64_t, int> fixed;
  for (const Structure::Number& number : structure->numbers)
    FixHighBytes(number.dtype, number.offset, fixed);
  if (fixed.size() > kMostFixed) return std::nullopt;
  Record record{structure->bytes, "i * 2654435761 // 65536 % 256"};
  for (const auto& [at, value] : fixed)
    record.fill = fmt::format("{} if i % {} == {} else {}", value, record.bytes, at, record.fill);
  return record;
}

std::string CastOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
                   const std::string& name) {
  for (const TokenRange range : {kernel.body, TokenRange{0, syntax.lexed.tokens.size()}}) {
    for (size_t i = range.begin; i < range.end; ++i) {
      if (!syntax.token(i).Is(name)) continue;
      if (std::string type = CastBefore(syntax, i); !type.empty()) return type;
    }
  }
  return "";
}

}  // namespace atunner
