// Video instructions: scalar ones on a byte, half or word of each source, and packed ones on two
// halves or four bytes.
#include <algorithm>

#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

enum class What : uint8_t {
  kAdd,
  kSub,
  kAbsDiff,
  kMin,
  kMax,
  kAverage,
  kCompare,
  kShl,
  kShr,
  kMultiply
};
enum class Second : uint8_t { kNone, kAdd, kMin, kMax };

/// The options of an instruction, packed into Op::imm. Parts of registers: 0 = the word, 1 … 4 = b0
/// … b3, 5 and 6 = h0 and h1.
struct Options {
  What what = What::kAdd;
  Second second = Second::kNone;
  uint8_t comparison = 0;  ///< eq ne lt le gt ge
  uint8_t parts = 1;       ///< 1, 2 or 4
  bool signed_d : 1 = false;
  bool signed_a : 1 = false;
  bool signed_b : 1 = false;
  bool saturate : 1 = false;
  bool wraps : 1 = false;  ///< shift amounts count modulo 32; otherwise 32 is the most
  uint8_t written = 15;    ///< a bit for each part of a packed result
  uint8_t part_a = 0;
  uint8_t part_b = 0;
};
static_assert(sizeof(Options) == sizeof(uint64_t));
/// Op::target of packed operands: three bits for each part, which part of a, then b, it is.
constexpr int kOrderBits = 12;
/// Op::target of vmad: the scale and these.
constexpr uint32_t kPlusOne = 32;
constexpr uint32_t kMinusProduct = 64;
constexpr uint32_t kMinusC = 128;

int64_t Part(uint32_t word, int index, int bits, bool is_signed) {
  const uint64_t raw = (uint64_t{word} >> (index * bits)) & ((uint64_t{1} << bits) - 1);
  return is_signed ? static_cast<int64_t>(raw << (64 - bits)) >> (64 - bits)
                   : static_cast<int64_t>(raw);
}

/// The part of a word that Options::part_a and the like name.
int64_t Selected(uint32_t word, uint8_t part, bool is_signed) {
  if (part == 0) return Part(word, 0, 32, is_signed);
  return part <= 4 ? Part(word, part - 1, 8, is_signed) : Part(word, part - 5, 16, is_signed);
}

int64_t First(const Options& o, int64_t a, int64_t b, int bits) {
  const int64_t amount = o.wraps ? b & 31 : std::min<int64_t>(b, 32);
  int64_t r = 0;
  switch (o.what) {
    case What::kAdd:
      r = a + b;
      break;
    case What::kSub:
      r = a - b;
      break;
    case What::kAbsDiff:
      r = a < b ? b - a : a - b;
      break;
    case What::kMin:
      r = std::min(a, b);
      break;
    case What::kMax:
      r = std::max(a, b);
      break;
    case What::kAverage:  // rounds half up, away from zero for negative sums
      r = a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
      break;
    case What::kShl:
      // Shifted out as a whole, only the sign is left to saturate by.
      r = amount < 32 ? a * (int64_t{1} << amount)
          : a == 0    ? 0
          : a > 0     ? int64_t{1} << 62
                      : -(int64_t{1} << 62);
      break;
    case What::kShr:
      r = a >> amount;
      break;
    case What::kCompare:
      return CompareByCode(o.comparison, a, b) ? 1 : 0;
    case What::kMultiply:
      break;  // MultiplyVideo
  }
  if (!o.saturate) return r;
  const int64_t high = o.signed_d ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  const int64_t low = o.signed_d ? -(int64_t{1} << (bits - 1)) : 0;
  return std::clamp(r, low, high);
}

/// vadd2/4, vsub2/4, vavrg2/4, vabsdiff2/4, vmin2/4, vmax2/4, vset2/4. With .add the parts' results
/// are summed into c; otherwise they replace c's, as far as the mask says.
void PackedVideo(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<Options>(op.imm);
  const int bits = 32 / o.parts;
  Ternary<uint32_t>(x, op, mask, [&](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t packed = 0;
    uint32_t sum = c;
    const auto part = [&](int first, int i, bool is_signed) {
      const int which = static_cast<int>(op.target >> (first + 3 * i) & 7);
      return Part(which < o.parts ? a : b, which % o.parts, bits, is_signed);
    };
    for (int i = 0; i < o.parts; ++i) {
      const bool written = (o.written >> i & 1) != 0;
      const int64_t r = First(o, part(0, i, o.signed_a), part(kOrderBits, i, o.signed_b), bits);
      const auto kept = static_cast<uint64_t>(written ? r : Part(c, i, bits, false));
      packed |= static_cast<uint32_t>(kept & ((uint64_t{1} << bits) - 1)) << (i * bits);
      sum += written ? static_cast<uint32_t>(r) : 0;
    }
    return o.second == Second::kAdd ? sum : packed;
  });
}

