// Instructions that move values, and integer instructions.
#include <algorithm>

#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

bool AnySourceHasShadow(const ValueWriter& writer) {
  const auto& operands = writer.instruction().operands;
  return std::any_of(operands.begin() + 1, operands.end(),
                     [&](const TextOperand& operand) { return writer.HasShadow(operand); });
}

bool AnyResultHasShadow(const ValueWriter& writer) {
  return std::ranges::any_of(Results(writer.instruction()),
                             [&](int reg) { return reg >= 0 && writer.flow().HasShadow(reg); });
}

RawValue SourceOfMove(ValueWriter& writer, const TextOperand& source, int width) {
  if (source.kind != OperandKind::kVector) return writer.Raw(source, width);
  const int part = width / static_cast<int>(source.elements.size());
  std::vector<RawValue> parts;
  for (const TextOperand& element : source.elements) parts.push_back(writer.Raw(element, part));
  return writer.Join(parts);
}

/// True for a register declared as a float whose shadow is one double.
bool IsFloatRegister(const ValueWriter& writer, const TextOperand& operand) {
  return operand.kind == OperandKind::kRegister &&
         ClassOf(writer.TypeOf(operand.reg)) == RegisterClass::kFloat;
}

std::string Shuffled(ValueWriter& writer, const std::string& word) {
  std::string result = writer.Word();
  std::string rest;
  for (size_t i = 2; i < writer.instruction().operands.size(); ++i)
    rest += ", " + writer.operand(i).text;
  writer.PutGuarded("{} {}, {}{}", writer.instruction().Mnemonic(), result, word, rest);
  return result;
}

std::string ShuffledTwin(ValueWriter& writer, const std::string& twin) {
  const std::string low = writer.Word(), high = writer.Word();
  std::string result = writer.Double();
  writer.Put("mov.b64 {{{}, {}}}, {}", low, high, twin);
  const std::string from_low = Shuffled(writer, low), from_high = Shuffled(writer, high);
  writer.Put("mov.b64 {}, {{{}, {}}}", result, from_low, from_high);
  return result;
}

/// Name of the shadow of an operand of a duplicated instruction.
std::string ShadowName(const ValueWriter& writer, const TextOperand& operand) {
  if (operand.kind != OperandKind::kRegister || !writer.HasShadow(operand)) return operand.text;
  return IsFloatRegister(writer, operand) ? writer.Twin(operand.reg) : writer.Bits(operand.reg);
}

std::string TwinOfLane(const ValueWriter& writer, int operand, int lane) {
  const TextOperand& source = writer.operand(static_cast<size_t>(operand));
  if (source.kind != OperandKind::kRegister || IsFloatRegister(writer, source) ||
      !writer.flow().HasTwin(source.reg, lane))
    return "";
  return writer.Twin(source.reg, lane);
}

std::string MovedTwin(ValueWriter& writer, const LaneMove& move) {
  const std::string first = TwinOfLane(writer, move.operand, move.from);
  const std::string second = move.other < 0 ? "" : TwinOfLane(writer, move.other, move.to);
  if (first.empty() || second.empty()) {
    const std::string& twin = first.empty() ? second : first;
    if (twin.empty() || !(move.negate || move.absolute)) return twin;
    std::string changed = writer.Double();
    writer.Put("{}.f64 {}, {}", move.negate ? "neg" : "abs", changed, twin);
    return changed;
  }
  const std::string none = writer.Predicate();
  std::string chosen = writer.Double();
  writer.Put("setp.nan.f64 {0}, {1}, {1}", none, first);
  writer.Put("selp.f64 {}, {}, {}, {}", chosen, second, first, none);
  return chosen;
}

}  // namespace

