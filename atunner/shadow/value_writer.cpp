#include "atunner/shadow/value_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "atunner/model/value/dtype.h"

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

std::string HexOf(double value) { return fmt::format("0d{:016X}", std::bit_cast<uint64_t>(value)); }

/// The value of a constant as an operand of a float instruction.
double ValueOf(const TextOperand& constant, Type type) {
  std::string text = constant.text;
  const bool negative = text.starts_with('-');
  if (negative) text.erase(0, text.find_first_not_of("- \t"));
  double value = 0;
  if (text.starts_with("0f") || text.starts_with("0F"))
    value = std::bit_cast<float>(
        static_cast<uint32_t>(std::strtoull(text.c_str() + 2, nullptr, 16)));
  else if (text.starts_with("0d") || text.starts_with("0D"))
    value = std::bit_cast<double>(
        static_cast<uint64_t>(std::strtoull(text.c_str() + 2, nullptr, 16)));
  else if (text.find('.') != std::string::npos)
    value = std::strtof(text.c_str(), nullptr);
  else if (const auto bits = IntegerOf(constant))
    return type == Type::kF16    ? HalfToFloat(static_cast<uint16_t>(*bits))
           : type == Type::kBF16 ? BFloat16ToFloat(static_cast<uint16_t>(*bits))
                                 : std::bit_cast<float>(static_cast<uint32_t>(*bits));
  return negative ? -value : value;
}

}  // namespace

ValueWriter::ValueWriter(const TextFunction& function, const Flow& flow, ModuleFacts& facts)
    : function_(function), flow_(flow), facts_(facts) {}

std::string ValueWriter::Twin(int reg, int lane) const {
  return fmt::format("%atunner_t{}_{}", reg, lane);
}

std::string ValueWriter::Bits(int reg) const { return fmt::format("%atunner_b{}", reg); }

bool ValueWriter::HasShadow(const TextOperand& operand) const {
  if (operand.kind == OperandKind::kVector)
    return std::ranges::any_of(operand.elements,
                               [&](const TextOperand& element) { return HasShadow(element); });
  return operand.kind == OperandKind::kRegister && flow_.HasShadow(operand.reg);
}

std::string ValueWriter::Widen(Type type, const std::string& bits) {
  const std::string value = Double();
  if (type == Type::kF64) {
    Put("mov.b64 {}, {}", value, bits);
  } else if (type == Type::kF16) {
    Put("cvt.f64.f16 {}, {}", value, bits);
  } else if (type == Type::kBF16) {
    const std::string word = Word();
    Put("cvt.u32.u16 {}, {}", word, bits);
    Put("shl.b32 {0}, {0}, 16", word);
    Put("cvt.f64.f32 {}, {}", value, word);
  } else {
    Put("cvt.f64.f32 {}, {}", value, bits);
  }
  return value;
}

std::string ValueWriter::Round(Type type, const std::string& value) {
  if (type == Type::kF64) {
    std::string bits = Quad();
    Put("mov.b64 {}, {}", bits, value);
    return bits;
  }
  if (value.starts_with("0d")) {
    const std::string constant = Double();
    Put("mov.f64 {}, {}", constant, value);
    return Round(type, constant);
  }
  std::string word = Word();
  if (type == Type::kF16) {
    std::string half = Half();
    Put("cvt.rn.f16.f64 {}, {}", half, value);
    return half;
  }
  Put("cvt.rn.f32.f64 {}, {}", word, value);
  if (type != Type::kBF16) return word;
  std::string half = Half();
  Put("cvt.rn.bf16.f32 {}, {}", half, word);
  return half;
}

std::string ValueWriter::FetchConstant(const TextOperand& source, Type type) {
  return HexOf(ValueOf(source, type));
}

std::string ValueWriter::Fetch(const TextOperand& source, Type type, int lane) {
  if (source.kind == OperandKind::kConstant) return FetchConstant(source, type);
  if (source.kind == OperandKind::kRegister &&
      ClassOf(TypeOf(source.reg)) == RegisterClass::kFloat && TypeOf(source.reg) == type)
    return flow_.HasTwin(source.reg) ? Twin(source.reg) : Widen(type, NameOf(source.reg));
  const int declared = source.kind == OperandKind::kRegister ? ptx::BitsOf(TypeOf(source.reg)) : 32;
  return Fetch(Raw(source, declared), type, lane);
}

