#include "atunner/vgpu/engine.h"

#include "atunner/vgpu/backend.h"

namespace atunner::vgpu {

Result<std::unique_ptr<Program>> LoadProgram(ptx::ValidModule module, Memory& memory) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("f16c");
  return has_avx2 ? avx2::Load(std::move(module), memory)
                  : portable::Load(std::move(module), memory);
}

std::vector<std::string> SupportedOpcodes() {
  return {
#define ATUNNER_PTX_OP(opcode, op_class, family) opcode,
#include "atunner/vgpu/decode/op.def"
#undef ATUNNER_PTX_OP
  };
}

}  // namespace atunner::vgpu
