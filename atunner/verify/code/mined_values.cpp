#include "atunner/verify/code/mined_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "atunner/ptx/module.h"
#include "atunner/verify/code/element_bits.h"

namespace atunner {
namespace {

constexpr size_t kMostValues = 64;      // of either kind
constexpr size_t kMostDirect = 40;      // of them as they stand in the code
constexpr size_t kMostPerTable = 32;    // evenly over the table
constexpr size_t kMostThresholds = 16;  // that are combined with other constants
constexpr size_t kMostSteps = 8;        // multipliers, addends, shifts
constexpr size_t kMostJoined = 96;      // of either kind, of several candidates
constexpr int kMostSpoilt = 3;
constexpr double kModerate = 1e6;  // and its reciprocal

/// Numbers in the order in which they were found, each once.
template <class T>
class Found {
 public:
  void Add(T value, size_t most = kMostValues) {
    if (order_.size() < most && known_.insert(value).second) order_.push_back(value);
  }
  const std::vector<T>& order() const { return order_; }
  std::vector<T> FirstOf(size_t count) const {
    return {order_.begin(), order_.begin() + static_cast<int64_t>(std::min(count, order_.size()))};
  }

 private:
  std::vector<T> order_;
  std::set<T> known_;
};

/// One kind of number: what is compared, and what stands between the input and the comparison.
template <class T>
struct Numbers {
  Found<T> compared, others, factors, addends;
};

bool IsPlausible(double value) {
  return std::isfinite(value) &&
         (value == 0 || (std::fabs(value) > 1e-20 && std::fabs(value) < 1e20));
}

bool IsFloatType(ptx::Type type) {
  using enum ptx::Type;
  return type == kF16 || type == kF16x2 || type == kBF16 || type == kBF16x2 || type == kF32 ||
         type == kF64;
}
bool IsSignedType(ptx::Type type) {
  using enum ptx::Type;
  return type == kS8 || type == kS16 || type == kS32 || type == kS64;
}

int64_t SignExtended(uint64_t bits, int count) {
  if (count <= 0 || count >= 64) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << (64 - count)) >> (64 - count);
}

enum class Use { kNone, kCompared, kFactor, kAddend, kOther };

Use UseOf(const ptx::Instruction& instruction) {
  static const std::map<std::string, Use, std::less<>> uses = {
      {"setp", Use::kCompared}, {"set", Use::kCompared},  {"min", Use::kCompared},
      {"max", Use::kCompared},  {"selp", Use::kCompared}, {"slct", Use::kCompared},
      {"mul", Use::kFactor},    {"div", Use::kFactor},    {"shl", Use::kFactor},
      {"add", Use::kAddend},    {"sub", Use::kAddend},    {"fma", Use::kFactor},
      {"mad", Use::kFactor},    {"and", Use::kOther},     {"or", Use::kOther},
      {"xor", Use::kOther},     {"rem", Use::kOther},     {"shr", Use::kOther},
      {"lop3", Use::kOther},    {"bfe", Use::kOther},     {"testp", Use::kOther}};
  const auto found = uses.find(instruction.opcode);
  // Products of twice the length are offsets of elements.
  if (found == uses.end() || instruction.Has("wide")) return Use::kNone;
  return found->second;
}

ptx::Type TypeOf(const ptx::Instruction& instruction) {
  for (const std::string& modifier : instruction.modifiers) {
    const ptx::Type type = ptx::ParseType(modifier);
    if (type != ptx::Type::kNone && type != ptx::Type::kPred) return type;
  }
  return ptx::Type::kNone;
}

class Miner {
 public:
  void AddModule(const ptx::ValidModule& module) {
    for (const ptx::Function& function : module.functions()) AddFunction(function);
    for (const ptx::Variable& table : module.constants()) AddTable(table);
    for (const ptx::Variable& table : module.globals()) AddTable(table);
  }

