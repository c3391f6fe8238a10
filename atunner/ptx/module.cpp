#include "atunner/ptx/module.h"

#include <algorithm>

namespace atunner::ptx {
namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::kPred},     {"b8", Type::kB8},       {"b16", Type::kB16},
    {"b32", Type::kB32},       {"b64", Type::kB64},     {"b128", Type::kB128},
    {"u8", Type::kU8},         {"u16", Type::kU16},     {"u32", Type::kU32},
    {"u64", Type::kU64},       {"s8", Type::kS8},       {"s16", Type::kS16},
    {"s32", Type::kS32},       {"s64", Type::kS64},     {"f16", Type::kF16},
    {"f16x2", Type::kF16x2},   {"bf16", Type::kBF16},   {"bf16x2", Type::kBF16x2},
    {"tf32", Type::kTF32},     {"f32", Type::kF32},     {"f64", Type::kF64},
    {"u16x2", Type::kU16x2},   {"s16x2", Type::kS16x2}, {"e4m3x2", Type::kE4M3x2},
    {"e5m2x2", Type::kE5M2x2}, {"e4m3", Type::kE4M3},   {"e5m2", Type::kE5M2},
};

}  // namespace

int BitsOf(Type type) {
  switch (type) {
    case Type::kNone:
      return 0;
    case Type::kPred:
      return 1;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
    case Type::kE4M3:
    case Type::kE5M2:
      return 8;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
    case Type::kE4M3x2:
    case Type::kE5M2x2:
      return 16;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 64;
    case Type::kB128:
      return 128;
    default:
      return 32;
  }
}

Type ParseType(std::string_view text) {
  for (const auto& [name, type] : kTypes) {
    if (name == text) return type;
  }
  return Type::kNone;
}

bool Instruction::Has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

std::string Instruction::Mnemonic() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text += "." + modifier;
  return text;
}

const Function* ValidModule::Find(std::string_view name) const {
  for (const Function& function : functions_) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::string ValidModule::SourceFile(uint32_t index) const {
  const auto at = files_.find(index);
  return at == files_.end() ? "" : at->second;
}

}  // namespace atunner::ptx
