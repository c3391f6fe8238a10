// Names inside one function: registers, variables and labels, in scopes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "atunner/ptx/module.h"
#include "atunner/ptx/token_stream.h"

namespace atunner::ptx {

/// Braces open scopes; inline assembly declares its registers, call parameters and labels anew in
/// each. Outside of the function's outermost scope variables and labels get unique names: "done"
/// becomes "done#3" in scope 3. Registers are referred to by index and need no such name.
class FunctionNames {
 public:
  explicit FunctionNames(const TokenStream& tokens) : tokens_(tokens) {}

  /// Forgets the names of the previous function.
  void Reset();
  void OpenScope();
  void CloseScope();
  bool InnerScope() const { return scope_ != 0; }

  /// Adds a register to the function, and its name to the current scope.
  Status DefineRegister(Function& function, std::string name, Type type);
  /// ".reg .v2 .f32 name": registers "name.x" and "name.y". `lanes` is 1, 2 or 4.
  Status DefineVector(Function& function, const std::string& name, Type type, int lanes);
  /// Index in Function::registers, or -1.
  int FindRegister(std::string_view name) const;
  /// All registers of a vector as one operand; nullopt if `name` is not a vector register.
  std::optional<Operand> VectorRegister(std::string_view name) const;

  /// Claims a name in the current scope for a variable or a label.
  Status Declare(const std::string& name);
  /// Gives a variable of an inner scope its unique name. `owner`: what makes it unique among those
  /// of other functions.
  void Rename(std::string& name, const std::string& owner = "");
  /// The unique name of the variable that `name` means here.
  std::string Renamed(std::string_view name) const;
  /// The unique name of a label of the current scope.
  std::string Label(const std::string& label) const { return InScope(label, scope_); }

  /// Notes that instruction `index` of the body branches to a label, which may be one of the
  /// current scope or of one around it, before or after the branch.
  void NoteBranch(size_t index);
  /// The same for the labels in Function::branch_targets[list].
  void NoteBranchList(const std::string& list);
  /// Replaces the labels of the noted branches by unique names, and checks that they exist.
  Status ResolveLabels(Function& function);

 private:
  /// The meaning of a name outside the current scope, which declares it anew.
  struct Hidden {
    std::string name;
    int reg = -1;
    bool is_register = false;
    std::string variable;
  };
  static std::string InScope(const std::string& label, uint32_t scope);
  /// The unique name of the nearest label or list in `known` that `name` means in `scope`.
  template <class Map>
  std::string Nearest(const std::string& name, uint32_t scope, const Map& known) const;
  void ResolveBranches(Function& function);
  bool IsRegisterOfScope(const std::string& name) const;

  const TokenStream& tokens_;
  std::unordered_map<std::string, int> registers_;
  std::vector<uint32_t> register_scopes_;         ///< per register of the function
  std::unordered_set<std::string> declared_;      ///< unique names of variables and labels
  std::unordered_map<std::string, int> vectors_;  ///< registers of several elements → how many
  uint32_t scope_ = 0;
  std::vector<uint32_t> scope_parents_{0};
  std::vector<Hidden> hidden_;
  std::vector<size_t> hidden_starts_;  ///< per open scope, where its part of `hidden_` begins
  std::unordered_map<std::string, std::string> renamed_;
  /// Branches and lists of branch targets in inner scopes, each with its scope.
  std::vector<std::pair<size_t, uint32_t>> branches_;
  std::vector<std::pair<std::string, uint32_t>> branch_lists_;
};

}  // namespace atunner::ptx