/// vadd, vsub, vabsdiff, vmin, vmax, vset, vshl, vshr, with an optional second operation on c.
void ScalarVideo(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<Options>(op.imm);
  Ternary<uint32_t>(x, op, mask, [&](uint32_t a, uint32_t b, uint32_t c) {
    const int64_t r = First(o, Selected(a, o.part_a, o.signed_a), Selected(b, o.part_b, o.signed_b),
                            32);
    const auto low = static_cast<uint32_t>(r);
    switch (o.second) {
      case Second::kAdd:
        return low + c;
      case Second::kMin:
        return o.signed_d ? static_cast<uint32_t>(
                                std::min(static_cast<int32_t>(low), static_cast<int32_t>(c)))
                          : std::min(low, c);
      case Second::kMax:
        return o.signed_d ? static_cast<uint32_t>(
                                std::max(static_cast<int32_t>(low), static_cast<int32_t>(c)))
                          : std::max(low, c);
      default:
        return low;
    }
  });
}

/// vmad: product and c in full precision, shifted, and only then cut to 32 bits. By the ISA whole
/// words of type u32 are unsigned; an H200 takes a, b and c as signed in any case, which shows in
/// saturated and scaled results.
void MultiplyVideo(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<Options>(op.imm);
  const uint32_t shift = op.target & 31;
  const bool plus_one = (op.target & kPlusOne) != 0;
  const bool minus_product = (op.target & kMinusProduct) != 0;
  const bool minus_c = (op.target & kMinusC) != 0;
  const bool is_signed = o.signed_a || o.signed_b || minus_product || minus_c;
  Ternary<uint32_t>(x, op, mask, [&](uint32_t a, uint32_t b, uint32_t c) {
    const __int128_t product = static_cast<__int128_t>(
                                   Selected(a, o.part_a, o.signed_a || o.part_a == 0)) *
                               Selected(b, o.part_b, o.signed_b || o.part_b == 0);
    const int64_t third = Part(c, 0, 32, true);
    __int128_t sum = (minus_product ? -product : product) + (minus_c ? -third : third) +
                     (plus_one ? 1 : 0);
    sum >>= shift;
    if (o.saturate) {
      const __int128_t low = is_signed ? INT32_MIN : 0;
      const __int128_t high = is_signed ? int64_t{INT32_MAX} : int64_t{UINT32_MAX};
      sum = std::clamp(sum, low, high);
    }
    return static_cast<uint32_t>(sum);
  });
}

bool ReadWhat(std::string_view name, What& what) {
  static constexpr std::pair<std::string_view, What> kNames[] = {
      {"vadd", What::kAdd},     {"vsub", What::kSub}, {"vabsdiff", What::kAbsDiff},
      {"vmin", What::kMin},     {"vmax", What::kMax}, {"vavrg", What::kAverage},
      {"vset", What::kCompare}, {"vshl", What::kShl}, {"vshr", What::kShr},
      {"vmad", What::kMultiply}};
  for (const auto& [text, value] : kNames) {
    if (text != name) continue;
    what = value;
    return true;
  }
  return false;
}

/// "b2" or "h1" as Options has it; false when it is neither.
bool ReadPart(const std::string& part, uint8_t& value) {
  if (part.empty()) return true;
  const int index = part[1] - '0';
  if (part.size() != 2 || index >= (part[0] == 'b' ? 4 : 2)) return false;
  value = static_cast<uint8_t>(part[0] == 'b' ? 1 + index : 5 + index);
  return true;
}

/// "h10" or "b3210", the highest part first; those behind a's are b's.
bool ReadOrder(const std::string& order, int parts, uint16_t& value) {
  if (order.empty()) return true;
  if (order.size() != static_cast<size_t>(parts) + 1 || order[0] != (parts == 2 ? 'h' : 'b'))
    return false;
  value = 0;
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i] < '0' || order[i] - '0' >= 2 * parts) return false;
    value = static_cast<uint16_t>(value << 3 | (order[i] - '0'));
  }
  return true;
}