void WriteMove(ValueWriter& writer) {
  if (writer.instruction().operands.size() != 2 || !AnyResultHasShadow(writer)) return;
  const TextOperand& to = writer.operand(0);
  const TextOperand& from = writer.operand(1);
  if (!writer.HasShadow(from)) return WriteOriginal(writer);
  if (IsFloatRegister(writer, to) && IsFloatRegister(writer, from) &&
      writer.TypeOf(to.reg) == writer.TypeOf(from.reg))
    return writer.PutGuarded("mov.f64 {}, {}", writer.Twin(to.reg), writer.Twin(from.reg));
  const int width = ptx::BitsOf(LastType(writer.instruction()));
  const size_t parts_moved = std::max(to.elements.size(), from.elements.size());
  if (VectorSize(writer.instruction()) > 1 || width > 64 ||
      static_cast<size_t>(width) < 16 * parts_moved)  // bytes, or whole vectors
    return WriteOriginal(writer);
  const RawValue value = SourceOfMove(writer, from, width);
  if (to.kind != OperandKind::kVector) return writer.Set(to.reg, value);
  const std::vector<RawValue> parts = writer.Split(value, to.elements.size());
  for (size_t i = 0; i < parts.size(); ++i) writer.Set(to.elements[i].reg, parts[i]);
}

void WriteSelect(ValueWriter& writer) {
  if (writer.instruction().operands.size() != 4 || !AnyResultHasShadow(writer)) return;
  if (!AnySourceHasShadow(writer)) return WriteOriginal(writer);
  const TextOperand& to = writer.operand(0);
  const std::string& condition = writer.operand(3).text;
  if (IsFloatRegister(writer, to)) {
    const Type type = writer.TypeOf(to.reg);
    const std::string a = writer.Fetch(writer.operand(1), type);
    const std::string b = writer.Fetch(writer.operand(2), type);
    return writer.PutGuarded("selp.f64 {}, {}, {}, {}", writer.Twin(to.reg), a, b, condition);
  }
  const int width = ptx::BitsOf(LastType(writer.instruction()));
  const RawValue a = writer.Raw(writer.operand(1), width), b = writer.Raw(writer.operand(2), width);
  RawValue chosen{.width = width, .bits = "", .twins = {}};
  chosen.bits = width == 16 ? writer.Half() : width == 32 ? writer.Word() : writer.Quad();
  writer.Put("selp.b{} {}, {}, {}, {}", width, chosen.bits, a.bits, b.bits, condition);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (a.twins[lane].empty() && b.twins[lane].empty()) continue;
    chosen.twins[lane] = writer.Double();
    const auto named = [](const std::string& twin) {
      return twin.empty() ? std::string(kNoTwin) : twin;
    };
    writer.Put("selp.f64 {}, {}, {}, {}", chosen.twins[lane], named(a.twins[lane]),
               named(b.twins[lane]), condition);
  }
  writer.Set(to.reg, chosen);
}

void WriteShuffle(ValueWriter& writer) {
  if (!AnyResultHasShadow(writer)) return;
  if (!writer.HasShadow(writer.operand(1))) return WriteOriginal(writer);
  RawValue value = writer.Raw(writer.operand(1), 32);
  value.bits = Shuffled(writer, value.bits);
  for (std::string& twin : value.twins) {
    if (!twin.empty()) twin = ShuffledTwin(writer, twin);
  }
  writer.Set(writer.operand(0).reg, value);
}

void WriteDuplicate(ValueWriter& writer) {
  if (!AnyResultHasShadow(writer)) return;
  if (!AnySourceHasShadow(writer)) return WriteOriginal(writer);
  const TextOperand& result = writer.operand(0);
  std::array<std::string, kLanes> twins;
  for (const LaneMove& move : LaneMoves(writer.instruction())) {
    if (!IsFloatRegister(writer, result) && writer.flow().HasTwin(result.reg, move.to))
      twins[static_cast<size_t>(move.to)] = MovedTwin(writer, move);
  }
  std::string operands;
  for (size_t i = 1; i < writer.instruction().operands.size(); ++i)
    operands += ", " + ShadowName(writer, writer.operand(i));
  writer.PutGuarded("{} {}{}", writer.instruction().Mnemonic(), ShadowName(writer, result),
                    operands);
  if (IsFloatRegister(writer, result)) return;
  writer.Set(result.reg, {.width = ptx::BitsOf(writer.TypeOf(result.reg)),
                          .bits = writer.Bits(result.reg),
                          .twins = twins});
}

}  // namespace atunner::shadow
