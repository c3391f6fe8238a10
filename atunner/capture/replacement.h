// A tuned kernel in the place of one that a program launches: `replacement.json` in an artifact's
// folder. `apply` reads it.
//
// Example: the program launches _Z5scalePfPKffi with grid 40960, block 256. The tuned kernel has
// block 512, so that it is launched with grid 20480 and the same parameters:
//
//     {"format": 1, "kernel": "_Z5scalePfPKffi", "module": "3f2a…", "image": "kernel.cubin",
//      "arch": "sm_90", "entry": "_Z5scalePfPKffi", "tolerance": 1e-5,
//      "launches": [{"from": {…}, "to": {…}}]}
//
// The parameters of both kernels are the same bytes in the same order.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/capture/capture.h"

namespace atunner::capture {

/// Launches with the configuration `from` become launches with `to`; others stay as they are.
struct ReplacedLaunch {
  LaunchConfiguration from, to;
  bool operator==(const ReplacedLaunch&) const = default;
};

inline constexpr double kDefaultTolerance = 1e-5;

struct Replacement {
  std::string kernel;  ///< of the program, mangled
  BlobId module;       ///< digest of the PTX of the program's module; "" = any module
  std::string image;   ///< file in the same folder: PTX or cubin
  std::string arch;    ///< "sm_90": a cubin runs on this architecture alone
  std::string entry;   ///< kernel in the image
  std::vector<ReplacedLaunch> launches;
  /// Largest difference from the original's floating-point results, relative to the largest of
  /// them. Other results have to be equal.
  double tolerance = kDefaultTolerance;
  bool operator==(const Replacement&) const = default;
};

inline constexpr const char* kReplacementFile = "replacement.json";

Status WriteReplacement(const Path& folder, const Replacement& replacement);
/// kNotFound for a folder without one. kInvalidInput names the field.
Result<Replacement> ReadReplacement(const Path& folder);

}  // namespace atunner::capture