/// Reads which parts of a packed destination are written: "h1", "b30".
bool ReadMask(const std::string& written, int parts, uint8_t& mask) {
  if (written.empty()) return true;
  if (written[0] != (parts == 2 ? 'h' : 'b')) return false;
  mask = 0;
  for (char part : written.substr(1)) {
    if (part < '0' || part - '0' >= parts) return false;
    mask = static_cast<uint8_t>(mask | 1 << (part - '0'));
  }
  return true;
}

/// Reads the parts of operands. A scalar result in a part of d is refused, because an H200 computes
/// something else than the ISA says.
bool ReadParts(const Form& form, Options& o, Op& op) {
  const auto& operands = form.instruction->operands;
  const std::string &d = operands[0].part, &a = operands[1].part, &b = operands[2].part;
  if (operands.size() > 3 && !operands[3].part.empty()) return false;
  if (!d.empty() && operands.size() != 4) return false;
  if (o.parts == 1) return d.empty() && ReadPart(a, o.part_a) && ReadPart(b, o.part_b);
  uint16_t order_a = o.parts == 2 ? 010 : 03210, order_b = o.parts == 2 ? 032 : 07654;
  const bool read = ReadMask(d, o.parts, o.written) && ReadOrder(a, o.parts, order_a) &&
                    ReadOrder(b, o.parts, order_b);
  op.target = order_a | uint32_t{order_b} << kOrderBits;
  return read;
}

bool ReadProduct(const Form& form, const Options& o, Op& op) {
  const auto& operands = form.instruction->operands;
  if (operands.size() != 4) return false;
  const bool plus_one = form.Has("po");
  const bool minus_product = operands[1].minus != operands[2].minus;
  const bool minus_c = operands[3].minus;
  if (minus_product + minus_c + plus_one > 1) return false;
  op.target = (form.Has("shr7")    ? 7
               : form.Has("shr15") ? 15
                                   : 0) |
              (plus_one ? kPlusOne : 0) | (minus_product ? kMinusProduct : 0) |
              (minus_c ? kMinusC : 0);
  // The results of an H200 for unsigned sums that are scaled and saturate are inconsistent.
  const bool is_unsigned = !o.signed_a && !o.signed_b && !minus_product && !minus_c;
  return !(is_unsigned && o.saturate && (op.target & 31) != 0);
}

}  // namespace

Handler VideoHandler(const Form& form, Op& op) {
  std::string name = form.instruction->opcode;
  Options o;
  if (name.ends_with('2') || name.ends_with('4')) {
    o.parts = static_cast<uint8_t>(name.back() - '0');
    name.pop_back();
  }
  const bool known = ReadWhat(name, o.what);
  if ((o.what == What::kShl || o.what == What::kShr) && form.Has("clamp") == form.Has("wrap"))
    return nullptr;
  o.wraps = form.Has("wrap");
  if (!known || (o.what == What::kAverage && o.parts == 1) || form.instruction->operands.size() < 3)
    return nullptr;
  std::vector<bool> types;
  size_t last_type = 0;
  const auto& modifiers = form.instruction->modifiers;
  for (size_t i = 0; i < modifiers.size(); ++i) {
    const Type type = ptx::ParseType(modifiers[i]);
    if (type != Type::kU32 && type != Type::kS32) continue;
    types.push_back(type == Type::kS32);
    last_type = i;
  }
  o.saturate = form.Has("sat");
  // hardware makes something else of it than the ISA says
  if (o.what == What::kShl && o.saturate) return nullptr;
  if (o.what == What::kCompare) types.insert(types.begin(), false);
  if (types.size() != 3) return nullptr;
  o.signed_d = types[0];
  o.signed_a = types[1];
  o.signed_b = types[2];
  for (size_t i = last_type + 1; i < modifiers.size(); ++i) {
    static constexpr std::string_view kComparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const auto at = std::ranges::find(kComparisons, modifiers[i]);
    if (at != std::end(kComparisons))
      o.comparison = static_cast<uint8_t>(at - std::begin(kComparisons));
    if (modifiers[i] == "add") o.second = Second::kAdd;
    if (modifiers[i] == "min") o.second = Second::kMin;
    if (modifiers[i] == "max") o.second = Second::kMax;
  }
  const bool multiplies = o.what == What::kMultiply;
  const auto minus = [](const ptx::Operand& operand) { return operand.minus; };
  if (!multiplies && std::ranges::any_of(form.instruction->operands, minus)) return nullptr;
  if (!ReadParts(form, o, op) || (multiplies && !ReadProduct(form, o, op))) return nullptr;
  op.imm = std::bit_cast<uint64_t>(o);
  return multiplies ? MultiplyVideo : o.parts == 1 ? ScalarVideo : PackedVideo;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
