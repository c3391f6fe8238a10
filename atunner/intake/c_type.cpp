#include "atunner/intake/c_type.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

namespace atunner {
namespace {

struct Named {
  std::string_view name;
  DType dtype;
  int lanes = 1;
};
constexpr Named kNamed[] = {
    {"half", DType::kFloat16},
    {"__half", DType::kFloat16},
    {"half2", DType::kFloat16, 2},
    {"__half2", DType::kFloat16, 2},
    {"nv_bfloat16", DType::kBFloat16},
    {"__nv_bfloat16", DType::kBFloat16},
    {"nv_bfloat162", DType::kBFloat16, 2},
    {"__nv_bfloat162", DType::kBFloat16, 2},
    {"size_t", DType::kUInt64},
    {"ptrdiff_t", DType::kInt64},
    {"uint", DType::kUInt32},
    {"uchar", DType::kUInt8},
    {"ushort", DType::kUInt16},
    {"ulong", DType::kUInt64},
    {"int8_t", DType::kInt8},
    {"int16_t", DType::kInt16},
    {"int32_t", DType::kInt32},
    {"int64_t", DType::kInt64},
    {"uint8_t", DType::kUInt8},
    {"uint16_t", DType::kUInt16},
    {"uint32_t", DType::kUInt32},
    {"uint64_t", DType::kUInt64},
};
constexpr Named kVectors[] = {
    {"float", DType::kFloat32},    {"double", DType::kFloat64}, {"int", DType::kInt32},
    {"uint", DType::kUInt32},      {"char", DType::kInt8},      {"uchar", DType::kUInt8},
    {"short", DType::kInt16},      {"ushort", DType::kUInt16},  {"longlong", DType::kInt64},
    {"ulonglong", DType::kUInt64},
};

DType DTypeOf(const std::string& base, int longs, bool is_unsigned) {
  if (base == "float") return DType::kFloat32;
  if (base == "double") return DType::kFloat64;
  if (base == "bool") return DType::kBool;
  if (base == "char") return is_unsigned ? DType::kUInt8 : DType::kInt8;
  if (base == "short") return is_unsigned ? DType::kUInt16 : DType::kInt16;
  if (longs > 0) return is_unsigned ? DType::kUInt64 : DType::kInt64;
  return is_unsigned ? DType::kUInt32 : DType::kInt32;
}

/// A type of one or more keywords in any order, e.g. "long unsigned int".
std::optional<DType> Fundamental(const std::vector<std::string>& words) {
  int longs = 0;
  bool is_unsigned = false;
  std::string base;
  for (const std::string& word : words) {
    if (word == "long") {
      ++longs;
    } else if (word == "unsigned") {
      is_unsigned = true;
    } else if (word == "signed" || (word == "int" && !base.empty())) {
      continue;
    } else if (word == "int" || word == "char" || word == "short" || word == "float" ||
               word == "double" || word == "bool") {
      if (!base.empty() && base != "int") return std::nullopt;
      base = word;
    } else {
      return std::nullopt;
    }
  }
  return DTypeOf(base, longs, is_unsigned);
}

std::optional<CType> NamedType(const std::string& name) {
  for (const Named& each : kNamed) {
    if (each.name == name) return CType{each.dtype, each.lanes};
  }
  for (const Named& each : kVectors) {
    if (name.size() == each.name.size() + 1 && name.starts_with(each.name) && name.back() >= '1' &&
        name.back() <= '4')
      return CType{each.dtype, name.back() - '0'};
  }
  return std::nullopt;
}

}  // namespace

std::optional<CType> ParseCType(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    if (word.starts_with("std::")) word = word.substr(5);
    words.push_back(word);
  }
  if (words.empty()) return std::nullopt;
  if (const auto fundamental = Fundamental(words)) return CType{*fundamental, 1};
  if (words.size() != 1) return std::nullopt;
  if (const auto named = NamedType(words.front())) return named;
  // Descriptions by other tools say "float32" or "bf16".
  if (const auto dtype = ParseDType(words.front())) return CType{*dtype, 1};
  return std::nullopt;
}

}  // namespace atunner
