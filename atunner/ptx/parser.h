// What reads a module piece by piece: parser.cpp has directives, parser_body.cpp what stands in
// functions, parser_names.cpp which names mean what, parser_constants.cpp constant expressions,
// parser_calls.cpp parameters that are registers.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "atunner/ptx/lexer.h"
#include "atunner/ptx/module.h"

namespace atunner::ptx {

/// ".b32" → kB32; kNone for anything else, the empty word at the end of the text included.
inline Type TypeOfWord(std::string_view word) {
  return word.starts_with('.') ? ParseType(word.substr(1)) : Type::kNone;
}

/// Of tokens of one module. Names are resolved while they are read; labels at the end of each
/// function.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Result<ValidModule> Run();

 private:
  using RegisterMap = std::unordered_map<std::string, int>;

  // parser.cpp
  Status TopLevel();
  Status File();
  Status SkipTokens(int count);
  Status SkipBraces();
  Status ModuleVariable();
  /// ".align 4 .b8 name[128]" with any number of attribute words; several dimensions multiply.
  Result<Variable> Declaration();
  Status Initialiser(Variable& variable);
  Status InitialValue(Variable& variable);
  Status ParseFunction();
  static void Place(Variable& variable, uint64_t& used);
  Status Params(std::vector<Variable>& list, uint64_t& bytes);

  // parser_body.cpp
  Status Body(Function& function);
  Status Statement(Function& function);
  Status Pragma(Function& function);
  Status Registers(Function& function);
  Status DefineVector(Function& function, const std::string& name, Type type, int lanes);
  Status LocalVariable(Function& function);

  // parser_names.cpp
  /// What is known of a name of the module.
  struct ModuleName {
    bool function = false;
    bool defined = false;
    bool of_extern = false;  ///< declared as another module's
    Type type = Type::kNone;
    uint64_t bytes = 0;  ///< of a variable; 0 = as many as its definition says
  };
  Status AddName(const std::string& name, const ModuleName& as);
  Status Define(Function& function, std::string name, Type type);
  /// That a variable or a label has this name, in the scope at hand.
  Status Declare(const std::string& name);
  // Braces open scopes: registers, call parameters and labels of inline assembly are declared anew
  // in each.
  struct Hidden {
    std::string name;
    int reg = -1;
    bool is_register = false;
    std::string variable;
  };
  void StartScopes();
  void OpenScope();
  void CloseScope();
  void Rename(std::string& name);
  std::string Renamed(std::string_view name) const;
  static std::string InScope(const std::string& label, uint32_t scope);
  Status Location();
  Status ParseInstruction(Function& function);
  Status AddOffset(Function& function, const Instruction& instruction, Operand& operand);
  Status Guard(Instruction& instruction);
  /// "mov.v2.u32 a, b", element by element.
  Status MoveVector(Function& function, Instruction move);
  /// A branch inside braces may mean a label of its scope or of one around it, seen or yet to come.
  bool ResolveLater(const std::string& label, size_t index);
  Result<Operand> ParseOperand(const Function& function);
  Result<Operand> NestedOperand(const Function& function);
  bool IsRegister(size_t at) const;
  /// Where the point of "%r1.b0" or "%r1.h10" stands, or npos.
  size_t PartOf(std::string_view token) const;
  /// The part of a destination pair behind the bar.
  Status Second(Operand& operand);
  /// "[%rd1+16]", "[name+4]", "[%rd1]", "[16]", "[tensor, {x, y}]" (elements)
  Result<Operand> Address();
  Operand VectorRegister(std::string_view token, int lanes) const;

  // parser_constants.cpp
  struct Constant {
    Operand value;
    bool is_unsigned = false;
  };
  /// A literal, without its sign.
  Result<Constant> Literal();
  /// With what stands before it: signs, casts, parentheses.
  Result<Constant> Unary();
  /// As much of an expression as binds at least as strongly as `least`.
  Result<Constant> Expression(int least);
  Result<Constant> Choice(const Constant& condition);
  Result<Operand> Immediate();
  Result<uint64_t> Number();
  /// "+ 4 * 2 - 1" behind a register or a name: what it comes to.
  Result<uint64_t> Offset();

  // parser_calls.cpp: parameters in registers become parameters in memory, with loads and stores
  // around.
  Status RegisterParameters(Function& function);
  Status ParseCall(Function& function, Instruction call);
  Status PassOperand(Function& function, const Instruction& call, Operand& operand, uint64_t bytes,
                     std::vector<Instruction>* loads);
  void StoreResults(Function& function, const Instruction& instruction);

  Status ResolveLabels(Function& function);

  bool End() const { return at_ >= tokens_.size(); }
  std::string_view Peek() const { return End() ? std::string_view{} : tokens_[at_].text; }
  std::string_view Next() { return End() ? std::string_view{} : tokens_[at_++].text; }
  bool Accept(std::string_view text);
  /// What is wrong, with the line at hand.
  std::unexpected<Error> Bad(std::string what) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  ValidModule module_;
  RegisterMap registers_;
  std::vector<uint32_t> register_scopes_;  ///< of the function's registers
  /// Variables and labels of the function, as InScope says
  std::unordered_set<std::string> declared_;
  std::unordered_map<std::string, int> vectors_;  ///< registers of several elements → how many
  std::unordered_map<std::string, ModuleName> module_names_;
  struct InRegister {
    std::string name;
    Type type = Type::kNone;
    bool result = false;
  };
  std::vector<InRegister> in_registers_;  ///< parameters of the function at hand that are registers
  /// Of each function known so far
  std::unordered_map<std::string, std::vector<uint64_t>> parameter_bytes_;
  uint32_t passed_ = 0;  ///< operands of calls that were no variables
  std::vector<Variable> module_shared_;
  std::vector<std::string> extern_shared_;
  uint32_t extern_align_ = 16;
  bool extern_ = false;  ///< what is read belongs to another module
  bool linked_ = false;  ///< other modules see it
  Type last_type_ = Type::kB8;
  uint64_t element_bytes_ = 1;
  uint32_t source_file_ = 0;
  uint32_t source_line_ = 0;
  int operand_depth_ = 0;
  bool in_call_ = false;
  uint32_t scope_ = 0;
  std::vector<uint32_t> scope_parents_{0};
  std::vector<Hidden> undo_;
  std::vector<size_t> undo_starts_;
  std::unordered_map<std::string, std::string> renamed_;
  // Inside of scopes, with labels that are not yet resolved:
  std::vector<std::pair<size_t, uint32_t>> branches_;           ///< instructions
  std::vector<std::pair<std::string, uint32_t>> branch_lists_;  ///< of Function::branch_targets
};

}  // namespace atunner::ptx
