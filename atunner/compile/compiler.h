// CUDA C++ (or PTX, or a cubin) in, CompiledModule out.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/kernel/compiled_module.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

struct CompileRequest {
  SourceUnit source;
  /// Kernels that will be launched; template instances as name expressions
  std::vector<std::string> entries;
  std::string arch;  ///< "sm_90a"; "compute_75" compiles to PTX only
};

/// The result for one source. A source that is rejected is not an Error: it has no module.
struct CompileOutcome {
  std::optional<CompiledModule> module;
  /// The compiler's messages, pointing into the user's file, when there is no module
  std::string error;
  bool timed_out = false;
  bool crashed = false;  ///< the compiler process died

  bool ok() const { return module.has_value(); }
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  /// An Error means that nothing can be compiled at all (no NVRTC). Thread-safe. A compiler that
  /// can be interrupted ends with a time-out when `stop` is requested.
  virtual Result<CompileOutcome> Compile(const CompileRequest& request,
                                         const std::stop_token& stop = {}) = 0;
  /// "NVRTC 13.0", part of the cache key.
  virtual std::string Version() const = 0;
};

}  // namespace atunner
