// The part of atunner.h that concerns execution plans.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/c_guard.h"
#include "runtime/include/atunner.h"
#include "runtime/loaded_plan.h"

using atunner::Result;
using atunner::Status;

/// The handle's descriptions outlive the calls that return pointers to them.
struct atunner_plan {
  std::unique_ptr<atunner::loader::LoadedPlan> plan;
  std::vector<std::string> dtypes;  ///< of all buffers
};

namespace atunner::loader {
namespace {

Status LoadInto(const char* folder, const char* libcuda, int device, atunner_plan** plan) {
  if (plan == nullptr) return NullArgument("plan");
  *plan = nullptr;
  if (folder == nullptr) return NullArgument("folder");
  if (device < ATUNNER_CURRENT_CONTEXT) return Invalid("there is no GPU " + std::to_string(device));
  auto handle = std::make_unique<atunner_plan>();
  ATUNNER_TRY(handle->plan, LoadedPlan::Load(folder, libcuda == nullptr ? "" : libcuda, device));
  for (const PlanBuffer& buffer : handle->plan->plan().buffers)
    handle->dtypes.emplace_back(Name(buffer.dtype));
  *plan = handle.release();
  return {};
}

/// Describes the buffer at `index` of one side of the plan.
Status Describe(const atunner_plan& plan, const std::vector<size_t>& side, size_t index,
                atunner_role role, atunner_argument* out) {
  if (out == nullptr) return NullArgument("argument");
  ATUNNER_RETURN_IF_ERROR(CheckSize(out->struct_size, sizeof *out, "atunner_argument"));
  if (index >= side.size())
    return Invalid("there is no tensor " + std::to_string(index) + ", the plan has " +
                   std::to_string(side.size()));
  const PlanBuffer& buffer = plan.plan->plan().buffers[side[index]];
  out->name = buffer.name.c_str();
  out->dtype = plan.dtypes[side[index]].c_str();
  out->role = role == ATUNNER_INPUT && plan.plan->Changes(side[index]) ? ATUNNER_INOUT : role;
  out->rank = buffer.extents.size();
  out->extents = buffer.extents.data();
  out->bytes = buffer.Bytes();
  return {};
}

std::vector<atunner_extern_tensor> TensorsOf(const atunner_plan& plan,
                                             const std::vector<PlanTensor>& tensors,
                                             std::span<const uint64_t> addresses) {
  std::vector<atunner_extern_tensor> described;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlanBuffer& buffer = plan.plan->plan().buffers[tensors[i].buffer];
    described.push_back({tensors[i].argument.c_str(), plan.dtypes[tensors[i].buffer].c_str(),
                         buffer.extents.size(), buffer.extents.data(), buffer.Bytes(),
                         addresses[i]});
  }
  return described;
}

/// The C function as the classes call it.
RunExtern ExternOf(const atunner_plan& plan, const atunner_plan_run_info& run) {
  if (run.run_extern == nullptr) return {};
  return [&plan, &run](const ExternCall& call) -> Status {
    const PlanStep& step = plan.plan->plan().steps[call.step];
    const auto inputs = TensorsOf(plan, step.reads, call.inputs);
    const auto outputs = TensorsOf(plan, step.writes, call.outputs);
    const atunner_extern_call raw{sizeof raw,     step.target.c_str(), step.arguments.c_str(),
                                  inputs.data(),  inputs.size(),       outputs.data(),
                                  outputs.size(), call.stream,         call.on_host ? 1 : 0};
    if (run.run_extern(run.user, &raw) == 0) return {};
    return Fail(ErrorCode::kUnavailable, "the framework could not run " + step.target);
  };
}

Status RunFrom(const atunner_plan* plan, const atunner_plan_run_info* run) {
  if (plan == nullptr) return NullArgument("plan");
  if (run == nullptr) return NullArgument("run");
  ATUNNER_RETURN_IF_ERROR(CheckSize(run->struct_size, sizeof *run, "atunner_plan_run_info"));
  if (run->input_count > 0 && run->inputs == nullptr) return NullArgument("run->inputs");
  if (run->output_count > 0 && run->outputs == nullptr) return NullArgument("run->outputs");
  return plan->plan->Run({static_cast<cuda::Stream>(run->stream),
                          {run->inputs, run->input_count},
                          {run->outputs, run->output_count},
                          run->workspace,
                          run->workspace_bytes,
                          run->on_host != 0,
                          ExternOf(*plan, *run),
                          run->replay != 0});
}

}  // namespace
}  // namespace atunner::loader

namespace loader = atunner::loader;

extern "C" {

atunner_status atunner_plan_load(const char* folder, const char* libcuda, int device,
                                 atunner_plan** plan) {
  return loader::Guarded([&] { return loader::LoadInto(folder, libcuda, device, plan); });
}

void atunner_plan_free(atunner_plan* plan) { delete plan; }

size_t atunner_plan_input_count(const atunner_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->inputs().size();
}

size_t atunner_plan_output_count(const atunner_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->outputs().size();
}

atunner_status atunner_plan_input(const atunner_plan* plan, size_t index, atunner_argument* input) {
  return loader::Guarded([&]() -> Status {
    if (plan == nullptr) return loader::NullArgument("plan");
    return loader::Describe(*plan, plan->plan->inputs(), index, ATUNNER_INPUT, input);
  });
}

atunner_status atunner_plan_output(const atunner_plan* plan, size_t index,
                                   atunner_argument* output) {
  return loader::Guarded([&]() -> Status {
    if (plan == nullptr) return loader::NullArgument("plan");
    return loader::Describe(*plan, plan->plan->outputs(), index, ATUNNER_OUTPUT, output);
  });
}

uint64_t atunner_plan_workspace_bytes(const atunner_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->plan().workspace_bytes;
}

uint64_t atunner_plan_weight_bytes(const atunner_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->plan().weight_bytes;
}

size_t atunner_plan_extern_count(const atunner_plan* plan) {
  if (plan == nullptr) return 0;
  return static_cast<size_t>(std::ranges::count(
      plan->plan->plan().steps, atunner::PlanStep::Kind::kExtern, &atunner::PlanStep::kind));
}

atunner_status atunner_plan_run(const atunner_plan* plan, const atunner_plan_run_info* run) {
  return loader::Guarded([&] { return loader::RunFrom(plan, run); });
}

}  // extern "C"
