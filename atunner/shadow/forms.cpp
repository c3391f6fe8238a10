#include "atunner/shadow/forms.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

namespace atunner::shadow {
namespace {

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::string_view kArithmetic[] = {"add", "sub", "mul", "fma",  "mad",     "neg",   "abs",
                                            "min", "max", "div", "rcp",  "sqrt",    "rsqrt", "ex2",
                                            "lg2", "sin", "cos", "tanh", "copysign"};
/// Executed a second time on the shadow's bits. None has effects beside its result.
constexpr std::string_view kPure[] = {"add",   "sub",   "mul",   "mad", "fma",  "neg",  "abs",
                                      "min",   "max",   "div",   "rem", "rcp",  "sqrt", "rsqrt",
                                      "and",   "or",    "xor",   "not", "shl",  "shr",  "shf",
                                      "lop3",  "prmt",  "bfe",   "bfi", "popc", "clz",  "brev",
                                      "bfind", "mul24", "mad24", "cvt", "sad",  "cnot", "copysign"};
constexpr std::string_view kWithoutResult[] = {
    "st",         "red",       "bar",           "barrier", "bra",   "brx",
    "call",       "ret",       "exit",          "membar",  "fence", "cp",
    "prefetch",   "prefetchu", "stmatrix",      "trap",    "brkpt", "nanosleep",
    "pmevent",    "discard",   "applypriority", "sust",    "sured", "griddepcontrol",
    "setmaxnreg", "tensormap", "stackrestore",  "multimem"};
/// They read float values and decide; their results are not floats.
constexpr std::string_view kDecisions[] = {"setp", "set", "testp", "vote", "match"};

bool IsInteger(Type type) {
  return (type >= Type::kB8 && type <= Type::kS64) || type == Type::kU16x2 || type == Type::kS16x2;
}

/// Types among the modifiers, in order.
std::vector<Type> TypesOf(const TextInstruction& instruction) {
  std::vector<Type> types;
  for (const std::string& modifier : instruction.modifiers) {
    if (const Type type = ptx::ParseType(modifier); type != Type::kNone) types.push_back(type);
  }
  return types;
}

bool RoundsToWhole(const TextInstruction& instruction) {
  return instruction.Has("rni") || instruction.Has("rzi") || instruction.Has("rmi") ||
         instruction.Has("rpi");
}

std::optional<FloatForm> ConversionOf(const TextInstruction& instruction) {
  const std::vector<Type> types = TypesOf(instruction);
  if (types.size() != 2) return std::nullopt;
  FloatForm form{.op = "cvt", .to = ElementOf(types[0]), .from = types[1]};
  const bool narrow = IsNarrowFloat(form.to), wide = form.to == Type::kF64;
  const bool from_float = IsNarrowFloat(form.from) || form.from == Type::kF64;
  if (!narrow && !(wide && IsNarrowFloat(form.from))) return std::nullopt;
  if (!from_float && !IsInteger(form.from)) return std::nullopt;
  form.elements = types[0] == form.to ? 1 : 2;
  form.whole_numbers = RoundsToWhole(instruction);
  return form;
}

bool IsPure(const TextInstruction& instruction) {
  const auto carries = [](const std::string& m) { return m == "cc"; };
  return IsOneOf(instruction.opcode, kPure) &&
         std::ranges::none_of(instruction.modifiers, carries) && !RoundsToWhole(instruction);
}

Kind CopyKind(const TextInstruction& instruction) {
  const bool grouped = instruction.Has("bulk") || instruction.Has("mbarrier") ||
                       instruction.Has("wait_group") || instruction.Has("commit_group") ||
                       instruction.Has("wait_all");
  if (instruction.Has("bulk") && (instruction.Has("global") || instruction.Has("shared::cta") ||
                                  instruction.Has("shared::cluster")))
    return Kind::kRefused;
  return grouped ? Kind::kNone : Kind::kAsyncCopy;
}

Kind MatrixKind(const TextInstruction& instruction) {
  if (instruction.opcode == "ldmatrix")
    return instruction.Has("b16") ? Kind::kLdMatrix : Kind::kLossy;
  const auto is_integer = [](const std::string& m) {
    return m == "s8" || m == "u8" || m == "s4" || m == "u4" || m == "b1" || m == "f64";
  };
  if (instruction.opcode == "mma" && MmaFormOf(instruction)) return Kind::kMma;
  if (instruction.opcode == "wmma" && FragmentFormOf(instruction))
    return instruction.Has("load")    ? Kind::kFragmentLoad
           : instruction.Has("store") ? Kind::kFragmentStore
                                      : Kind::kFragmentProduct;
  if (std::ranges::any_of(instruction.modifiers, is_integer)) return Kind::kNone;
  return Kind::kRefused;
}

bool HasFloatType(const TextInstruction& instruction) {
  return std::ranges::any_of(TypesOf(instruction),
                             [](Type type) { return IsNarrowFloat(ElementOf(type)); }) ||
         instruction.Has("f32x2");
}

/// Opcodes whose kind follows from their name alone.
std::optional<Kind> KindByName(const TextInstruction& instruction) {
  const std::string& op = instruction.opcode;
  if (op == "mov") return Kind::kMove;
  if (op == "selp") return Kind::kSelect;
  if (op == "shfl") return Kind::kShuffle;
  if (op == "ld" || op == "ldu") return Kind::kLoad;
  if (op == "st" && (instruction.Has("async") || instruction.Has("bulk"))) return Kind::kRefused;
  if (op == "st") return Kind::kStore;
  if (op == "red" && (instruction.Has("async") || instruction.Has("bulk"))) return Kind::kRefused;
  if (op == "atom" || op == "red") return Kind::kAtomic;
  if (op == "cp") return CopyKind(instruction);
  if (op == "wgmma") return Kind::kRefused;
  if (op == "mma" || op == "wmma" || op == "ldmatrix") return MatrixKind(instruction);
  if (op == "stmatrix" || op == "movmatrix" || op == "mapa" || op == "multimem")
    return Kind::kRefused;
  return std::nullopt;
}

std::vector<LaneMove> LanesOfPermutation(const TextInstruction& instruction) {
  const auto selector = IntegerOf(instruction.operands[3]);
  if (!selector || instruction.modifiers.size() != 1) return {};
  std::vector<LaneMove> moves;
  for (int lane = 0; lane < 2; ++lane) {
    const auto pair = static_cast<int>(*selector >> (8 * lane) & 0xff);
    const int low = pair & 0xf, high = pair >> 4;
    if (low % 2 == 0 && high == low + 1 && high < 8)
      moves.push_back({.to = lane, .operand = low < 4 ? 1 : 2, .from = low % 4 / 2});
  }
  return moves;
}

std::vector<LaneMove> LanesOfMask(uint64_t mask) {
  switch (static_cast<uint32_t>(mask)) {
    case 0xffff0000:
      return {{.to = 1, .from = 1}};
    case 0xffff:
      return {{.to = 0, .from = 0}};
    case 0x7fffffff:
      return {{.to = 0, .from = 0, .absolute = true}, {.to = 1, .from = 1, .absolute = true}};
    case 0x7fff7fff:
      return {{.to = 0, .from = 0, .absolute = true}, {.to = 1, .from = 1, .absolute = true}};
    default:
      return {};
  }
}

std::vector<LaneMove> LanesOfFlip(uint64_t mask, Type type) {
  if (ptx::BitsOf(type) == 16)
    return (mask & 0xffff) == 0x8000 ? std::vector<LaneMove>{{.negate = true}}
                                     : std::vector<LaneMove>{};
  const auto word = static_cast<uint32_t>(mask);
  // Whether these are two halves or one float, a twin that does not fit the bits does not count.
  if (word == 0x80008000)
    return {{.to = 0, .from = 0, .negate = true}, {.to = 1, .from = 1, .negate = true}};
  if (word == 0x80000000) return {{.to = 0, .from = 0, .negate = true}};
  return {};
}

std::vector<LaneMove> LanesOfLogic(const TextInstruction& instruction) {
  const Type type = LastType(instruction);
  const auto mask = IntegerOf(instruction.operands[2]);
  if (instruction.opcode == "xor") return mask ? LanesOfFlip(*mask, type) : std::vector<LaneMove>{};
  if (ptx::BitsOf(type) != 32) return {};
  if (instruction.opcode == "and") return mask ? LanesOfMask(*mask) : std::vector<LaneMove>{};
  return {{.to = 0, .operand = 1, .from = 0, .other = 2},
          {.to = 1, .operand = 1, .from = 1, .other = 2}};
}

std::vector<LaneMove> LanesOfShift(const TextInstruction& instruction) {
  const auto count = IntegerOf(instruction.operands[2]);
  if (!count || ptx::BitsOf(LastType(instruction)) != 32 || *count != 16) return {};
  return instruction.opcode == "shl" ? std::vector<LaneMove>{{.to = 1, .from = 0}}
                                     : std::vector<LaneMove>{{.to = 0, .from = 1}};
}

std::vector<LaneMove> LanesOfConversion(const TextInstruction& instruction) {
  const std::vector<Type> types = TypesOf(instruction);
  if (types.size() != 2) return {};
  const int lanes = std::min(ptx::BitsOf(types[0]), ptx::BitsOf(types[1])) / 16;
  std::vector<LaneMove> moves;
  for (int lane = 0; lane < lanes; ++lane) moves.push_back({.to = lane, .from = lane});
  return moves;
}

}  // namespace

Type LastType(const TextInstruction& instruction) {
  const std::vector<Type> types = TypesOf(instruction);
  return types.empty() ? Type::kNone : types.back();
}

Type ElementOf(Type type) {
  return type == Type::kF16x2 ? Type::kF16 : type == Type::kBF16x2 ? Type::kBF16 : type;
}

bool IsNarrowFloat(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kTF32;
}

int VectorSize(const TextInstruction& instruction) {
  for (const auto& [name, size] : {std::pair{"v2", 2}, {"v4", 4}, {"v8", 8}}) {
    if (instruction.Has(name)) return size;
  }
  return 1;
}

std::vector<int> Results(const TextInstruction& instruction) {
  std::vector<int> registers;
  if (instruction.operands.empty() || IsOneOf(instruction.opcode, kWithoutResult)) return registers;
  const TextOperand& first = instruction.operands[0];
  if (first.kind == TextOperand::Kind::kRegister) registers.push_back(first.reg);
  if (first.kind == TextOperand::Kind::kVector) {
    for (const TextOperand& element : first.elements) registers.push_back(element.reg);
  }
  return registers;
}

std::optional<uint64_t> IntegerOf(const TextOperand& operand) {
  if (operand.kind != TextOperand::Kind::kConstant) return std::nullopt;
  std::string text = operand.text;
  const bool negative = text.starts_with('-');
  if (negative) text.erase(0, text.find_first_not_of("- \t"));
  if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") ||
      text.starts_with("0D") || text.find('.') != std::string::npos)
    return std::nullopt;
  const uint64_t value = std::strtoull(text.c_str(), nullptr, 0);
  return negative ? ~value + 1 : value;
}

