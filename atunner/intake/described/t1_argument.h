// One entry of KernelSpecification.Arguments.
#pragma once

#include "atunner/intake/described/t1_json.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::t1 {

struct Argument {
  enum class Place : uint8_t {
    kParameter,  ///< of the kernel
    kSymbol,     ///< copied to the `__constant__` or `__device__` symbol of its name
    kShared,     ///< no argument: `shared_bytes` of dynamic shared memory
  };
  Place place = Place::kParameter;
  ArgSpec spec;
  Expr shared_bytes = 0;
  std::string note;  ///< for people; may be empty
};

/// `number` counts from 0 and names an argument without a name.
Result<Argument> ReadArgument(const Scope& scope, const json& stated, size_t number);

}  // namespace atunner::t1
