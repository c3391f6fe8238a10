// Reads an entry of KernelSpecification.Arguments.
#pragma once

#include "atunner/intake/described/t1_json.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::t1 {

struct Argument {
  enum class Place : uint8_t {
    kParameter,  ///< a parameter of the kernel
    kSymbol,     ///< copied to the `__constant__` or `__device__` symbol of its name
    kShared,     ///< not an argument, but `shared_bytes` of dynamic shared memory
  };
  Place place = Place::kParameter;
  ArgSpec spec;
  Expr shared_bytes = 0;
  std::string note;  ///< a message for the user; may be empty
};

/// `number` is the entry's index and names an argument that has no name.
Result<Argument> ReadArgument(const Scope& scope, const json& stated, size_t number);

}  // namespace atunner::t1
