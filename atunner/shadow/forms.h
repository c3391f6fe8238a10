// What an instruction does with floating-point values, as the shadow sees it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/ptx/statements.h"

namespace atunner::shadow {

using ptx::TextInstruction;
using ptx::TextOperand;
using ptx::Type;

enum class Kind : uint8_t {
  kNone,       ///< results are the original's: comparisons, conversions to integers, addresses
  kFloat,      ///< arithmetic and conversions of FloatForm
  kMove,       ///< mov, scalar or packing and unpacking
  kSelect,     ///< selp
  kShuffle,    ///< shfl
  kDuplicate,  ///< integer and float64 instructions: executed again on the shadow's bits
  kLoad,
  kStore,
  kAtomic,     ///< atom, red
  kAsyncCopy,  ///< cp.async of 4 to 16 bytes
  kLdMatrix,
  kMma,
  kFragmentLoad,     ///< wmma.load
  kFragmentStore,    ///< wmma.store
  kFragmentProduct,  ///< wmma.mma
  kLossy,            ///< a float result that has no twin
  kRefused,          ///< most of a kernel's work would have no twin
};
Kind KindOf(const TextInstruction& instruction);

/// Arithmetic on floats, element by element, or a conversion.
struct FloatForm {
  std::string op;              ///< "fma"; "cvt" for conversions
  Type to = Type::kF32;        ///< type of an element of the result
  Type from = Type::kF32;      ///< type of an element of the sources; an integer type for cvt
  int elements = 1;            ///< of the result
  bool spread = false;         ///< each source holds all elements (add.f16x2); else one (cvt)
  bool whole_numbers = false;  ///< rounds to a whole number: a decision, as conversions to integers
};
/// nullopt for instructions that are not kFloat.
std::optional<FloatForm> FloatFormOf(const TextInstruction& instruction);

/// False for an instruction that no assembler takes: too few operands, an empty vector.
bool HasItsOperands(const TextInstruction& instruction);

/// The last modifier that is a type; kNone if there is none.
Type LastType(const TextInstruction& instruction);
/// "f16x2" → f16; itself for others.
Type ElementOf(Type type);
bool IsNarrowFloat(Type type);  ///< f16, bf16, f32, tf32
/// Elements of a vector access: 1, 2, 4 or 8.
int VectorSize(const TextInstruction& instruction);
/// The registers that an instruction writes; -1 for sinks.
std::vector<int> Results(const TextInstruction& instruction);
/// A constant operand as an integer; nullopt if it is none.
std::optional<uint64_t> IntegerOf(const TextOperand& operand);

/// Lane `from` of source `operand` (an index of the operands) arrives as lane `to` of the result.
struct LaneMove {
  int to = 0, operand = 1, from = 0;
  bool negate = false, absolute = false;
  int other = -1;  ///< another operand whose lane `to` may hold the twin instead (or)
};
/// 16-bit lanes that an integer instruction moves as a whole, e.g. those of prmt.b32 and shl by 16.
std::vector<LaneMove> LaneMoves(const TextInstruction& instruction);

/// The accumulator shape and operand types of mma.sync on floats that is computed with float64
/// tensor instructions.
struct MmaForm {
  Type result = Type::kF32, factor = Type::kF16, addend = Type::kF32;
  int k = 16;
};
std::optional<MmaForm> MmaFormOf(const TextInstruction& instruction);

/// wmma on 16 x 16 matrices of floats.
struct FragmentForm {
  char matrix = 'd';       ///< of a load or a store: a, b, c or d
  bool by_column = false;  ///< of a load or a store
  Type type = Type::kF16;  ///< of a load or a store: of an element in memory
  MmaForm product;         ///< of a product; its k is also that of the shape
};
std::optional<FragmentForm> FragmentFormOf(const TextInstruction& instruction);

}  // namespace atunner::shadow
