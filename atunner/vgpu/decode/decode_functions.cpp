// A kernel and the functions that it may call, as operations.
#include <map>
#include <utility>

#include "atunner/vgpu/analysis/body_flow.h"
#include "atunner/vgpu/analysis/nominal_clocks.h"
#include "atunner/vgpu/decode/decoders.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // of one thread, as on hardware
constexpr uint32_t kMaxRegisterSlots = 1u << 17;

/// Notes that an access has the same address register as an earlier one of its basic block.
/// `known`: address registers of the block so far, each with the operation that first used it.
/// The instruction was decoded to the last of `ops`.
void MarkKnownAddress(const ptx::Instruction& instruction, std::vector<Op>& ops,
                      std::map<int, size_t>& known) {
  Op& op = ops.back();
  if (op.flow != Flow::kNone) known.clear();
  const Use use = UseOf(instruction);
  if (IsAccess(op) && instruction.guard < 0 && use.addresses.size() == 1) {
    const auto [at, first] = known.emplace(use.addresses.front(), ops.size() - 1);
    op.address_known = !first;
    if (!first) ops[at->second].address_shared = true;
  }
  for (int written : use.writes) known.erase(written);
}

Status CheckSize(const ptx::Function& function, const Kernel& kernel) {
  if (function.local_bytes <= kMaxLocalBytes && function.param_bytes <= kMaxLocalBytes &&
      kernel.register_slots <= kMaxRegisterSlots)
    return {};
  return Fail(ErrorCode::kUnsupported,
              "the virtual GPU does not support so many registers or so much local memory",
              function.name);
}

/// Falling off the end of a function returns.
Status AddReturn(DecodeContext& c) {
  Op end;
  end.op_class = OpClass::kControl;
  ATUNNER_RETURN_IF_ERROR(DecodeReturn(c, end));
  c.kernel().ops.push_back(end);
  c.kernel().locations.emplace_back();
  c.kernel().tracks.emplace_back();
  return {};
}

Status DecodeFunction(DecodeContext& c, int code) {
  c.EnterFunction(code);
  Kernel& kernel = c.kernel();
  ATUNNER_RETURN_IF_ERROR(CheckSize(c.function(), kernel));
  kernel.code[static_cast<size_t>(code)].first_op = static_cast<uint32_t>(kernel.ops.size());
  std::map<int, size_t> known_addresses;
  for (const ptx::Instruction& instruction : c.function().body) {
    Op op;
    ATUNNER_RETURN_IF_ERROR(DecodeInstruction(c, instruction, op));
    kernel.ops.push_back(op);
    MarkKnownAddress(instruction, kernel.ops, known_addresses);
    kernel.locations.push_back(
        {instruction.line, instruction.source_file, instruction.source_line});
    kernel.tracks.push_back(TrackOf(instruction, kernel.track_registers, kernel.track_list));
  }
  kernel.track_registers += static_cast<uint32_t>(c.function().registers.size());
  return AddReturn(c);
}

}  // namespace

Result<Kernel> Decode(const ptx::ValidModule& module, const ptx::Function& function,
                      const std::unordered_map<std::string, uint64_t>& symbols) {
  DecodeContext c(module, function, symbols);
  // Decoding a call adds the called function to the table.
  for (size_t i = 0; i < c.functions().size(); ++i)
    ATUNNER_RETURN_IF_ERROR(DecodeFunction(c, static_cast<int>(i)));
  c.functions().MarkRecursion();
  MarkLive(c.kernel(), c.functions().WordsOfRegisters());
  FindFlow(c.kernel());
  FillNominalClocks(c.kernel());
  return std::move(c.kernel());
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
