// The members of a structure of the source, down to numbers and pointers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// A number or a pointer inside a structure.
struct Member {
  std::string declaration;  ///< "const float* __restrict__ ": the text before the name
  std::string access;       ///< ".size.x", ".taps[2]"
  std::string suffix;       ///< "_size_x", "_taps_2"
  std::string fallback;     ///< default member initialiser; may be empty
};

struct StructureLayout {
  /// In the order of an initialiser list; an empty structure has one placeholder
  std::vector<Member> members;
  bool aligned = false;  ///< has a stricter alignment than its members
  bool constructed =
      false;         ///< has a constructor or private members: no initialiser list makes one
  std::string list;  ///< the initialiser list with a $ per member: "{$, {$, $}}"
};

/// The structures of a source whose members are numbers, pointers, arrays of literal extent, or
/// such structures again. Also CUDA's vector types (float4) and instances of structure templates.
/// Names are without namespaces.
class StructureLayouts {
 public:
  explicit StructureLayouts(const CudaSyntax& syntax);
  /// The layout of a type such as "Params", "float4" or "View<const float, 2>"; nullptr for others.
  const StructureLayout* Find(const std::string& type) const;

 private:
  struct Template {
    std::vector<TemplateParameter> parameters;
    TokenRange body;
    bool aligned = false;
    bool is_class = false;
  };

  bool Is(size_t i, std::string_view text) const;
  /// Reads the structure whose `struct` or `class` is at a token.
  void ReadStructure(size_t keyword);
  const StructureLayout* Instance(const std::string& type) const;
  void Define(const CudaSyntax& syntax, const std::string& name, TokenRange body,
              StructureLayout layout) const;
  size_t BehindConstructor(const CudaSyntax& syntax, size_t open) const;
  bool Declaration(const CudaSyntax& syntax, TokenRange statement, StructureLayout& out) const;
  void Append(const std::string& declaration, const std::string& name,
              const std::vector<int64_t>& extents, const std::string& fallback,
              StructureLayout& out) const;

  const CudaSyntax& syntax_;
  std::map<std::string, Template, std::less<>> templates_;
  /// Layouts by type; template instances are added on first use
  mutable std::map<std::string, StructureLayout, std::less<>> known_;
  mutable int nested_ = 0;  ///< depth of the instance that is being made
};

/// A structure of floats of one type as a vector type, e.g. {float32, 3 lanes} of struct { float x,
/// y, z; }; nullopt for others.
std::optional<CType> FloatsOf(const CudaSyntax& syntax, const std::string& type);

}  // namespace atunner
