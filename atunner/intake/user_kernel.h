// A user's kernel with its tunables, whatever it was read from.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// How a parameter's value gets into the kernel. Launch expressions know every parameter in any
/// case.
struct Injection {
  enum class Kind : uint8_t {
    kDefine,   ///< -Dname=value
    kReplace,  ///< the value replaces `length` bytes of the source at `offset`
    kLaunch,   ///< launch expressions and entry alone
    kOption,   ///< compiler option `option` + value; 0 leaves it out
  };
  Kind kind = Kind::kDefine;
  size_t offset = 0;
  size_t length = 0;
  std::string option;
};

struct UserKernel {
  KernelSpec spec;                    ///< its oracle is set by MakeUserTemplate
  ParameterSpace space;               ///< may be empty: then there is one configuration
  std::vector<Injection> injections;  ///< one per parameter
  /// The user's own values: the baseline, and without `reference` the oracle
  Configuration initial;
  SourceUnit source;
  LaunchPlan plan;  ///< entries may hold "{parameter}": "scan<{ITEMS}, float>"
  std::optional<RenderedKernel> reference;
  std::vector<Dims> check_dims;    ///< small problem sizes that the same binary serves
  std::vector<std::string> notes;  ///< what was inferred or left out, for people
};

/// Reads a file that another one names, by the name it uses.
using FileReader = std::function<Result<std::string>(const std::string& name)>;

/// Checks the kernel as a whole (names, values, launch of the initial configuration) and makes its
/// template. An initial configuration that the space rules out is replaced by the nearest valid
/// one, which is noted. `verified`: it must have an output, and write to no surface, which nobody
/// compares; what is only run need not.
Result<std::unique_ptr<ScheduleTemplate>> MakeUserTemplate(UserKernel& kernel,
                                                           bool verified = true);

/// The positions of the initial values, or of the closest listed ones.
Configuration NearestListed(const ParameterSpace& space, const std::vector<Value>& wanted);

}  // namespace atunner