  MinedValues Values() {
    MinedValues values{FloatValues(), IntegerValues()};
    std::ranges::sort(values.floats);
    std::ranges::sort(values.integers);
    return values;
  }

 private:
  using Constants = std::map<int, ptx::Operand>;

  void AddFunction(const ptx::Function& function) {
    const Constants constants = ConstantsOf(function);
    for (const ptx::Instruction& instruction : function.body) {
      NoteConversion(instruction);
      const Use use = UseOf(instruction);
      if (use == Use::kNone) continue;
      for (size_t i = 1; i < instruction.operands.size(); ++i)
        AddOperand(instruction, instruction.operands[i], constants, use);
    }
  }

  /// Registers that hold a constant, because one instruction alone writes them: mov of an
  /// immediate, or mov or cvt of such a register.
  static Constants ConstantsOf(const ptx::Function& function) {
    std::map<int, int> writes;
    for (const ptx::Instruction& instruction : function.body) {
      if (!instruction.operands.empty()) ++writes[instruction.operands[0].reg];
    }
    Constants constants;
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.opcode != "mov" && instruction.opcode != "cvt") continue;
      if (instruction.operands.size() != 2) continue;
      const int to = instruction.operands[0].reg;
      const ptx::Operand& from = instruction.operands[1];
      if (to < 0 || writes[to] != 1 || instruction.guard >= 0) continue;
      if (from.kind == ptx::Operand::Kind::kImmediate) constants[to] = from;
      const auto known = constants.find(from.reg);
      // A conversion between a float's widths keeps a constant of the source's type, so that only
      // those are followed whose bits do not change.
      if (from.kind == ptx::Operand::Kind::kRegister && known != constants.end() &&
          instruction.opcode == "mov")
        constants[to] = known->second;
      if (from.kind == ptx::Operand::Kind::kRegister && known != constants.end() &&
          instruction.opcode == "cvt")
        AddConverted(constants, to, known->second, instruction);
    }
    return constants;
  }

  /// cvt of a constant, as an immediate of the result's type.
  static void AddConverted(Constants& constants, int to, const ptx::Operand& from,
                           const ptx::Instruction& instruction) {
    std::vector<ptx::Type> types;
    for (const std::string& modifier : instruction.modifiers) {
      if (const auto type = ptx::ParseType(modifier); type != ptx::Type::kNone)
        types.push_back(type);
    }
    if (types.size() != 2) return;
    double value = 0;
    if (IsFloatType(types[1])) {
      value = FloatOf(from, types[1]).value_or(0);
    } else {
      value = static_cast<double>(IntegerOf(from, types[1]));
    }
    ptx::Operand result;
    result.kind = ptx::Operand::Kind::kImmediate;
    result.is_float = IsFloatType(types[0]);
    result.bits = result.is_float ? std::bit_cast<uint64_t>(value)
                                  : static_cast<uint64_t>(
                                        static_cast<int64_t>(std::clamp(value, -0x1p62, 0x1p62)));
    constants[to] = result;
  }

  /// Whether the code makes integers of floats, or floats of integers.
  void NoteConversion(const ptx::Instruction& instruction) {
    if (instruction.opcode == "cvt" && instruction.modifiers.size() >= 2) {
      const ptx::Type from = ptx::ParseType(instruction.modifiers.back());
      const ptx::Type to = ptx::ParseType(instruction.modifiers[instruction.modifiers.size() - 2]);
      floats_become_integers_ |= IsFloatType(from) && !IsFloatType(to);
      integers_become_floats_ |= !IsFloatType(from) && IsFloatType(to);
    }
  }

  static std::optional<double> FloatOf(const ptx::Operand& operand, ptx::Type type) {
    if (operand.is_float && operand.is_single)
      return std::bit_cast<float>(static_cast<uint32_t>(operand.bits));
    if (operand.is_float) return std::bit_cast<double>(operand.bits);
    switch (type) {
      case ptx::Type::kF16:
      case ptx::Type::kF16x2:
        return HalfToFloat(static_cast<uint16_t>(operand.bits));
      case ptx::Type::kBF16:
      case ptx::Type::kBF16x2:
        return BFloat16ToFloat(static_cast<uint16_t>(operand.bits));
      case ptx::Type::kF32:
        return std::bit_cast<float>(static_cast<uint32_t>(operand.bits));
      case ptx::Type::kF64:
        return std::bit_cast<double>(operand.bits);
      default:
        return std::nullopt;
    }
  }

  static int64_t IntegerOf(const ptx::Operand& operand, ptx::Type type) {
    const int bits = ptx::BitsOf(type);
    // Masks and thresholds of untyped bits may mean either sign; the shorter reading is taken.
    if (IsSignedType(type) || bits == 64 || bits == 0) return SignExtended(operand.bits, bits);
    return static_cast<int64_t>(operand.bits & ((uint64_t{1} << bits) - 1));
  }

  void AddOperand(const ptx::Instruction& instruction, const ptx::Operand& operand,
                  const Constants& constants, Use use) {
    const ptx::Operand* constant = &operand;
    if (operand.kind == ptx::Operand::Kind::kRegister) {
      const auto known = constants.find(operand.reg);
      if (known == constants.end()) return;
      constant = &known->second;
    } else if (operand.kind != ptx::Operand::Kind::kImmediate) {
      return;
    }
    const ptx::Type type = TypeOf(instruction);
    if (IsFloatType(type)) {
      if (const auto value = FloatOf(*constant, type)) AddFloat(*value, use);
    } else {
      AddInteger(IntegerOf(*constant, type), instruction.opcode, use);
    }
  }

  void AddFloat(double value, Use use) {
    if (!std::isfinite(value)) return;
    if (use == Use::kCompared) floats_.compared.Add(value);
    if (use == Use::kFactor && value != 0) floats_.factors.Add(value);
    if (use == Use::kAddend || use == Use::kFactor) floats_.addends.Add(value);
    if (use != Use::kCompared) floats_.others.Add(value);
  }

  void AddInteger(int64_t value, const std::string& opcode, Use use) {
    if (opcode == "shl") value = int64_t{1} << (value & 63);
    if (use == Use::kCompared) integers_.compared.Add(value);
    if (use == Use::kFactor && value != 0) integers_.factors.Add(value);
    if (use == Use::kAddend) integers_.addends.Add(value);
    if (use != Use::kCompared) integers_.others.Add(value);
  }

  void AddTable(const ptx::Variable& table) {
    if (table.initial.empty() || !table.opaque.empty() || !table.references.empty()) return;
    const bool untyped = table.type == ptx::Type::kB8 && table.align >= 4;
    if (IsFloatType(table.type) || (untyped && LooksLikeFloats(table))) {
      AddFloatTable(table);
      return;
    }
    const int bits = untyped ? 32 : ptx::BitsOf(table.type);
    if (bits < 8 || bits > 64) return;
    const size_t bytes = static_cast<size_t>(bits) / 8;
    EachEntry(table, bytes, [&](uint64_t word) {
      integers_.others.Add(IsSignedType(table.type) || untyped ? SignExtended(word, bits)
                                                               : static_cast<int64_t>(word));
    });
  }

  void AddFloatTable(const ptx::Variable& table) {
    const ptx::Type type = IsFloatType(table.type) ? table.type : ptx::Type::kF32;
    const size_t bytes = static_cast<size_t>(ptx::BitsOf(type)) / 8;
    EachEntry(table, bytes, [&](uint64_t word) {
      ptx::Operand entry;
      entry.bits = word;
      const auto value = FloatOf(entry, type);
      if (value && std::isfinite(*value)) floats_.others.Add(*value);
    });
  }

  /// Calls `add` with some entries of a table, evenly over it.
  template <class Add>
  static void EachEntry(const ptx::Variable& table, size_t bytes, const Add& add) {
    const size_t entries = table.initial.size() / bytes;
    const size_t step = std::max<size_t>(1, entries / kMostPerTable);
    for (size_t i = 0; i < entries; i += step) {
      uint64_t word = 0;
      std::memcpy(&word, table.initial.data() + i * bytes, bytes);
      add(word);
    }
  }

  static bool LooksLikeFloats(const ptx::Variable& table) {
    bool floats = table.initial.size() >= 4;
    bool any = false;
    EachEntry(table, 4, [&](uint64_t word) {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(word));
      floats &= IsPlausible(value);
      any |= value != 0;
    });
    return floats && any;
  }

  std::vector<double> FloatValues() const {
    Found<double> all;
    for (double value : floats_.compared.order()) all.Add(value, kMostDirect);
    for (double value : floats_.others.order()) all.Add(value, kMostDirect);
    for (int64_t value : integers_.compared.order()) {
      if (floats_become_integers_) all.Add(static_cast<double>(value), kMostDirect + 8);
      const auto bits = std::bit_cast<float>(static_cast<uint32_t>(value));
      // A comparison of a float's bits. PTX's registers do not tell, but thresholds of integers are
      // seldom so large.
      if (IsPlausible(bits) && bits != 0) all.Add(bits, kMostDirect + 8);
    }
    for (double threshold : floats_.compared.FirstOf(kMostThresholds)) {
      for (double factor : floats_.factors.FirstOf(kMostSteps)) all.Add(threshold / factor);
      for (double addend : floats_.addends.FirstOf(kMostSteps)) {
        all.Add(threshold - addend);
        all.Add(threshold + addend);
      }
      if (threshold > 0) all.Add(std::sqrt(threshold));
    }
    std::vector<double> finite = all.order();
    std::erase_if(finite, [](double value) { return !std::isfinite(value); });
    return finite;
  }

  std::vector<int64_t> IntegerValues() const {
    Found<int64_t> all;
    for (int64_t value : integers_.compared.order()) all.Add(value, kMostDirect);
    for (int64_t value : integers_.others.order()) all.Add(value, kMostDirect);
    if (integers_become_floats_) {
      for (double value : floats_.compared.order()) {
        if (std::fabs(value) < 0x1p62)
          all.Add(static_cast<int64_t>(std::floor(value)), kMostDirect + 8);
      }
    }
    for (int64_t threshold : integers_.compared.FirstOf(kMostThresholds)) {
      for (int64_t factor : integers_.factors.FirstOf(kMostSteps)) {
        if (factor != -1) all.Add(threshold / factor);
      }
      for (int64_t addend : integers_.addends.FirstOf(kMostSteps)) {
        all.Add(
            static_cast<int64_t>(static_cast<uint64_t>(threshold) - static_cast<uint64_t>(addend)));
        all.Add(
            static_cast<int64_t>(static_cast<uint64_t>(threshold) + static_cast<uint64_t>(addend)));
      }
    }
    return all.order();
  }

  Numbers<double> floats_;
  Numbers<int64_t> integers_;
  bool floats_become_integers_ = false;
  bool integers_become_floats_ = false;
};

