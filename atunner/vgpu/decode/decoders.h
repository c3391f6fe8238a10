// From parsed PTX instructions to operations, one function per subject. Each sets the operands and
// the handler of `op`; instructions without a handler are refused with kUnsupported.
#pragma once

#include "atunner/vgpu/decode/decode_context.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Any instruction.
Status DecodeInstruction(DecodeContext& c, const ptx::Instruction& instruction, Op& op);

// decode_memory.cpp
Status DecodeAddressSpace(DecodeContext& c, const Form& form, Op& op);
Status DecodeMemory(DecodeContext& c, const Form& form, Op& op);
Status DecodeAtomic(DecodeContext& c, const Form& form, Op& op);
Status DecodeMulticast(DecodeContext& c, const Form& form, Op& op);
/// st.async and red.async.
Status DecodeRemoteStore(DecodeContext& c, const Form& form, Op& op);

// decode_async.cpp
/// cp.async, bulk and tensor copies, mbarriers and tensor maps.
Status DecodeAsync(DecodeContext& c, const Form& form, Op& op);
/// Operands as instructions/bulk.h describes them. A cache hint may stand in place of the barrier.
Status BulkAddresses(DecodeContext& c, const ptx::Operand& first, const ptx::Operand& second,
                     const ptx::Operand* barrier, const ptx::Instruction& instruction, Op& op);

// decode_texture.cpp
Status DecodeTexture(DecodeContext& c, const Form& form, Op& op);

// decode_warp.cpp
Status DecodeWarp(DecodeContext& c, const Form& form, Op& op);

// decode_tensor.cpp
Status DecodeMatrix(DecodeContext& c, const Form& form, Op& op);
Status DecodeTensor(DecodeContext& c, const Form& form, Op& op);
Status DecodeWmma(DecodeContext& c, const Form& form, Op& op);
Status DecodeWgmma(DecodeContext& c, const Form& form, Op& op);

// decode_flow.cpp
Status DecodeBarrier(DecodeContext& c, const Form& form, Op& op);
Status DecodeBranch(DecodeContext& c, const ptx::Instruction& instruction, Op& op);
Status DecodeReturn(DecodeContext& c, Op& op);
Status DecodeCall(DecodeContext& c, const ptx::Instruction& instruction, Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
