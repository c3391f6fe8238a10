#include "atunner/verify/oracle/shadow_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/ptx/module.h"

namespace atunner {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kCellAlignment = 16;
constexpr uint64_t kMostStaticSharedBytes = 48 << 10;
constexpr uint64_t kLeastWorkspaceBytes = 16;  // as BindPlan allocates them
/// The host reads 8 bytes of cells for each byte of results.
constexpr uint64_t kMostResultBytes = uint64_t{256} << 20;
/// On the virtual GPU cells are memory of the host, beside seven other judges.
constexpr uint64_t kMostVirtualBytes = uint64_t{2} << 30;
constexpr uint64_t kShareOfFree = 2;
/// Contents of workspaces before the launch, as BindPlan poisons them: NaN in every float.
constexpr uint8_t kNanByte = 0xff;

uint64_t Place(uint64_t bytes, uint64_t& end) {
  const uint64_t offset = end;
  end = (end + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

/// Static shared memory of the kernel that has most. A compiler to PTX alone does not report it.
uint64_t StaticSharedBytes(const std::string& text) {
  const auto module = ptx::Parse(text);
  if (!module) return kMostStaticSharedBytes;
  uint64_t most = 0;
  for (const ptx::Function& function : module->functions())
    most = std::max(most, function.shared_bytes);
  return most;
}

/// Errors of the kernel up to such a place would count as exact, and its budget would be too small.
std::string WhyLossy(const std::vector<shadow::LossyPlace>& places) {
  const std::string more = places.size() == 1 ? "" : fmt::format(" and {} more", places.size() - 1);
  return fmt::format("float64 does not pass through {} in line {} of its PTX{}", places[0].what,
                     places[0].line, more);
}

AddressOf In(DeviceAddress arena, const std::map<std::string, uint64_t>& offsets) {
  return [arena, &offsets](const std::string& name) -> std::optional<DeviceAddress> {
    const auto found = offsets.find(name);
    return found == offsets.end() ? std::nullopt : std::optional(arena + found->second);
  };
}

}  // namespace

Result<std::unique_ptr<ShadowRun>> ShadowRun::Make(const OracleContext& context,
                                                   const Program& given) {
  const auto unsupported = [&](const std::string& what) {
    return Fail(ErrorCode::kUnsupported, what, context.spec.name);
  };
  if (given.compiled.ptx.empty()) return unsupported("a binary without PTX has no shadow");
  std::vector<std::string> entries;
  for (const KernelResources& kernel : given.compiled.kernels) entries.push_back(kernel.mangled);
  ATUNNER_TRY(shadow::ShadowKernel shadow, shadow::MakeShadow(given.compiled.ptx, entries));
  if (!shadow.carries_floats) return unsupported("a kernel without floats needs no shadow");
  if (!shadow.lossy.empty()) return unsupported(WhyLossy(shadow.lossy));
  std::unique_ptr<ShadowRun> run(new ShadowRun(context, given));
  run->uses_shared_ = shadow.uses_shared;
  run->static_shared_bytes_ = StaticSharedBytes(given.compiled.ptx);
  CompiledModule module = given.compiled;
  module.ptx = std::move(shadow.ptx);
  module.cubin.clear();
  ATUNNER_TRY(run->module_, context.device.Load(module));
  return run;
}

Result<ShadowRun::Layout> ShadowRun::LayoutOf(const TaskBuffers& buffers) const {
  ATUNNER_TRY(const ConcretePlan plan,
              Resolve(given_.plan, buffers.dims(), context_.spec.attributes));
  Layout layout;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors())
    layout.tensors[tensor.spec->name] = Place(static_cast<uint64_t>(tensor.shape.bytes),
                                              layout.extent.arena_bytes);
  for (const ConcreteWorkspace& workspace : plan.workspaces)
    layout.workspaces[workspace.name] = Place(std::max(workspace.bytes, kLeastWorkspaceBytes),
                                              layout.extent.arena_bytes);
  for (const ConcreteStep& step : plan.steps) {
    layout.extent.blocks = std::max(layout.extent.blocks, step.grid.Count());
    if (!uses_shared_) continue;
    const uint64_t shared = static_shared_bytes_ + step.shared_bytes;
    layout.extent.shared_bytes = std::max(
        layout.extent.shared_bytes, (shared + kCellAlignment) / kCellAlignment * kCellAlignment);
  }
  return layout;
}

Result<bool> ShadowRun::Fits(const TaskBuffers& buffers) {
  ATUNNER_TRY(const Layout layout, LayoutOf(buffers));
  uint64_t results = 0;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.is_output()) results += static_cast<uint64_t>(tensor.shape.bytes);
  }
  ATUNNER_TRY(uint64_t most, context_.device.FreeBytes());
  most /= kShareOfFree;
  if (context_.device.evidence() == Evidence::kPredicted) most = std::min(most, kMostVirtualBytes);
  return results <= kMostResultBytes &&
         layout.extent.arena_bytes + shadow::ShadowSpace::BytesFor(layout.extent) <= most;
}

Status ShadowRun::PrepareSpace(const TaskBuffers& buffers) {
  if (space_.arena && space_.dims == buffers.dims()) return space_.cells->Clear();
  space_ = {};
  space_.dims = buffers.dims();
  ATUNNER_TRY(space_.layout, LayoutOf(buffers));
  shadow::ShadowSpace::Extent& extent = space_.layout.extent;
  ATUNNER_TRY(space_.arena, context_.device.Allocate(extent.arena_bytes));
  extent.arena = space_.arena->address();
  ATUNNER_TRY(space_.cells, shadow::ShadowSpace::Make(context_.device, extent));
  return space_.cells->Attach(*module_);
}

Status ShadowRun::CopyTensors(const TaskBuffers& buffers) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    const DeviceAddress to = space_.arena->address() + space_.layout.tensors[tensor.spec->name];
    const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
    ATUNNER_RETURN_IF_ERROR(tensor.is_input()
                                ? context_.device.CopyWithin(to, tensor.address, bytes)
                                : context_.device.Fill(to, kNanByte, bytes));
  }
  return {};
}

Status ShadowRun::Launch(const TaskBuffers& buffers) {
  Device& device = context_.device;
  const DeviceAddress arena = space_.arena->address();
  ATUNNER_TRY(
      const BoundPlan plan,
      BindPlan(device, given_.plan, context_.spec, buffers, In(arena, space_.layout.tensors),
               Workspaces::kPoisoned, In(arena, space_.layout.workspaces)));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, *module_, plan));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device, *module_, plan,
                      {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
  if (outcome.completed()) return {};
  return Fail(ErrorCode::kUnavailable, "the kernel carried in float64 failed: " + outcome.message,
              context_.spec.name);
}

Result<std::map<std::string, std::vector<double>>> ShadowRun::Run(const TaskBuffers& buffers) {
  ATUNNER_RETURN_IF_ERROR(PrepareSpace(buffers));
  ATUNNER_RETURN_IF_ERROR(CopyTensors(buffers));
  ATUNNER_RETURN_IF_ERROR(Launch(buffers));
  std::map<std::string, std::vector<double>> results;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_output() || !IsFloat(tensor.spec->dtype)) continue;
    const DeviceAddress at = space_.arena->address() + space_.layout.tensors[tensor.spec->name];
    ATUNNER_TRY(
        results[tensor.spec->name],
        space_.cells->Read(at, tensor.spec->dtype, static_cast<uint64_t>(tensor.shape.elements)));
  }
  return results;
}

}  // namespace atunner
