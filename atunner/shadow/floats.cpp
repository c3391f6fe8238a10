// Arithmetic and conversions of floats, in double.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

/// Functions of kernels/shadow/functions.ptx by opcode. The sine takes a number of quarters of a
/// turn that are added to its argument.
struct CalledFunction {
  std::string_view opcode, name;
  int quarter = -1;
};
constexpr CalledFunction kFunctions[] = {{"ex2", "atunner_shadow_exp2"},
                                         {"lg2", "atunner_shadow_log2"},
                                         {"sin", "atunner_shadow_sine", 0},
                                         {"cos", "atunner_shadow_sine", 1},
                                         {"tanh", "atunner_shadow_tanh"}};

std::string Called(ValueWriter& writer, const CalledFunction& function,
                   const std::string& argument) {
  std::string result = writer.Double();
  writer.facts().calls_functions = true;
  writer.Line("{ .param .b64 argument");
  if (function.quarter >= 0) writer.Line(".param .b32 quarter");
  writer.Line(".param .b64 result");
  writer.Put("st.param.f64 [argument], {}", argument);
  if (function.quarter >= 0) writer.Put("st.param.b32 [quarter], {}", function.quarter);
  writer.Put("call (result), {}, (argument{})", function.name,
             function.quarter >= 0 ? ", quarter" : "");
  writer.Put("ld.param.f64 {}, [result]", result);
  writer.Line("}");
  return result;
}

/// min or max; `propagates`: NaN if either is one.
std::string Extreme(ValueWriter& writer, const std::string& op, const std::string& a,
                    const std::string& b, bool propagates) {
  std::string result = writer.Double();
  writer.Put("{}.f64 {}, {}, {}", op, result, a, b);
  if (!propagates) return result;
  const std::string nan = writer.Predicate();
  writer.Put("setp.nan.f64 {}, {}, {}", nan, a, b);
  writer.Put("selp.f64 {0}, 0d7FF8000000000000, {0}, {1}", result, nan);
  return result;
}

std::string Unary(ValueWriter& writer, const std::string& op, const std::string& a) {
  for (const CalledFunction& function : kFunctions) {
    if (op == function.opcode) return Called(writer, function, a);
  }
  std::string result = writer.Double();
  if (op == "rsqrt") {
    writer.Put("sqrt.rn.f64 {}, {}", result, a);
    writer.Put("rcp.rn.f64 {0}, {0}", result);
  } else {
    const bool exact = op == "neg" || op == "abs";
    writer.Put("{}{}.f64 {}, {}", op, exact ? "" : ".rn", result, a);
  }
  return result;
}

std::string Arithmetic(ValueWriter& writer, const std::string& op,
                       const std::vector<std::string>& sources) {
  if (sources.size() == 1) return Unary(writer, op, sources[0]);
  if (op == "min" || op == "max") {
    std::string result = sources[0];
    for (size_t i = 1; i < sources.size(); ++i)
      result = Extreme(writer, op, result, sources[i], writer.instruction().Has("NaN"));
    return result;
  }
  std::string result = writer.Double();
  if (op == "copysign")
    writer.Put("copysign.f64 {}, {}, {}", result, sources[0], sources[1]);
  else if (sources.size() == 3)
    writer.Put("fma.rn.f64 {}, {}, {}, {}", result, sources[0], sources[1], sources[2]);
  else
    writer.Put("{}.rn.f64 {}, {}, {}", op, result, sources[0], sources[1]);
  return result;
}

std::string Limited(ValueWriter& writer, std::string value) {
  if (writer.instruction().Has("sat")) {
    const std::string clamped = writer.Double();
    writer.Put("max.f64 {}, {}, 0d0000000000000000", clamped, value);
    writer.Put("min.f64 {0}, {0}, 0d3FF0000000000000", clamped);
    return clamped;
  }
  if (!writer.instruction().Has("relu")) return value;
  return Extreme(writer, "max", value, "0d0000000000000000", true);
}