std::string ValueWriter::Fetch(const RawValue& source, Type type, int lane) {
  const std::string bits = LaneBits(source, type, lane);
  std::string value = Checked(source, type, lane, bits, Widen(type, bits));
  const auto next = static_cast<size_t>(lane) + 1;
  const bool word = type == Type::kF32 || type == Type::kTF32;
  if (!word || next >= source.twins.size() || source.twins[next].empty()) return value;
  // A bfloat16 moved into the upper half of a word is the same number in float32.
  const std::string low = Half(), high = Half(), fits = Predicate(), chosen = Double();
  Put("mov.b32 {{{}, {}}}, {}", low, high, bits);
  Put("setp.eq.b16 {}, {}, {}", fits, Round(Type::kBF16, source.twins[next]), high);
  Put("setp.eq.and.b16 {0}, {1}, 0, {0}", fits, low);
  Put("selp.f64 {}, {}, {}, {}", chosen, source.twins[next], value, fits);
  return chosen;
}

/// The twin of a lane if it rounds to `bits`, else `value`.
std::string ValueWriter::Checked(const RawValue& source, Type type, int lane,
                                 const std::string& bits, const std::string& value) {
  if (type == Type::kF64) return value;
  const std::string& twin = source.twins[static_cast<size_t>(lane)];
  if (twin.empty()) return value;
  const std::string rounded = Round(type, twin), fits = Predicate(), chosen = Double();
  const int width = type == Type::kF16 || type == Type::kBF16 ? 16 : 32;
  Put("setp.eq.b{} {}, {}, {}", width, fits, rounded, bits);
  Put("selp.f64 {}, {}, {}, {}", chosen, twin, value, fits);
  return chosen;
}

std::string ValueWriter::LaneBits(const RawValue& source, Type type, int lane) {
  const int width = type == Type::kF64 ? 64 : type == Type::kF16 || type == Type::kBF16 ? 16 : 32;
  if (width >= source.width) return InRegister(source.bits, source.width);
  const auto parts = Split(source, static_cast<size_t>(source.width / width));
  return parts[std::min(static_cast<size_t>(lane * 16 / width), parts.size() - 1)].bits;
}

std::string ValueWriter::InRegister(const std::string& bits, int width) {
  if (bits.starts_with('%')) return bits;
  std::string copy = width == 16 ? Half() : width == 32 ? Word() : Quad();
  Put("mov.b{} {}, {}", width, copy, bits);
  return copy;
}

RawValue ValueWriter::RawOfFloat(const TextOperand& source) {
  const Type type = TypeOf(source.reg);
  RawValue value{.width = ptx::BitsOf(type), .bits = Untyped(source.reg), .twins = {}};
  if (!flow_.HasTwin(source.reg)) return value;
  const std::string twin = Twin(source.reg);
  const std::string rounded = Round(type, twin);
  if (type == Type::kF64) {
    value.bits = rounded;
    return value;
  }
  // The bits of a NaN may be an integer that travels in a float register.
  const std::string nan = Predicate();
  const std::string bits = value.width == 16 ? Half() : Word();
  Put("setp.nan.f64 {}, {}, {}", nan, twin, twin);
  Put("selp.b{} {}, {}, {}, {}", value.width, bits, value.bits, rounded, nan);
  value.bits = bits;
  value.twins[0] = twin;
  return value;
}

std::string ValueWriter::Narrowed(const std::string& bits, int from, int to) {
  std::string narrow = to == 16 ? Half() : to == 32 ? Word() : Quad();
  Put("cvt.u{}.u{} {}, {}", to, from, narrow, bits);
  return narrow;
}

RawValue ValueWriter::Raw(const TextOperand& source, int width) {
  if (source.kind != OperandKind::kRegister)
    return {.width = width, .bits = source.text, .twins = {}};
  const Type type = TypeOf(source.reg);
  RawValue value{.width = ptx::BitsOf(type), .bits = "", .twins = {}};
  if (ClassOf(type) == RegisterClass::kFloat) {
    value = RawOfFloat(source);
  } else if (ClassOf(type) == RegisterClass::kRaw && flow_.HasBits(source.reg)) {
    value.bits = Bits(source.reg);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (flow_.HasTwin(source.reg, lane))
        value.twins[static_cast<size_t>(lane)] = Twin(source.reg, lane);
    }
  } else {
    value.bits = Untyped(source.reg);
  }
  if (value.width != width) {
    value.bits = Narrowed(value.bits, value.width, width);
    for (auto lane = static_cast<size_t>(std::min(width, value.width)) / 16; lane < kLanes; ++lane)
      value.twins[lane].clear();
    value.width = width;
  }
  return value;
}

std::string ValueWriter::OriginalBits(const TextOperand& source, int width) {
  if (source.kind != OperandKind::kRegister) return source.text;
  const int declared = ptx::BitsOf(TypeOf(source.reg));
  return declared == width ? Untyped(source.reg) : Narrowed(Untyped(source.reg), declared, width);
}