Kind KindOf(const TextInstruction& instruction) {
  if (const auto kind = KindByName(instruction)) return *kind;
  if (FloatFormOf(instruction)) return Kind::kFloat;
  if (IsOneOf(instruction.opcode, kDecisions)) return Kind::kNone;
  if (HasFloatType(instruction))
    return instruction.opcode == "cvt" || instruction.opcode == "tex" ? Kind::kNone : Kind::kLossy;
  return IsPure(instruction) ? Kind::kDuplicate : Kind::kNone;
}

std::optional<FloatForm> FloatFormOf(const TextInstruction& instruction) {
  if (instruction.opcode == "cvt") return ConversionOf(instruction);
  if (!IsOneOf(instruction.opcode, kArithmetic) || instruction.Has("xorsign")) return std::nullopt;
  FloatForm form{.op = instruction.opcode, .spread = true};
  if (instruction.modifiers.empty()) return std::nullopt;
  if (instruction.modifiers.back() == "f32x2") {
    form.elements = 2;
    return form;
  }
  const std::vector<Type> types = TypesOf(instruction);
  if (types.size() != 1 || !IsNarrowFloat(ElementOf(types[0]))) return std::nullopt;
  form.to = form.from = ElementOf(types[0]);
  form.elements = form.to == types[0] ? 1 : 2;
  return form;
}

