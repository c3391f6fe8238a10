// A parsed PTX module: the contents of the text, with names resolved to indices. Opcodes have no
// meaning here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::ptx {

/// Fundamental types of registers, variables and instruction modifiers.
enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF64,
  kU16x2,
  kS16x2,
  kE4M3x2,
  kE5M2x2,
  kE4M3,
  kE5M2
};
/// Bits of a type; 1 for predicates, 0 for kNone.
int BitsOf(Type type);
/// "f32" → kF32; kNone for anything else.
Type ParseType(std::string_view text);
/// ".b32" → kB32; kNone for anything else.
inline Type TypeOfWord(std::string_view word) {
  return word.starts_with('.') ? ParseType(word.substr(1)) : Type::kNone;
}

struct Operand {
  enum class Kind : uint8_t { kRegister, kImmediate, kVector, kAddress, kSymbol, kSpecial, kSink };
  Kind kind = Kind::kSink;
  int reg = -1;            ///< kRegister; kAddress: base register or -1
  bool negated = false;    ///< !%p
  bool minus = false;      ///< -%r, of a video instruction
  bool is_float = false;   ///< kImmediate given as 0f…, 0d… or with a point
  bool is_single = false;  ///< kImmediate given as 0f…: `bits` are those of a float
  /// kImmediate: integer, or float64/float32 bits; kAddress: offset (two's complement)
  uint64_t bits = 0;
  /// kSymbol, kSpecial ("%tid.x"), kAddress with a symbol as base, labels
  std::string name;
  std::vector<Operand> elements;  ///< kVector
  std::string part;               ///< kRegister of a video instruction: "b2", "h10" of "%r1.b2"
  std::optional<int> second;      ///< the `|%q` of a destination pair
};

struct Instruction {
  std::string opcode;                  ///< "ld"
  std::vector<std::string> modifiers;  ///< "global", "nc", "v4", "f32"
  int guard = -1;                      ///< predicate register, or -1
  bool guard_negated = false;
  std::vector<Operand> operands;
  uint32_t line = 0;         ///< in the PTX text, from 1
  uint32_t source_file = 0;  ///< index of .file, 0 = unknown
  uint32_t source_line = 0;

  bool Has(std::string_view modifier) const;
  std::string Mnemonic() const;  ///< "ld.global.nc.v4.f32"
};

struct Register {
  std::string name;
  Type type = Type::kB32;
};

/// A variable in shared, local, const or global space, or a parameter.
struct Variable {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 1;
  /// Within its space of the function (shared, local, params) or module
  uint64_t offset = 0;
  Type type = Type::kNone;         ///< type of an element
  std::string opaque;              ///< "texref", "samplerref", "surfref"; "" = ordinary variable
  std::vector<std::byte> initial;  ///< empty = zeros
  /// Addresses of other variables inside the initialiser: offset → name.
  std::vector<std::pair<uint64_t, std::string>> references;
};

struct Function {
  std::string name;
  bool is_entry = false;
  std::vector<Variable> params;  ///< packed as the launch ABI packs them
  uint64_t param_bytes = 0;
  std::vector<Variable> returns;  ///< results of a .func
  std::vector<Register> registers;
  std::vector<Variable> shared;  ///< static; offsets from 0
  uint64_t shared_bytes = 0;
  /// Names of dynamic shared arrays: they start behind the static part
  std::vector<std::string> extern_shared;
  uint32_t extern_shared_align = 16;
  /// Names are unique: those of inner scopes carry a number behind '#'
  std::vector<Variable> local;
  uint64_t local_bytes = 0;
  std::vector<Instruction> body;
  std::map<std::string, uint32_t> labels;  ///< → index into body
  std::map<std::string, std::vector<std::string>> branch_targets;
  /// Bytes of a load that the code uses, as a mask (.pragma "used_bytes_mask"), by the load's index
  /// in `body`.
  std::map<uint32_t, uint64_t> used_bytes;
  uint32_t required_threads = 0;                  ///< .reqntid product, 0 = none
  std::array<uint32_t, 3> required_cluster = {};  ///< .reqnctapercluster, zeros = none
};

/// A parsed module. Only Parse creates one, so that names are resolved and operands well-formed.
class ValidModule {
 public:
  const std::vector<Function>& functions() const { return functions_; }
  const Function* Find(std::string_view name) const;
  const std::vector<Variable>& globals() const { return globals_; }
  const std::vector<Variable>& constants() const { return constants_; }
  const std::string& target() const { return target_; }
  /// Name of .file `index`, "" if unknown.
  std::string SourceFile(uint32_t index) const;

 private:
  friend class ModuleParser;
  std::string target_;
  std::vector<Function> functions_;
  std::vector<Variable> globals_;
  std::vector<Variable> constants_;
  std::map<uint32_t, std::string> files_;
};

/// kInvalidInput with the PTX line for a text that is not valid PTX.
Result<ValidModule> Parse(std::string_view text);

}  // namespace atunner::ptx