std::string ValueWriter::Untyped(int reg) {
  const Type type = TypeOf(reg);
  const int width = ptx::BitsOf(type);
  if (type >= Type::kB8 && type <= Type::kB64) return NameOf(reg);
  std::string copy = width == 16 ? Half() : width == 32 ? Word() : Quad();
  Put("mov.b{} {}, {}", width, copy, NameOf(reg));
  return copy;
}

RawValue ValueWriter::Join(const std::vector<RawValue>& parts) {
  if (parts.size() == 1) return parts[0];
  RawValue whole;
  whole.width = parts[0].width * static_cast<int>(parts.size());
  whole.bits = whole.width == 32 ? Word() : Quad();
  std::vector<std::string> bits;
  size_t lane = 0;
  for (const RawValue& part : parts) {
    bits.push_back(part.bits);
    for (size_t i = 0; i < static_cast<size_t>(part.width) / 16 && lane < kLanes; ++i)
      whole.twins[lane++] = part.twins[i];
  }
  Put("mov.b{} {}, {{{}}}", whole.width, whole.bits, fmt::join(bits, ", "));
  return whole;
}

std::vector<RawValue> ValueWriter::Split(const RawValue& whole, size_t count) {
  if (count == 1) return {whole};
  const int width = whole.width / static_cast<int>(count);
  std::vector<RawValue> parts;
  std::vector<std::string> bits;
  for (size_t i = 0; i < count; ++i) {
    bits.push_back(width == 16 ? Half() : Word());
    parts.push_back({.width = width, .bits = bits.back(), .twins = {}});
    const size_t lanes = static_cast<size_t>(width) / 16;
    for (size_t lane = 0; lane < lanes && (i + 1) * lanes <= kLanes; ++lane)
      parts[i].twins[lane] = whole.twins[i * lanes + lane];
  }
  Put("mov.b{} {{{}}}, {}", whole.width, fmt::join(bits, ", "),
      InRegister(whole.bits, whole.width));
  return parts;
}

void ValueWriter::Set(int reg, const RawValue& value) {
  if (reg < 0 || !flow_.HasShadow(reg)) return;
  if (ClassOf(TypeOf(reg)) == RegisterClass::kFloat) {
    const std::string twin = Fetch(value, TypeOf(reg));
    return PutGuarded("mov.f64 {}, {}", Twin(reg), twin);
  }
  const int width = ptx::BitsOf(TypeOf(reg));
  const std::string bits = value.width == width ? value.bits
                                                : Narrowed(value.bits, value.width, width);
  PutGuarded("mov.b{} {}, {}", width, Bits(reg), bits);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!flow_.HasTwin(reg, lane)) continue;
    const std::string& twin = value.twins[static_cast<size_t>(lane)];
    PutGuarded("mov.f64 {}, {}", Twin(reg, lane), twin.empty() ? std::string(kNoTwin) : twin);
  }
}

void ValueWriter::SetFloats(int reg, Type type, const std::vector<std::string>& values) {
  if (reg < 0 || !flow_.HasShadow(reg)) return;
  if (ClassOf(TypeOf(reg)) == RegisterClass::kFloat)
    return PutGuarded("mov.f64 {}, {}", Twin(reg), values[0]);
  std::vector<RawValue> parts;
  for (const std::string& value : values) {
    RawValue part{.width = type == Type::kF64                          ? 64
                           : type == Type::kF16 || type == Type::kBF16 ? 16
                                                                       : 32,
                  .bits = Round(type, value),
                  .twins = {}};
    if (type != Type::kF64) part.twins[0] = value;
    parts.push_back(std::move(part));
  }
  Set(reg, Join(parts));
}

void ValueWriter::SetOriginal(int reg) {
  if (reg < 0 || !flow_.HasShadow(reg)) return;
  const Type type = TypeOf(reg);
  if (ClassOf(type) == RegisterClass::kFloat)
    return PutGuarded("mov.f64 {}, {}", Twin(reg), Widen(type, NameOf(reg)));
  Set(reg, {.width = ptx::BitsOf(type), .bits = NameOf(reg), .twins = {}});
}

std::string ValueWriter::Declarations() const {
  std::string text = Temporaries();
  for (size_t i = 0; i < function_.registers.size(); ++i) {
    const int reg = static_cast<int>(i);
    if (flow_.HasBits(reg))
      text += fmt::format("\t.reg .b{} {};\n", ptx::BitsOf(TypeOf(reg)), Bits(reg));
    for (int lane = 0; lane < kLanes; ++lane) {
      if (flow_.HasTwin(reg, lane)) text += fmt::format("\t.reg .f64 {};\n", Twin(reg, lane));
    }
  }
  return text;
}

}  // namespace atunner::shadow
