// Functions: their heads (function_parser.cpp), the instructions and local declarations in their
// bodies (body_parser.cpp), and parameters that are registers (register_parameters.cpp).
#pragma once

#include <string>
#include <vector>

#include "atunner/ptx/function_names.h"
#include "atunner/ptx/module.h"
#include "atunner/ptx/module_names.h"
#include "atunner/ptx/operand_parser.h"
#include "atunner/ptx/token_stream.h"
#include "atunner/ptx/variable_parser.h"

namespace atunner::ptx {

/// Shared variables of the module, which all functions can use.
struct ModuleShared {
  std::vector<Variable> variables;
  std::vector<std::string> dynamic;  ///< names of arrays of open size
  uint32_t dynamic_align = 16;
};

/// How a declaration is seen by other modules.
struct Linkage {
  bool is_extern = false;  ///< it belongs to another module
  bool visible = false;    ///< other modules see it
};

/// Variables of the module that a function declares in its body.
struct StaticVariables {
  std::vector<Variable> globals;
  std::vector<Variable> constants;
};

/// Parameters and results of a function that are registers.
struct RegisterParameter {
  std::string name;
  Type type = Type::kNone;
  int lanes = 1;  ///< elements of a vector register
  bool result = false;
};

/// Replaces parameters in registers, which PTX allows, by parameters in memory: a function loads
/// them as it begins and stores its results before it returns, and a call does the reverse.
class RegisterParameters {
 public:
  RegisterParameters(const TokenStream& tokens, FunctionNames& names)
      : tokens_(tokens), names_(names) {}

  void Reset() { parameters_.clear(); }
  /// Adds a parameter, whose variable gets a name that no text can spell.
  void Add(Variable& variable);
  /// The parameters added so far are results.
  void MarkResults();
  /// Defines the registers, and loads those of parameters.
  Status Load(Function& function);
  /// Stores the results before `instruction`, a return.
  void StoreResults(Function& function, const Instruction& instruction) const;
  /// Adds a call, with stores of its register arguments before it and loads of its register results
  /// behind it. `bytes`: sizes of the callee's parameters, nullptr if unknown.
  void AddCall(Function& function, Instruction call, const std::vector<uint64_t>* bytes);

 private:
  /// The register of a parameter, or those of a vector's elements.
  std::vector<Operand> RegistersOf(const RegisterParameter& parameter) const;
  /// Replaces a register, a vector of them or a constant among a call's operands by a variable of
  /// `bytes` bytes. An argument's store is added to the function, a result's load to `loads`.
  void PassOperand(Function& function, const Instruction& call, Operand& operand, uint64_t bytes,
                   std::vector<Instruction>* loads);

  const TokenStream& tokens_;
  FunctionNames& names_;
  std::vector<RegisterParameter> parameters_;
  uint32_t passed_ = 0;  ///< operands of calls that were replaced so far
};

/// The statements of a function's body.
class BodyParser {
 public:
  BodyParser(TokenStream& tokens, const ModuleNames& module_names, FunctionNames& names,
             VariableParser& variables, RegisterParameters& parameters, StaticVariables& statics)
      : tokens_(tokens),
        module_names_(module_names),
        names_(names),
        variables_(variables),
        constants_(tokens),
        operands_(tokens, names),
        parameters_(parameters),
        statics_(statics) {}

  /// Everything up to the function's closing brace.
  Status Parse(Function& function);

 private:
  Status Statement(Function& function);
  Status Label(Function& function);
  Status Pragma(Function& function);
  /// ".reg .b32 %r<4>, a;"
  Status Registers(Function& function);
  Status LocalVariable(Function& function);
  /// ".global .u32 count;": a variable of the module that only this scope can name.
  Status StaticVariable(const Function& function);
  /// ".loc file line column": where the following instructions come from.
  Status SourceLine();
  Status ParseInstruction(Function& function);
  Status Operands(Instruction& instruction);
  Status Guard(Instruction& instruction);
  /// Notes the label of a branch, which is resolved at the end of the function.
  Status NoteBranch(const Function& function, const Instruction& instruction);
  /// Adds an instruction whose operands are complete, or the instructions that it stands for.
  Status Append(Function& function, Instruction instruction);
  /// "mov.u32 a, b+4" takes a sum, and so may any operand that is a register, and the mbarrier of a
  /// bulk copy. The sum becomes an instruction of its own.
  Status ReplaceSum(Function& function, const Instruction& instruction, Operand& operand);
  /// Adds "add sum, register, offset" and replaces the operand by the sum.
  Status AddSum(Function& function, const Instruction& instruction, Operand& operand);
  /// "mov.v2.u32 a, b", element by element.
  Status MoveVector(Function& function, Instruction move);

  TokenStream& tokens_;
  const ModuleNames& module_names_;
  FunctionNames& names_;
  VariableParser& variables_;
  ConstantParser constants_;
  OperandParser operands_;
  RegisterParameters& parameters_;
  StaticVariables& statics_;
  uint32_t source_file_ = 0;
  uint32_t source_line_ = 0;
};

/// A function from ".entry" or ".func" on.
class FunctionParser {
 public:
  FunctionParser(TokenStream& tokens, ModuleNames& module_names, VariableParser& variables)
      : tokens_(tokens),
        module_names_(module_names),
        variables_(variables),
        names_(tokens),
        register_parameters_(tokens, names_) {}

  /// nullopt for a declaration without a body.
  Result<std::optional<Function>> Parse(const ModuleShared& shared, Linkage linkage);
  /// Those that all functions so far declared.
  const StaticVariables& statics() const { return statics_; }

 private:
  Status Head(Function& function);
  Status Parameters(std::vector<Variable>& list, uint64_t& bytes);
  /// ".reqntid 128" and others between the head and the body.
  void Directives(Function& function);
  Status Body(Function& function, const ModuleShared& shared);

  TokenStream& tokens_;
  ModuleNames& module_names_;
  VariableParser& variables_;
  FunctionNames names_;
  RegisterParameters register_parameters_;
  StaticVariables statics_;
};

}  // namespace atunner::ptx