template <class T>
void AddSorted(T value, std::vector<T>& values) {
  const auto at = std::ranges::lower_bound(values, value);
  if (at == values.end() || *at != value) values.insert(at, value);
}

bool IsModerate(double value) {
  return value == 0 || (std::fabs(value) <= kModerate && std::fabs(value) >= 1 / kModerate);
}

/// True if the integer is a number of the type.
bool Fits(int64_t value, DType dtype) {
  const int bits = BitCount(dtype);
  switch (KindOf(dtype)) {
    case DTypeKind::kSigned:
      return bits == 64 ||
             (value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1));
    case DTypeKind::kUnsigned:
      return value >= 0 && (bits == 64 || value < int64_t{1} << bits);
    default:
      return false;
  }
}

}  // namespace

MinedValues MineValues(const std::string& ptx) {
  const auto module = ptx::Parse(ptx);
  if (!module) return {};
  Miner miner;
  miner.AddModule(*module);
  return miner.Values();
}

void MineScalars(const LaunchPlan& plan, const KernelSpec& spec, const Dims& dims,
                 MinedValues& values) {
  const auto concrete = Resolve(plan, dims, spec.attributes);
  if (!concrete) return;
  for (size_t step = 0; step < concrete->steps.size(); ++step) {
    for (size_t i = 0; i < concrete->steps[step].args.size(); ++i) {
      const ConcreteArg& arg = concrete->steps[step].args[i];
      if (arg.kind != ArgBinding::Kind::kScalar) continue;
      const DType dtype = plan.steps[step].args[i].dtype;
      const double value = LoadElement(dtype, arg.scalar.bytes.data(), 0);
      if (IsFloat(dtype) && std::isfinite(value)) AddSorted(value, values.floats);
      if (!IsFloat(dtype) && std::fabs(value) < 0x1p53)
        AddSorted(static_cast<int64_t>(value), values.integers);
    }
  }
}

