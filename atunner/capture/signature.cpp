#include "atunner/capture/signature.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace atunner::capture {
namespace {

std::string Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

/// Splits at commas outside of brackets.
std::vector<std::string> Split(std::string_view list) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    depth += std::string_view("(<[{").contains(list[i]) ? 1 : 0;
    depth -= std::string_view(")>]}").contains(list[i]) ? 1 : 0;
    if (list[i] != ',' || depth != 0) continue;
    parts.push_back(Trimmed(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (std::string last = Trimmed(list.substr(begin)); !last.empty()) parts.push_back(last);
  return parts;
}

/// Position of the bracket that the last character closes.
size_t OpeningOf(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    depth += std::string_view(")>]}").contains(text[i]) ? 1 : 0;
    depth -= std::string_view("(<[{").contains(text[i]) ? 1 : 0;
    if (depth == 0) return i;
  }
  return std::string_view::npos;
}

/// Removes a word wherever it stands alone.
std::string Without(std::string text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const auto is_name = [&](size_t i) {
      return i < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
    };
    if (is_name(at + word.size()) || (at > 0 && is_name(at - 1)))
      at += word.size();
    else
      text.erase(at, word.size());
  }
  return text;
}

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"float", DType::kFloat32},
    {"double", DType::kFloat64},
    {"__half", DType::kFloat16},
    {"half", DType::kFloat16},
    {"__half2", DType::kFloat16},
    {"__nv_bfloat16", DType::kBFloat16},
    {"__nv_bfloat162", DType::kBFloat16},
    {"char", DType::kInt8},
    {"signed char", DType::kInt8},
    {"unsigned char", DType::kUInt8},
    {"short", DType::kInt16},
    {"unsigned short", DType::kInt16},
    {"int", DType::kInt32},
    {"unsigned int", DType::kInt32},
    {"long", DType::kInt64},
    {"long long", DType::kInt64},
    {"unsigned long", DType::kInt64},
    {"unsigned long long", DType::kInt64},
    {"bool", DType::kUInt8},
};
constexpr std::pair<std::string_view, DType> kVectors[] = {
    {"float", DType::kFloat32}, {"double", DType::kFloat64}, {"int", DType::kInt32},
    {"uint", DType::kInt32},    {"char", DType::kInt8},      {"uchar", DType::kUInt8},
    {"short", DType::kInt16},   {"ushort", DType::kInt16},   {"long", DType::kInt64},
};

}  // namespace

Signature ParseSignature(std::string_view readable) {
  Signature signature;
  std::string_view text = readable;
  if (text.ends_with(')')) {
    const size_t open = OpeningOf(text);
    if (open == std::string_view::npos) return {Trimmed(text), {}, {}};
    signature.parameters = Split(text.substr(open + 1, text.size() - open - 2));
    text = text.substr(0, open);
  }
  if (text.starts_with("void ")) text.remove_prefix(5);
  if (text.ends_with('>')) {
    const size_t open = OpeningOf(text);
    if (open != std::string_view::npos) {
      signature.template_args = Split(text.substr(open + 1, text.size() - open - 2));
      text = text.substr(0, open);
    }
  }
  signature.name = Trimmed(text);
  return signature;
}

std::optional<DType> PointeeOf(std::string_view parameter) {
  std::string type(parameter);
  for (const char* word : {"const", "volatile", "__restrict__", "restrict"})
    type = Without(std::move(type), word);
  type = Trimmed(type);
  if (!type.ends_with('*')) return std::nullopt;
  type = Trimmed(std::string_view(type).substr(0, type.size() - 1));
  for (const auto& [name, dtype] : kTypes) {
    if (type == name) return dtype;
  }
  for (const auto& [name, dtype] : kVectors) {
    if (type.size() == name.size() + 1 && type.starts_with(name) && type.back() >= '1' &&
        type.back() <= '4')
      return dtype;
  }
  return std::nullopt;
}

}  // namespace atunner::capture
