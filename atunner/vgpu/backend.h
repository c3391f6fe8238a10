// One build of the engine for one instruction set.
#pragma once

#include <memory>

#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {

using ProgramLoader = Result<std::unique_ptr<Program>> (*)(ptx::ValidModule, Memory&);

namespace avx2 {
Result<std::unique_ptr<Program>> Load(ptx::ValidModule module, Memory& memory);
}
namespace portable {
Result<std::unique_ptr<Program>> Load(ptx::ValidModule module, Memory& memory);
}

}  // namespace atunner::vgpu
