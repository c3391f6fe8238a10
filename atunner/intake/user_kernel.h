// A user's kernel with its tunable parameters, in the form that all readers produce.
//
// Three readers fill a UserKernel: bare/ (a .cu file with optional `// atunner: …` annotations),
// described/kernel_toml (a TOML description beside the source) and described/t1 (the JSON of Kernel
// Tuner and BAT). MakeUserTemplate checks it and makes the ScheduleTemplate that is tuned.
//
// Example: the source
//
//     #ifndef UNROLL
//     #define UNROLL 4
//     #endif
//     template <int BLOCK> __global__ void scale(float* y, const float* x, int n) { … }
//
// launched as scale<256><<<(n + 255) / 256, 256>>>(y, x, 1 << 20) becomes
//
//     space       UNROLL in {1, 2, 4, 8, 16}        BLOCK in {32, 64, 128, 256, 512, 1024}
//     injections  kReplace: the "4" of the #define  kLaunch
//     plan        entry "scale<{BLOCK}>", grid (n + (BLOCK - 1)) // BLOCK, block BLOCK
//     initial     UNROLL = 4, BLOCK = 256
//
// Render of UNROLL = 8, BLOCK = 128 replaces the 4 in the source by 8, puts 128 into the entry's
// name and evaluates the launch expressions with n = 1 << 20 and BLOCK = 128. A parameter of a TOML
// file is usually a macro instead (kDefine: -DBLOCK=128) and the source stays as it is.
//
// The initial configuration, or the stated reference kernel, is the oracle: every candidate must
// compute what the user's own values compute, within DefaultBudget (verify/budget/error_budget.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// How a parameter's value gets into the kernel's source. Launch expressions may use every
/// parameter.
struct Injection {
  enum class Kind : uint8_t {
    kDefine,   ///< -Dname=value
    kReplace,  ///< the value replaces `length` bytes of the source at `offset`
    kLaunch,   ///< not in the source, only in the launch and the entry's name
    kUnroll,   ///< a pragma at `offset`, before a loop, unrolls it so often; 0 = no pragma
    kOption,   ///< compiler option `option` + value, e.g. --maxrregcount=64; 0 = no option
  };
  Kind kind = Kind::kDefine;
  size_t offset = 0;
  size_t length = 0;
  std::string option;
};

struct UserKernel {
  KernelSpec spec;                    ///< MakeUserTemplate sets its oracle
  ParameterSpace space;               ///< may be empty, for a single configuration
  std::vector<Injection> injections;  ///< one per parameter
  /// The user's own values: the baseline, and without `reference` the oracle
  Configuration initial;
  SourceUnit source;
  LaunchPlan plan;  ///< entries may hold "{parameter}": "scan<{ITEMS}, float>"
  std::optional<RenderedKernel> reference;
  std::vector<Dims> check_dims;    ///< small problem sizes that the same binary serves
  std::vector<std::string> notes;  ///< messages about what was inferred or is not tuned
};

/// Reads a file by the name that another file uses for it.
using FileReader = std::function<Result<std::string>(const std::string& name)>;

/// Checks the kernel as a whole (names, values, launch of the initial configuration) and makes its
/// template. An initial configuration that breaks a constraint is replaced by the nearest valid
/// one, with a note. With `verified` the kernel must have an output and must not write to a
/// surface, which cannot be compared; a kernel that is only run needs neither. kInvalidInput says
/// what is wrong.
Result<std::unique_ptr<ScheduleTemplate>> MakeUserTemplate(UserKernel& kernel,
                                                           bool verified = true);

/// Each wanted value, or the closest one that the parameter lists.
Configuration NearestListed(const ParameterSpace& space, const std::vector<Value>& wanted);

}  // namespace atunner
