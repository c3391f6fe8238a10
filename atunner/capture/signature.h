// A kernel's name, template arguments and parameters, from its demangled name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/value/dtype.h"

namespace atunner::capture {

/// "void blur<float, 3>(float const*, Image*, int)".
struct Signature {
  std::string name;                        ///< "blur": with namespaces, without arguments
  std::vector<std::string> template_args;  ///< "float", "3"
  std::vector<std::string> parameters;     ///< "float const*", "Image*", "int"; empty: not known

  /// The name without namespaces.
  std::string PlainName() const { return name.substr(name.rfind(':') + 1); }
};

/// `readable` as a demangler gives it. A C name has no parameters in it.
Signature ParseSignature(std::string_view readable);

/// Type of the elements behind a pointer: "float const*" and "float4*" are float32. nullopt for a
/// parameter that is no pointer, and for structures.
std::optional<DType> PointeeOf(std::string_view parameter);

}  // namespace atunner::capture
