// C++ names in readable form.
#pragma once

#include <string>

namespace atunner {

/// "_Z5scalePfi" becomes "scale(float*, int)". A C name, or a text that is no mangled name, is
/// returned as it is.
std::string Demangled(const std::string& name);

}  // namespace atunner
