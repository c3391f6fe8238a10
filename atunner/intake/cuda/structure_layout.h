// What a structure of the source consists of.
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
  std::string declaration;  ///< "const float* __restrict__ ": what stands before a name
  std::string access;       ///< ".size.x", ".taps[2]"
  std::string suffix;       ///< "_size_x", "_taps_2"
  std::string fallback;     ///< default member initialiser; may be empty
};

struct StructureLayout {
  /// In the order in which a list initialises them; a number in place of none
  std::vector<Member> members;
  bool aligned = false;  ///< to more than its members ask for
  /// No list makes one: it has a constructor, or members that are private
  bool constructed = false;
  std::string list;  ///< how they are nested, with a $ for each: "{$, {$, $}}"
};

/// Structures of the file whose members are numbers, pointers, arrays of a literal extent, and such
/// structures; CUDA's vectors of numbers among them, and what templates of structures make. By
/// name, without namespaces.
class StructureLayouts {
 public:
  explicit StructureLayouts(const CudaSyntax& syntax);
  /// Null for any other type. Knows the vectors, and View<const float, 2> where View is a template.
  const StructureLayout* Find(const std::string& type) const;

 private:
  struct Template {
    std::vector<TemplateParameter> parameters;
    TokenRange body;
    bool aligned = false;
    bool is_class = false;
  };

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
  /// Instances are made when they are asked for
  mutable std::map<std::string, StructureLayout, std::less<>> known_;
  mutable int nested_ = 0;  ///< instances under way
};

/// A structure of floats of one type, as that many of them: what an array of such structures holds.
std::optional<CType> FloatsOf(const CudaSyntax& syntax, const std::string& type);

}  // namespace atunner