std::string Converted(ValueWriter& writer, const FloatForm& form, const TextOperand& source) {
  if (IsNarrowFloat(form.from) || form.from == Type::kF64) return writer.Fetch(source, form.from);
  std::string value = writer.Double();
  const int width = source.kind == OperandKind::kRegister ? ptx::BitsOf(writer.TypeOf(source.reg))
                                                          : ptx::BitsOf(form.from);
  writer.Put("cvt.rn.f64.{} {}, {}", writer.instruction().modifiers.back(), value,
             writer.InRegister(writer.Raw(source, width).bits, width));
  return value;
}

/// Constants that float code adds to round to a whole number on purpose: about 2^23 and
/// 1.5 * 2^23, where neighbours are 1 apart. The difference is an offset of the whole number.
bool RoundsOnPurpose(const TextOperand& constant) {
  if (!constant.text.contains("0f") && !constant.text.contains("0F")) return false;
  const size_t digits = constant.text.find_first_of("fF") + 1;
  const auto bits = std::strtoul(constant.text.c_str() + digits, nullptr, 16) & 0x7fffffff;
  constexpr unsigned long kOffset = 0x200;
  const auto near = [&](unsigned long centre) {
    return bits + kOffset >= centre && bits <= centre + kOffset;
  };
  return (near(0x4b000000) && bits >= 0x4b000000) || near(0x4b400000);
}

bool AddsRounding(const ValueWriter& writer, const FloatForm& form, const Constants& constants) {
  const bool sum = form.op == "add" || form.op == "sub";
  if (form.to != Type::kF32 || !(sum || form.op == "fma" || form.op == "mad")) return false;
  for (size_t i = sum ? 1 : 3; i < writer.instruction().operands.size(); ++i) {
    const TextOperand& operand = writer.operand(i);
    const auto known = constants.find(operand.reg);
    if (operand.kind == OperandKind::kConstant && RoundsOnPurpose(operand)) return true;
    if (operand.kind == OperandKind::kRegister && known != constants.end() &&
        RoundsOnPurpose(known->second))
      return true;
  }
  return false;
}

}  // namespace

Constants ConstantsOf(const TextFunction& function) {
  Constants constants;
  std::map<int, int> definitions;
  for (const TextInstruction& instruction : function.body) {
    for (const int reg : Results(instruction)) ++definitions[reg];
    if (instruction.opcode == "mov" && instruction.operands.size() == 2 &&
        instruction.operands[1].kind == OperandKind::kConstant)
      constants[instruction.operands[0].reg] = instruction.operands[1];
  }
  std::erase_if(constants, [&](const auto& entry) { return definitions[entry.first] != 1; });
  return constants;
}

void WriteFloat(ValueWriter& writer, const FloatForm& form, const Constants& constants) {
  const int result = writer.operand(0).reg;
  if (result < 0 || !writer.flow().HasShadow(result)) return;
  if (form.whole_numbers || AddsRounding(writer, form, constants)) return WriteOriginal(writer);
  const size_t sources = writer.instruction().operands.size() - 1;
  std::vector<std::string> values;
  for (int element = 0; element < form.elements; ++element) {
    const int lane = element * (form.to == Type::kF32 ? 2 : 1);
    if (form.op == "cvt") {
      const size_t source = form.elements == 1 ? 1 : sources - static_cast<size_t>(element);
      values.push_back(Limited(writer, Converted(writer, form, writer.operand(source))));
      continue;
    }
    std::vector<std::string> operands;
    for (size_t i = 1; i <= sources; ++i)
      operands.push_back(writer.Fetch(writer.operand(i), form.from, lane));
    values.push_back(Limited(writer, Arithmetic(writer, form.op, operands)));
  }
  writer.SetFloats(result, form.to, values);
}

void WriteOriginal(ValueWriter& writer) {
  writer.Behind();
  for (const int reg : Results(writer.instruction())) writer.SetOriginal(reg);
}

}  // namespace atunner::shadow
