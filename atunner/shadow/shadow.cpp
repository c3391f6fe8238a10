#include "atunner/shadow/shadow.h"

#include "atunner/ptx/module.h"

namespace atunner::shadow {

Result<ShadowKernel> MakeShadow(std::string_view ptx) {
  ATUNNER_RETURN_IF_ERROR(ptx::Parse(ptx));
  return Fail(ErrorCode::kUnsupported, "this kernel has no shadow", "PTX");
}

}  // namespace atunner::shadow
