// Names of a module: its functions and variables, which may be declared several times and defined
// once.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/ptx/module.h"
#include "atunner/ptx/token_stream.h"

namespace atunner::ptx {

/// The contents of a declaration.
struct ModuleName {
  bool function = false;
  bool defined = false;
  bool is_extern = false;   ///< declared as a name of another module
  bool visible = false;     ///< other modules see it
  Type type = Type::kNone;  ///< of a variable's elements
  uint64_t bytes = 0;       ///< of a variable; 0 = as many as its definition says
};

class ModuleNames {
 public:
  explicit ModuleNames(const TokenStream& tokens) : tokens_(tokens) {}

  /// Adds a declaration, and checks it against earlier ones of the same name.
  Status Add(const std::string& name, const ModuleName& as);
  /// nullptr if the name was not declared so far.
  const ModuleName* Find(const std::string& name) const;

  /// Notes the sizes of a function's parameters, which all its declarations must agree on.
  Status AddParameters(const Function& function);
  /// Bytes of each parameter; nullptr if the function was not declared so far.
  const std::vector<uint64_t>* ParameterBytes(const std::string& function) const;

 private:
  const TokenStream& tokens_;
  std::unordered_map<std::string, ModuleName> names_;
  std::unordered_map<std::string, std::vector<uint64_t>> parameter_bytes_;
};

}  // namespace atunner::ptx
