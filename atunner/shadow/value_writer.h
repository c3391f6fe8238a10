// Writes the PTX that computes twins: how values are read from shadow registers and written to
// them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/shadow/code_writer.h"
#include "atunner/shadow/flow.h"

namespace atunner::shadow {

/// What a module's text needs beside its functions.
struct ModuleFacts {
  /// Variables of the module that kernels may write, which have cells of their own
  std::vector<ptx::Variable> variables;
  bool halves = false;           ///< 16-bit floats occur: words may hold two twins
  bool bfloats = false;          ///< bfloat16 among them
  bool float_atomics = false;    ///< cells may be those of atomics
  bool exchanges = false;        ///< atomics may exchange the bits of floats
  bool calls_functions = false;  ///< those of functions.ptx
  bool uses_shared = false;      ///< an access may be to shared memory
};

/// Bits of a register or a part of it, with the twins of its 16-bit lanes ("" = none).
struct RawValue {
  int width = 32;
  std::string bits;
  std::array<std::string, kLanes> twins;
};

/// A double that is no twin: all bits set. No operation returns it.
constexpr std::string_view kNoTwin = "0dFFFFFFFFFFFFFFFF";

class ValueWriter : public CodeWriter {
 public:
  ValueWriter(const TextFunction& function, const Flow& flow, ModuleFacts& facts);

  const TextFunction& function() const { return function_; }
  const Flow& flow() const { return flow_; }
  ModuleFacts& facts() { return facts_; }

  /// Names of shadow registers.
  std::string Twin(int reg, int lane = 0) const;
  std::string Bits(int reg) const;
  const std::string& NameOf(int reg) const {
    return function_.registers[static_cast<size_t>(reg)].name;
  }
  Type TypeOf(int reg) const { return function_.registers[static_cast<size_t>(reg)].type; }
  bool HasShadow(const TextOperand& operand) const;

  /// Element `lane` (counted in 16 bits) of a source as a double of type `type`: its twin where
  /// that rounds to the shadow's bits, else the value of those bits.
  std::string Fetch(const TextOperand& source, Type type, int lane = 0);
  std::string Fetch(const RawValue& source, Type type, int lane = 0);
  /// The shadow of a source as bits.
  RawValue Raw(const TextOperand& source, int width);
  /// The register itself, not its shadow, as bits.
  std::string OriginalBits(const TextOperand& source, int width);
  /// A constant in a register; registers as they are.
  std::string InRegister(const std::string& bits, int width);
  /// `parts` one behind another.
  RawValue Join(const std::vector<RawValue>& parts);
  /// Parts of equal width.
  std::vector<RawValue> Split(const RawValue& whole, size_t parts);

  /// Writes a register's shadow.
  void Set(int reg, const RawValue& value);
  void SetFloats(int reg, Type type, const std::vector<std::string>& values);
  /// The original's value. Behind the original instruction.
  void SetOriginal(int reg);

  /// A double of the bits of a type.
  std::string Widen(Type type, const std::string& bits);
  /// The bits of a double rounded to a type.
  std::string Round(Type type, const std::string& value);

  /// Declarations of all registers that were named.
  std::string Declarations() const;

 private:
  /// A register by a name whose type fits integer and float instructions of its size.
  std::string Untyped(int reg);
  std::string FetchConstant(const TextOperand& source, Type type);
  std::string LaneBits(const RawValue& source, Type type, int lane);
  std::string Checked(const RawValue& source, Type type, int lane, const std::string& bits,
                      const std::string& value);
  RawValue RawOfFloat(const TextOperand& source);
  std::string Narrowed(const std::string& bits, int from, int to);

  const TextFunction& function_;
  const Flow& flow_;
  ModuleFacts& facts_;
};

}  // namespace atunner::shadow
