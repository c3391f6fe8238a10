// Whether an artifact's cubin is the program that was verified.
#pragma once

#include <string>

#include "atunner/compile/compiler.h"
#include "atunner/model/artifact/artifact.h"

namespace atunner::jobs {

struct BinaryComparison {
  enum class Kind {
    kSame,     ///< kernel.ptx assembles to the machine code of kernel.cubin, or there is no cubin
    kForeign,  ///< it assembles to other code with the compiler that made the artifact
    kUnknown,  ///< other code, by another compiler version or with a limit of registers
  };
  Kind kind = Kind::kSame;
  std::string detail;  ///< one sentence; empty for kSame
};

/// A GPU runs kernel.cubin, the virtual GPU kernel.ptx. Digests say only that nobody changed a file
/// without the manifest. So the PTX is assembled again and compared with the cubin, kernel by
/// kernel.
Result<BinaryComparison> CompareBinaries(const Path& folder, const Artifact& artifact,
                                         Compiler& compiler);

}  // namespace atunner::jobs