MinedValues Without(const MinedValues& values, const MinedValues& known) {
  MinedValues rest;
  std::ranges::set_difference(values.floats, known.floats, std::back_inserter(rest.floats));
  std::ranges::set_difference(values.integers, known.integers, std::back_inserter(rest.integers));
  return rest;
}

MinedValues UsableOf(const MinedValues& values, const KernelSpec& spec) {
  bool floats = false;
  bool integers = false;
  for (const ArgSpec& arg : spec.args) {
    const bool is_input = arg.role == Role::kInput || arg.role == Role::kInOut;
    floats |= is_input && IsFloat(arg.dtype);
    integers |= is_input && !IsFloat(arg.dtype);
  }
  return {floats ? values.floats : std::vector<double>(),
          integers ? values.integers : std::vector<int64_t>()};
}

MinedValues MinedPool::Extended(const MinedValues& values) {
  if (spoilt_ >= kMostSpoilt) return values;
  MinedValues all;
  std::ranges::set_union(joined_.floats, values.floats, std::back_inserter(all.floats));
  std::ranges::set_union(joined_.integers, values.integers, std::back_inserter(all.integers));
  const bool fits = all.floats.size() <= kMostJoined && all.integers.size() <= kMostJoined;
  joined_ = fits ? std::move(all) : values;
  return joined_;
}

