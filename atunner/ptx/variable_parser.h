// Declarations of variables and parameters, with their initialisers.
#pragma once

#include "atunner/ptx/constant_parser.h"
#include "atunner/ptx/module.h"
#include "atunner/ptx/token_stream.h"

namespace atunner::ptx {

/// Places a variable behind the `used` bytes of its space, aligned, and adds its own.
void Place(Variable& variable, uint64_t& used);

class VariableParser {
 public:
  explicit VariableParser(TokenStream& tokens) : tokens_(tokens), constants_(tokens) {}

  /// ".align 4 .b8 name[128]" with any number of attribute words; the extents of several dimensions
  /// multiply.
  Result<Variable> Declaration();
  /// The rest of a declaration: "= {1, 2}" or nothing, and ";".
  Status Finish(Variable& variable);

 private:
  /// One word of a declaration before the name.
  Status Attribute(std::string_view word, Variable& variable);
  Status Alignment(Variable& variable);
  /// "[4][8]": the number of elements.
  Result<uint64_t> Extents(uint64_t count);
  Status Initialiser(Variable& variable);
  Status InitialValue(Variable& variable);
  /// A number as the bits of an element.
  Result<uint64_t> InitialNumber(Type type);

  TokenStream& tokens_;
  ConstantParser constants_;
  uint64_t element_bytes_ = 0;  ///< size of an element of the current declaration
  uint64_t lanes_ = 1;          ///< .v2, .v4
};

}  // namespace atunner::ptx
