#include "faces/cli/flags/launch_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "atunner/base/files.h"

namespace atunner::cli {
namespace {

constexpr size_t kMostBytes = size_t{1} << 34;  // of one argument's memory
constexpr const char* kForms =
    "write 5, f32=1,2, f32:1,2,3 (memory), f32[1000] (memory that nothing was written to), "
    "f32[1000]:0, f32@file or "
    "texture:f32[64,32]";

Error Wrong(const std::string& what, const std::string& text) {
  return {ErrorCode::kInvalidInput, what, "--arg " + text, kForms};
}

bool IsWide(DType dtype) { return !IsFloat(dtype) && SizeOf(dtype) == 8; }

/// Decimal or 0x…, with a sign; none for text that is no integer of 64 bits.
std::optional<uint64_t> Integer(std::string_view text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value,
                                            hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return minus ? 0 - value : value;
}

std::optional<double> Number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

/// Whether `value`, as Integer gives it, has a place in `bytes` bytes, with or without a sign.
bool Fits(uint64_t value, size_t bytes) {
  if (bytes >= 8) return true;
  const auto as_signed = static_cast<int64_t>(value);
  return value >> (8 * bytes) == 0 ||
         (as_signed < 0 && as_signed >= -(int64_t{1} << (8 * bytes - 1)));
}

Status Append(DType dtype, const std::string& value, const std::string& text,
              std::vector<std::byte>& to) {
  const size_t size = SizeOf(dtype);
  to.resize(to.size() + size);
  std::byte* place = to.data() + to.size() - size;
  if (!IsFloat(dtype)) {
    const auto bits = Integer(value);
    if (!bits || !Fits(*bits, size))
      return std::unexpected(Wrong(fmt::format("'{}' is no {}", value, Name(dtype)), text));
    std::memcpy(place, &*bits, size);
    return {};
  }
  const auto number = Number(value);
  if (!number) return std::unexpected(Wrong(fmt::format("'{}' is no number", value), text));
  StoreElement(dtype, place, 0, *number);
  return {};
}

Result<std::vector<std::byte>> Values(DType dtype, const std::string& list,
                                      const std::string& text) {
  std::vector<std::byte> bytes;
  std::istringstream values(list);
  for (std::string value; std::getline(values, value, ',');)
    ATUNNER_RETURN_IF_ERROR(Append(dtype, value, text, bytes));
  if (bytes.empty()) return std::unexpected(Wrong("there are no values", text));
  return bytes;
}

/// "[1000]" of "f32[1000]:0"; leaves what stands behind it in `rest`.
Result<size_t> Count(std::string& rest, const std::string& text) {
  const size_t close = rest.find(']');
  const auto count = close == std::string::npos ? std::nullopt : Integer(rest.substr(1, close - 1));
  if (!count || *count == 0 || *count > kMostBytes / 8)
    return std::unexpected(Wrong("how many elements is not clear", text));
  rest.erase(0, close + 1);
  return static_cast<size_t>(*count);
}

void Repeat(std::vector<std::byte>& bytes, size_t size) {
  const size_t period = bytes.size();
  bytes.resize(size);
  for (size_t i = period; i < size; ++i) bytes[i] = bytes[i - period];
}

/// "texture:f32[64,32]" or "surface:u8x4[16]"; nullopt for text of another form.
Result<std::optional<LaunchArgument>> ParseTextureArgument(const std::string& text) {
  for (const std::string_view kind : {"texture:", "surface:"}) {
    if (!text.starts_with(kind)) continue;
    auto spec = ParseTexture(text.substr(kind.size()));
    if (!spec) return std::unexpected(Wrong(spec.error().what, text));
    LaunchArgument made;
    made.text = text;
    made.texture = *spec;
    made.surface = kind == "surface:";
    made.dtype = made.texture->dtype;
    made.content = RandomTexels(*made.texture);
    return made;
  }
  return std::nullopt;
}

/// The bytes of a file that holds whole elements of the type.
Result<std::vector<std::byte>> FileContent(const std::string& file, DType dtype,
                                           const std::string& text) {
  ATUNNER_TRY(const std::string bytes, ReadFile(file));
  if (bytes.empty() || bytes.size() % SizeOf(dtype) != 0)
    return std::unexpected(
        Wrong(fmt::format("the file's {} bytes are no whole elements", bytes.size()), text));
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return std::vector<std::byte>(data, data + bytes.size());
}

/// The content that stands behind the type and the count: "@x.bin", ":1,2", "=1,2" or nothing.
Result<std::vector<std::byte>> ParseContent(DType dtype, const std::string& rest,
                                            const std::string& text) {
  if (rest.starts_with('@')) return FileContent(rest.substr(1), dtype, text);
  if (rest.starts_with(':') || rest.starts_with('=')) return Values(dtype, rest.substr(1), text);
  if (!rest.empty()) return std::unexpected(Wrong("'" + rest + "' is not understood", text));
  return std::vector<std::byte>{};
}

/// A number without a type, as a float of the parameter's size.
Result<std::vector<std::byte>> FloatBytes(const std::string& text, size_t size) {
  if (size != 2 && size != 4 && size != 8)
    return std::unexpected(
        Wrong(fmt::format("the parameter has {} bytes and is no float", size), text));
  std::vector<std::byte> bytes(size);
  const DType dtype = size == 2 ? DType::kFloat16 : size == 4 ? DType::kFloat32 : DType::kFloat64;
  StoreElement(dtype, bytes.data(), 0, *Number(text));
  return bytes;
}

}  // namespace

Result<Dim3> ParseDim3(const std::string& flag, const std::string& text) {
  Dim3 dims;
  const int read = std::sscanf(text.c_str(), "%u,%u,%u", &dims.x, &dims.y, &dims.z);
  const bool plain = text.find_first_not_of("0123456789,") == std::string::npos &&
                     !text.ends_with(',');
  if (!plain || read < 1 || std::ranges::count(text, ',') != read - 1 || dims.Count() == 0)
    return Invalid("'" + text + "' is no size", flag, "write x, x,y or x,y,z");
  return dims;
}

Result<LaunchArgument> ParseLaunchArgument(const std::string& text) {
  ATUNNER_TRY(std::optional<LaunchArgument> texture, ParseTextureArgument(text));
  if (texture) return *std::move(texture);
  LaunchArgument made;
  made.text = text;
  const size_t mark = text.find_first_of("=:[@");
  if (mark == std::string::npos) {
    if (Integer(text) || Number(text)) return made;
    return std::unexpected(Wrong("'" + text + "' is no number", text));
  }
  made.dtype = ParseDType(text.substr(0, mark));
  if (!made.dtype)
    return std::unexpected(Wrong(
        fmt::format("there is no type '{}'; known are {}", text.substr(0, mark), DTypeNames()),
        text));
  made.memory = text[mark] != '=';
  std::string rest = text.substr(mark);
  size_t count = 0;
  if (rest[0] == '[') {
    ATUNNER_TRY(count, Count(rest, text));
  }
  ATUNNER_TRY(made.content, ParseContent(*made.dtype, rest, text));
  if (count != 0 && !made.content.empty()) Repeat(made.content, count * SizeOf(*made.dtype));
  made.elements = count != 0 ? count : made.content.size() / SizeOf(*made.dtype);
  return made;
}

Result<std::vector<std::byte>> ValueBytes(const LaunchArgument& argument,
                                          const Parameter& parameter) {
  const size_t size = parameter.bytes;
  const std::string& text = argument.text;
  if (argument.dtype) {
    if (argument.content.size() == size) return argument.content;
    return std::unexpected(Wrong(fmt::format("the parameter has {} bytes, the values have {}", size,
                                             argument.content.size()),
                                 text));
  }
  const auto integer = Integer(text);
  const bool bits = text.find_first_of("xX") != std::string::npos;
  if (integer && (bits || parameter.kind != Parameter::Kind::kFloat)) {
    if (size > 8 || !Fits(*integer, size))
      return std::unexpected(Wrong(fmt::format("the parameter has {} bytes", size), text));
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &*integer, size);
    return bytes;
  }
  if (parameter.kind == Parameter::Kind::kInteger)
    return std::unexpected(
        Wrong(fmt::format("the parameter is an integer of {} bytes", size), text));
  return FloatBytes(text, size);
}

std::string ElementText(DType dtype, const std::vector<std::byte>& bytes, size_t index) {
  if (IsWide(dtype)) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + 8 * index, 8);
    return KindOf(dtype) == DTypeKind::kSigned ? std::to_string(static_cast<int64_t>(bits))
                                               : std::to_string(bits);
  }
  const double value = LoadElement(dtype, bytes.data(), index);
  return dtype == DType::kFloat64 || !IsFloat(dtype) ? fmt::format("{}", value)
                                                     : fmt::format("{}", static_cast<float>(value));
}

Json ElementJson(DType dtype, const std::vector<std::byte>& bytes, size_t index) {
  std::string text = ElementText(dtype, bytes, index);
  if (IsFloat(dtype) && !std::isfinite(LoadElement(dtype, bytes.data(), index))) return text;
  return Json::parse(text);
}

}  // namespace atunner::cli
