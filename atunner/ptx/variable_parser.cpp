#include "atunner/ptx/variable_parser.h"

#include <algorithm>
#include <bit>

namespace atunner::ptx {
namespace {

/// Initial contents are held in memory; a file that states a few of them may claim any size.
constexpr uint64_t kMaxInitialisedBytes = uint64_t{1} << 28;
constexpr uint64_t kMaxElements = uint64_t{1} << 34;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 16;
constexpr uint64_t kOpaqueBytes = 8;  // a texture, sampler or surface reference

uint64_t AlignUp(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

bool IsOpaque(std::string_view word) {
  return word == ".texref" || word == ".samplerref" || word == ".surfref";
}

}  // namespace

void Place(Variable& variable, uint64_t& used) {
  used = AlignUp(used, std::max(1u, variable.align));
  variable.offset = used;
  used += variable.bytes;
}

Result<Variable> VariableParser::Declaration() {
  Variable variable;
  element_bytes_ = 0;
  lanes_ = 1;
  while (tokens_.Peek().starts_with('.'))
    ATUNNER_RETURN_IF_ERROR(Attribute(tokens_.Next(), variable));
  if (element_bytes_ == 0) return tokens_.Bad("variable without a type");
  variable.name = std::string(tokens_.Next());
  variable.align = std::max(variable.align, static_cast<uint32_t>(element_bytes_));
  ATUNNER_TRY(const uint64_t count, Extents(lanes_));
  variable.bytes = count * element_bytes_;
  return variable;
}

Status VariableParser::Attribute(std::string_view word, Variable& variable) {
  if (word == ".align") return Alignment(variable);
  if (word == ".ptr") {
    while (tokens_.Peek() == ".global" || tokens_.Peek() == ".shared" ||
           tokens_.Peek() == ".const" || tokens_.Peek() == ".local")
      tokens_.Next();
  } else if (word == ".v2" || word == ".v4") {
    lanes_ = word == ".v2" ? 2 : 4;
  } else if (IsOpaque(word)) {
    variable.opaque = word.substr(1);
    element_bytes_ = kOpaqueBytes;
  } else if (const Type type = TypeOfWord(word); type != Type::kNone) {
    element_bytes_ = static_cast<uint64_t>(std::max(8, BitsOf(type))) / 8;
    variable.type = type;
  } else if (word == ".attribute") {
    tokens_.SkipPast(")");
  }
  return {};
}

Status VariableParser::Alignment(Variable& variable) {
  const uint32_t line = tokens_.Line();
  ATUNNER_TRY(const uint64_t align, constants_.Number());
  if (!std::has_single_bit(align))
    return TokenStream::BadAt(
        line, "'.align " + std::to_string(align) + "': an alignment must be a power of two");
  variable.align = static_cast<uint32_t>(std::min(align, kMaxAlignment));
  return {};
}

Result<uint64_t> VariableParser::Extents(uint64_t count) {
  while (tokens_.Accept("[")) {
    if (tokens_.Accept("]")) {
      count = 0;
      continue;
    }
    ATUNNER_TRY(const Operand size, constants_.Immediate());
    const uint64_t extent = size.bits;
    if (extent > 0 && count > kMaxElements / extent) return tokens_.Bad("array is too large");
    count *= extent;
    if (!tokens_.Accept("]")) return tokens_.Bad("expected ']'");
  }
  return count;
}

Status VariableParser::Finish(Variable& variable) {
  if (tokens_.Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
  return tokens_.Accept(";") ? Status{} : Status(tokens_.Bad("expected ';'"));
}

Status VariableParser::Initialiser(Variable& variable) {
  variable.initial.clear();
  int depth = 0;
  do {
    if (tokens_.End() && depth > 0) return tokens_.Bad("initialiser without end");
    if (tokens_.Accept("{"))
      ++depth;
    else if (depth > 0 && tokens_.Accept("}"))
      --depth;
    else if (depth == 0 || !tokens_.Accept(","))
      ATUNNER_RETURN_IF_ERROR(InitialValue(variable));
  } while (depth > 0);
  if (variable.bytes > kMaxInitialisedBytes) return tokens_.Bad("initialised array is too large");
  if (variable.bytes == 0) variable.bytes = variable.initial.size();
  variable.initial.resize(variable.bytes);
  return {};
}

Status VariableParser::InitialValue(Variable& variable) {
  uint64_t bits = 0;
  const std::string_view token = tokens_.Peek();
  if (!token.empty() && IsWordStart(token[0])) {
    std::string name(tokens_.Next());
    if (name == "generic" && tokens_.Accept("(")) {
      name = std::string(tokens_.Next());
      tokens_.Accept(")");
    }
    ATUNNER_TRY(bits, constants_.Offset());
    variable.references.emplace_back(variable.initial.size(), name);
  } else {
    ATUNNER_TRY(bits, InitialNumber(variable.type));
  }
  for (uint64_t i = 0; i < element_bytes_; ++i)
    variable.initial.push_back(static_cast<std::byte>(bits >> (8 * i)));
  return {};
}

Result<uint64_t> VariableParser::InitialNumber(Type type) {
  ATUNNER_TRY(const Operand value, constants_.Immediate());
  const bool needs_float = type == Type::kF32 || type == Type::kF64;
  const bool needs_integer = type >= Type::kU8 && type <= Type::kS64;
  if (value.is_float ? needs_integer : needs_float)
    return tokens_.Bad("an initial value of another type");
  if (value.is_float && !value.is_single && type == Type::kF32)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value.bits)));
  return value.bits;
}

}  // namespace atunner::ptx
