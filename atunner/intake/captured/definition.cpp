#include "atunner/intake/captured/definition.h"

#include <string>

namespace atunner {

const KernelDefinition* FindDefinition(const CudaSyntax& syntax,
                                       const capture::Signature& signature) {
  const std::string name = signature.PlainName();
  for (const KernelDefinition& definition : syntax.kernels) {
    const bool as_many = signature.parameters.empty() ||
                         definition.parameters.size() == signature.parameters.size();
    if (definition.name == name && as_many) return &definition;
  }
  return nullptr;
}

}  // namespace atunner
