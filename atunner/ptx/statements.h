// The statements of a PTX text with their places in it, for tools that insert instructions and
// leave the rest of the text as it is. Names are resolved, opcodes have no meaning here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/ptx/module.h"

namespace atunner::ptx {

/// An operand as it is written.
struct TextOperand {
  enum class Kind : uint8_t {
    kRegister,
    kConstant,  ///< a number
    kVector,    ///< {…}; in calls also (…)
    kAddress,   ///< […]
    kOther,     ///< a symbol, a special register, an expression
    kSink,      ///< _
  };
  Kind kind = Kind::kOther;
  std::string text;                   ///< "%f1", "-1", "{%f1, %f2}", "[%rd1+4]", "sym+8"
  int reg = -1;                       ///< kRegister; kAddress: the base, or -1
  std::string base;                   ///< kAddress: "%rd1", a symbol or a number
  std::string offset;                 ///< kAddress: "+4"; "" = none
  std::vector<TextOperand> elements;  ///< kVector; kAddress: coordinates behind a comma
  int second = -1;                    ///< the register behind the bar of "%r1|%p1", or -1
  bool negated = false;               ///< !%p; `text` has the '!' too
};

/// One instruction.
struct TextInstruction {
  size_t begin = 0, end = 0;  ///< in the module's text, guard and semicolon included
  uint32_t line = 0;          ///< from 1
  std::string guard;          ///< "@%p1 " or "@!%p1 "; "" = none
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<TextOperand> operands;

  bool Has(std::string_view modifier) const;
  std::string Mnemonic() const;  ///< "ld.global.f32"
};

/// A function's body. Registers of inner scopes that share a name are different registers.
struct TextFunction {
  std::string name;
  bool is_entry = false;
  size_t head = 0;                      ///< in the text: before the brace that opens the body
  size_t begin = 0;                     ///< behind that brace
  std::vector<std::string> parameters;  ///< names, those of results included
  /// Directives of the head: ".maxntid", ".reqntid"
  std::vector<std::string> directives;
  std::vector<Register> registers;
  std::vector<TextInstruction> body;
  std::vector<Variable> local;  ///< variables in local space: name, bytes
};

struct TextModule {
  std::string target;    ///< "sm_90a"
  size_t variables = 0;  ///< in the text: where a variable of the module may be inserted
  std::vector<TextFunction> functions;
  std::vector<Variable> globals;  ///< variables of the module in global space
};

/// kInvalidInput for a text that Parse refuses; kUnsupported names forms that Statements cannot
/// read: registers as parameters, vectors of registers.
Result<TextModule> Statements(std::string_view text);

}  // namespace atunner::ptx