bool HasItsOperands(const TextInstruction& instruction) {
  const Kind kind = KindOf(instruction);
  size_t least = kind == Kind::kMove || kind == Kind::kDuplicate || kind == Kind::kShuffle ? 2 : 0;
  if (const auto form = FloatFormOf(instruction); form && kind == Kind::kFloat) {
    constexpr std::string_view kBinary[] = {"add", "sub", "mul", "min", "max", "div", "copysign"};
    const bool ternary = form->op == "fma" || form->op == "mad";
    least = form->op == "cvt"            ? 1 + static_cast<size_t>(form->elements)
            : ternary                    ? 4
            : IsOneOf(form->op, kBinary) ? 3
                                         : 2;
  }
  const auto is_empty = [](const TextOperand& operand) {
    return operand.kind == TextOperand::Kind::kVector && operand.elements.empty();
  };
  return instruction.operands.size() >= least &&
         (kind == Kind::kNone || std::ranges::none_of(instruction.operands, is_empty));
}

std::vector<LaneMove> LaneMoves(const TextInstruction& instruction) {
  const std::string& op = instruction.opcode;
  const size_t operands = instruction.operands.size();
  if (op == "prmt" && operands == 4) return LanesOfPermutation(instruction);
  if ((op == "shl" || op == "shr") && operands == 3) return LanesOfShift(instruction);
  if ((op == "and" || op == "or" || op == "xor") && operands == 3) return LanesOfLogic(instruction);
  if (op == "cvt" && operands == 2) return LanesOfConversion(instruction);
  if (op == "bfi" && operands == 5 && IntegerOf(instruction.operands[3]) == 16 &&
      IntegerOf(instruction.operands[4]) == 16)
    return {{.to = 1, .operand = 1, .from = 0}, {.to = 0, .operand = 2, .from = 0}};
  return {};
}

