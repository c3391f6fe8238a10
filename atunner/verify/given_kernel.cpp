#include "atunner/verify/given_kernel.h"

#include "atunner/model/kernel/exact_fill.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/inputs/input_values.h"
#include "atunner/verify/launch/judge_kernels.h"

namespace atunner {
namespace {

/// True if just any integer may lead the kernel astray.
bool MustStaySmall(const ArgSpec& arg, const InputUses& uses, bool users, bool checks_bounds) {
  if (!users) return true;
  // A device that checks bounds tells whether the kernel as given bears an index.
  return !checks_bounds &&
         (!uses.known || uses.loops.contains(arg.name) || uses.addresses.contains(arg.name));
}

bool IsState(const ArgSpec& arg, const InputUses& uses, bool checks_bounds) {
  if (!uses.known) return !checks_bounds;
  if (uses.decisions.contains(arg.name)) return true;
  return uses.addresses.contains(arg.name) && arg.fill.kind != Fill::Kind::kIota;
}

}  // namespace

Result<GivenKernel> ReadGivenKernel(const Device& device, Compiler& compiler,
                                    const KernelSpec& spec) {
  if (spec.oracle.kind != Oracle::Kind::kKernel || !spec.oracle.kernel) return GivenKernel{};
  const RenderedKernel& kernel = *spec.oracle.kernel;
  ATUNNER_TRY(const CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), ArchitectureFor(device)}));
  if (!outcome.ok()) return GivenKernel{};
  return GivenKernel{MineValues(outcome.module->ptx), FindInputUses(*outcome.module, kernel.plan)};
}

KernelSpec WithBearableFills(KernelSpec spec, const InputUses& uses, bool checks_bounds) {
  const bool users = spec.oracle.kind == Oracle::Kind::kKernel;
  for (ArgSpec& arg : spec.args) {
    if (arg.role != Role::kInput && arg.role != Role::kInOut) continue;
    const bool open = arg.fill.kind == Fill::Kind::kFamilies && !IsFloat(arg.dtype);
    if (open && MustStaySmall(arg, uses, users, checks_bounds)) arg.fill = OrdinaryIntegers(arg);
    if (CanVary(arg) && IsState(arg, uses, checks_bounds)) PromiseExactly(arg.fill);
  }
  return spec;
}

}  // namespace atunner