void MinedPool::Spoilt() {
  joined_ = {};
  ++spoilt_;
}

MinedValues ModerateOf(const MinedValues& values) {
  MinedValues some = values;
  std::erase_if(some.floats, [](double value) { return !IsModerate(value); });
  return some;
}

MinedValues ExtremeOf(const MinedValues& values) {
  MinedValues some = values;
  some.integers.clear();
  std::erase_if(some.floats, IsModerate);
  return some;
}

std::vector<uint64_t> MinedBits(const MinedValues& values, DType dtype, double low, double last) {
  std::set<uint64_t> bits;
  const auto add = [&](uint64_t one) {
    const double value = ElementOf(dtype, one);
    if (std::isfinite(value) && value >= low && value <= last) bits.insert(one);
  };
  const auto add_near = [&](uint64_t one) {
    add(one);
    for (bool larger : {false, true}) {
      if (const auto next = Neighbour(dtype, one, larger)) add(*next);
    }
  };
  if (IsFloat(dtype)) {
    for (double value : values.floats) {
      const uint64_t one = ElementBits(dtype, value);
      const double rounded = ElementOf(dtype, one);
      if (std::isfinite(rounded) && (value == 0 || rounded != 0)) add_near(one);
    }
  } else {
    const uint64_t mask = BitCount(dtype) == 64 ? ~uint64_t{0}
                                                : (uint64_t{1} << BitCount(dtype)) - 1;
    for (int64_t value : values.integers) {
      if (Fits(value, dtype)) add_near(static_cast<uint64_t>(value) & mask);
    }
  }
  return {bits.begin(), bits.end()};
}

}  // namespace atunner