std::optional<MmaForm> MmaFormOf(const TextInstruction& instruction) {
  const std::vector<Type> types = TypesOf(instruction);
  if (types.size() != 4 || types[1] != types[2] || instruction.operands.size() != 4 ||
      !instruction.Has("row") || !instruction.Has("col"))
    return std::nullopt;
  MmaForm form{.result = types[0], .factor = types[1], .addend = types[3]};
  const bool half = form.factor == Type::kF16 || form.factor == Type::kBF16;
  if (!half && form.factor != Type::kTF32) return std::nullopt;
  form.k = instruction.Has("m16n8k16")  ? 16
           : instruction.Has("m16n8k8") ? 8
           : instruction.Has("m16n8k4") ? 4
                                        : 0;
  const bool exists = half ? form.k >= 8 : form.k == 4 || form.k == 8;
  return exists ? std::optional(form) : std::nullopt;
}

std::optional<FragmentForm> FragmentFormOf(const TextInstruction& instruction) {
  const std::vector<Type> types = TypesOf(instruction);
  const bool access = instruction.Has("load") || instruction.Has("store");
  const bool tf32 = instruction.Has("m16n16k8");
  if (types.empty() || !(tf32 || instruction.Has("m16n16k16"))) return std::nullopt;
  if (!std::ranges::all_of(types, IsNarrowFloat)) return std::nullopt;
  FragmentForm form{.by_column = instruction.Has("col"), .type = types.back(), .product = {}};
  for (const char* name : {"a", "b", "c", "d"}) {
    if (access && instruction.Has(name)) form.matrix = *name;
  }
  // With factors in float16 the product names the types of result and addend only.
  form.product = {.result = types.front(),
                  .factor = types.size() == 4 ? types[1]
                            : tf32            ? Type::kTF32
                                              : Type::kF16,
                  .addend = types.back(),
                  .k = tf32 ? 8 : 16};
  if (access ? instruction.operands.size() != 3 : instruction.operands.size() != 4)
    return std::nullopt;
  return form;
}

}  // namespace atunner::shadow
