// Whether an artifact's cubin is the program that was verified.
#pragma once

#include <string>

#include "atunner/compile/compiler.h"
#include "atunner/model/artifact/artifact.h"

namespace atunner::jobs {

struct BinaryComparison {
  enum class Kind {
    kSame,     ///< kernel.ptx is the program of kernel.cubin, or there is no cubin
    kForeign,  ///< the compiler that made the artifact makes another cubin of it
    kUnknown,  ///< another cubin, made by another version, with other options or by another way
  };
  Kind kind = Kind::kSame;
  std::string detail;  ///< one sentence; empty for kSame
};

/// A GPU runs kernel.cubin, the virtual GPU kernel.ptx. Digests say only that nobody changed a file
/// without the manifest. So kernel.cu is compiled again: if that gives kernel.ptx, it must give the
/// machine code of kernel.cubin. Otherwise kernel.ptx is assembled and compared, kernel by kernel.
Result<BinaryComparison> CompareBinaries(const Path& folder, const Artifact& artifact,
                                         Compiler& compiler);

}  // namespace atunner::jobs
