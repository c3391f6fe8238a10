#include "runtime/loaded_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace atunner::loader {
namespace {

using Kind = PlanBuffer::Kind;

static_assert(kPlanAlignment == kWorkspaceAlignment);

/// An address of the host, which travels as a number.
void* OnHost(uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it came from a pointer
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

std::string Count(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Result<std::unique_ptr<LoadedPlan>> LoadedPlan::Load(const Path& folder, const std::string& libcuda,
                                                     int device) {
  std::unique_ptr<LoadedPlan> loaded(new LoadedPlan(libcuda));
  ATUNNER_TRY(loaded->plan_, LoadPlan(folder));
  loaded->inputs_ = loaded->plan_.BuffersOf(Kind::kInput);
  loaded->outputs_ = loaded->plan_.BuffersOf(Kind::kOutput);
  ATUNNER_RETURN_IF_ERROR(loaded->LoadKernels(folder, device));
  for (const PlanStep& step : loaded->plan_.steps) {
    auto bound = loaded->Bind(step);
    if (!bound) {
      bound.error().where = (folder / kPlanFile).string();
      return std::unexpected(bound.error());
    }
    loaded->steps_.push_back(*std::move(bound));
    loaded->has_externs_ = loaded->has_externs_ || step.kind == PlanStep::Kind::kExtern;
  }
  ATUNNER_RETURN_IF_ERROR(loaded->LoadWeights(folder));
  return loaded;
}

Status LoadedPlan::LoadKernels(const Path& folder, int device) {
  for (const std::string& kernel : plan_.kernels) {
    if (!Exists(folder / kernel / "manifest.json"))
      return Fail(ErrorCode::kNotFound, "the plan's kernel is missing", (folder / kernel).string(),
                  "is the folder complete?");
    ATUNNER_RETURN_IF_ERROR(set_.Add(folder / kernel));
  }
  ATUNNER_TRY(context_, set_.ContextOf(device));
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    ATUNNER_TRY(auto kernel, set_.LoadAtOwnSize(i, device));
    kernels_.push_back(std::move(kernel));
  }
  return {};
}

Status LoadedPlan::LoadWeights(const Path& folder) {
  if (plan_.weight_bytes == 0) return {};
  const Path path = folder / kWeightsFile;
  ATUNNER_TRY(const MappedBytes file, MappedBytes::Open(path, plan_.weight_bytes));
  if (DigestOf(file.bytes()) != plan_.weight_digest)
    return Invalid("the weights are not those that the plan was written with", path.string(),
                   "write the plan again");
  ATUNNER_TRY(weights_, DeviceMemory::Allocate(context_, plan_.weight_bytes));
  const ContextScope scope(*context_);
  ATUNNER_RETURN_IF_ERROR(scope.status());
  ATUNNER_RETURN_IF_ERROR(driver().Check(
      driver().cu().memory.upload(weights_.address(), file.bytes().data(), file.bytes().size()),
      "copy the weights to the GPU"));
  // The copy of pageable memory may still be on its way when cuMemcpyHtoD returns (CUDA driver API,
  // "API synchronization behavior"), and runs use other streams.
  return driver().Check(driver().cu().memory.synchronize(nullptr), "copy the weights to the GPU");
}

Result<LoadedPlan::Step> LoadedPlan::Bind(const PlanStep& step) const {
  Step bound;
  for (const size_t scratch : step.scratch) {
    bound.scratch = plan_.buffers[scratch].offset;
    bound.scratch_bytes = plan_.buffers[scratch].Bytes();
  }
  if (step.kind == PlanStep::Kind::kLaunch)
    ATUNNER_RETURN_IF_ERROR(BindLaunch(step, *kernels_[step.kernel], bound));
  return bound;
}

Status LoadedPlan::BindLaunch(const PlanStep& step, const LoadedKernel& kernel, Step& bound) const {
  const std::string& called = plan_.kernels[step.kernel];
  for (const Argument& argument : kernel.arguments()) {
    const auto& side = argument.role == Role::kInput ? step.reads : step.writes;
    const auto given = std::ranges::find(side, argument.name, &PlanTensor::argument);
    if (given == side.end())
      return Invalid("the plan gives no '" + argument.name + "' to " + called);
    if (plan_.buffers[given->buffer].Bytes() != static_cast<uint64_t>(argument.shape.bytes))
      return Invalid("'" + argument.name + "' of " + called + " has another size than '" +
                     plan_.buffers[given->buffer].name + "'");
    bound.tensors.push_back(given->buffer);
  }
  if (bound.scratch_bytes < kernel.workspace_bytes())
    return Invalid("the plan has too little scratch memory for " + called);
  return {};
}

Status LoadedPlan::CheckTensors(std::span<const uint64_t> addresses,
                                const std::vector<size_t>& buffers, bool on_host) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::string& name = plan_.buffers[buffers[i]].name;
    if (addresses[i] == 0) return Invalid("'" + name + "' is null");
    if (!on_host && addresses[i] % kTensorAlignment != 0)
      return Invalid(
          "'" + name + "' is not aligned to " + std::to_string(kTensorAlignment) + " bytes", "",
          "copy the tensor to memory of its own");
  }
  return {};
}

Status LoadedPlan::CheckRequest(const PlanRequest& request) const {
  if (request.inputs.size() != inputs_.size())
    return Invalid("the plan takes " + Count(inputs_.size(), "input") + ", " +
                   std::to_string(request.inputs.size()) + " are given");
  if (request.outputs.size() != outputs_.size())
    return Invalid("the plan has " + Count(outputs_.size(), "output") + ", memory for " +
                   std::to_string(request.outputs.size()) + " is given");
  ATUNNER_RETURN_IF_ERROR(CheckTensors(request.inputs, inputs_, request.on_host));
  ATUNNER_RETURN_IF_ERROR(CheckTensors(request.outputs, outputs_, request.on_host));
  if (has_externs_ && !request.run_extern)
    return Invalid("the plan has operators that the framework must run", "",
                   "pass a function that runs them");
  if (request.workspace == 0) return {};
  if (request.workspace_bytes < plan_.workspace_bytes)
    return Invalid("the workspace has " + std::to_string(request.workspace_bytes) + " bytes, " +
                   std::to_string(plan_.workspace_bytes) + " are needed");
  if (request.workspace % kWorkspaceAlignment != 0)
    return Invalid("the workspace is not aligned to " + std::to_string(kWorkspaceAlignment) +
                   " bytes");
  return {};
}

Status LoadedPlan::Run(const PlanRequest& request) const {
  ATUNNER_RETURN_IF_ERROR(CheckRequest(request));
  const ContextScope scope(*context_);
  ATUNNER_RETURN_IF_ERROR(scope.status());
  return request.on_host ? RunOnHost(request) : RunOnDevice(request);
}

Status LoadedPlan::RunReplayed(const PlanRequest& request) const {
  RunCache::Key key(request.inputs.begin(), request.inputs.end());
  key.insert(key.end(), request.outputs.begin(), request.outputs.end());
  key.push_back(request.workspace);
  return recorded_.Run(context_, std::move(key), request.stream, [&](cuda::Stream stream) {
    PlanRequest inner = request;
    inner.stream = stream;
    return RunSteps(inner, request.workspace);
  });
}

Status LoadedPlan::RunOnDevice(const PlanRequest& request) const {
  const bool own_memory = request.workspace != 0 || plan_.workspace_bytes == 0;
  if (request.replay && own_memory && !has_externs_ && !request.on_host)
    return RunReplayed(request);
  if (request.workspace != 0 || plan_.workspace_bytes == 0)
    return RunSteps(request, request.workspace);
  const DriverFunctions& cu = driver().cu();
  if (cu.memory.allocate_async == nullptr || cu.memory.free_async == nullptr)
    return Fail(ErrorCode::kUnsupported, "this driver has no memory pool", "",
                "pass a workspace, or update the driver");
  cuda::DevicePointer workspace = 0;
  ATUNNER_RETURN_IF_ERROR(
      driver().Check(cu.memory.allocate_async(&workspace, plan_.workspace_bytes, request.stream),
                     "take " + std::to_string(plan_.workspace_bytes) +
                         " bytes of workspace from the driver's pool"));
  const Status ran = RunSteps(request, workspace);
  const Status freed = driver().Check(cu.memory.free_async(workspace, request.stream),
                                      "give the workspace back");
  return ran ? freed : ran;
}

Status LoadedPlan::Upload(size_t buffer, uint64_t device, const void* host) const {
  const PlanBuffer& tensor = plan_.buffers[buffer];
  return driver().Check(driver().cu().memory.upload(device, host, tensor.Bytes()),
                        "copy '" + tensor.name + "' to the GPU");
}

Status LoadedPlan::Download(size_t buffer, uint64_t device, void* host) const {
  const PlanBuffer& tensor = plan_.buffers[buffer];
  return driver().Check(driver().cu().memory.download(host, device, tensor.Bytes()),
                        "copy '" + tensor.name + "' from the GPU");
}

Status LoadedPlan::Wait(cuda::Stream stream) const {
  return driver().Check(driver().cu().memory.synchronize(stream), "wait for the GPU");
}

bool LoadedPlan::Changes(size_t buffer) const {
  return std::ranges::any_of(plan_.steps, [&](const PlanStep& step) {
    return std::ranges::find(step.writes, buffer, &PlanTensor::buffer) != step.writes.end();
  });
}

/// Inputs and outputs get device memory for this run.
Status LoadedPlan::RunOnHost(const PlanRequest& request) const {
  std::vector<uint64_t> devices;  // offsets first
  uint64_t bytes = 0;
  for (const auto* side : {&inputs_, &outputs_}) {
    for (const size_t buffer : *side) {
      devices.push_back(bytes);
      bytes += PlanAligned(plan_.buffers[buffer].Bytes());
    }
  }
  ATUNNER_TRY(const DeviceMemory memory, DeviceMemory::Allocate(context_, bytes));
  for (uint64_t& device : devices) device += memory.address();
  PlanRequest inner = request;
  inner.inputs = std::span(devices).first(inputs_.size());
  inner.outputs = std::span(devices).subspan(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(Upload(inputs_[i], inner.inputs[i], OnHost(request.inputs[i])));
  ATUNNER_RETURN_IF_ERROR(Wait(nullptr));
  const Status ran = RunOnDevice(inner);
  ATUNNER_RETURN_IF_ERROR(Wait(request.stream));  // the memory is freed, whatever happened
  ATUNNER_RETURN_IF_ERROR(ran);
  for (size_t i = 0; i < outputs_.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(Download(outputs_[i], inner.outputs[i], OnHost(request.outputs[i])));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (Changes(inputs_[i]))
      ATUNNER_RETURN_IF_ERROR(Download(inputs_[i], inner.inputs[i], OnHost(request.inputs[i])));
  }
  return {};
}

LoadedPlan::Addresses LoadedPlan::AddressesOf(const PlanRequest& request,
                                              cuda::DevicePointer workspace) const {
  Addresses addresses(plan_.buffers.size(), 0);
  for (size_t i = 0; i < inputs_.size(); ++i) addresses[inputs_[i]] = request.inputs[i];
  for (size_t i = 0; i < outputs_.size(); ++i) addresses[outputs_[i]] = request.outputs[i];
  for (size_t i = 0; i < addresses.size(); ++i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    if (buffer.kind == Kind::kWeight) addresses[i] = weights_.address() + buffer.offset;
    if (buffer.kind == Kind::kIntermediate) addresses[i] = workspace + buffer.offset;
  }
  return addresses;
}

Status LoadedPlan::RunSteps(const PlanRequest& request, cuda::DevicePointer workspace) const {
  const Addresses addresses = AddressesOf(request, workspace);
  for (size_t i = 0; i < steps_.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(RunStep(i, request, addresses, workspace));
  return {};
}

Status LoadedPlan::RunStep(size_t step, const PlanRequest& request, const Addresses& addresses,
                           cuda::DevicePointer workspace) const {
  switch (plan_.steps[step].kind) {
    case PlanStep::Kind::kLaunch:
      return Launch(step, request, addresses, workspace);
    case PlanStep::Kind::kCopy:
      return Copy(plan_.steps[step], request, addresses);
    case PlanStep::Kind::kExtern:
      return request.on_host ? CallExternOnHost(step, request, addresses)
                             : CallExtern(step, request, addresses);
  }
  return {};
}

Status LoadedPlan::Launch(size_t step, const PlanRequest& request, const Addresses& addresses,
                          cuda::DevicePointer workspace) const {
  const Step& bound = steps_[step];
  std::vector<cuda::DevicePointer> tensors;
  for (const size_t buffer : bound.tensors) tensors.push_back(addresses[buffer]);
  LaunchRequest launch{request.stream, tensors, 0, bound.scratch_bytes};
  if (bound.scratch_bytes > 0) launch.workspace = workspace + bound.scratch;
  return kernels_[plan_.steps[step].kernel]->Launch(launch);
}

Status LoadedPlan::Copy(const PlanStep& step, const PlanRequest& request,
                        const Addresses& addresses) const {
  const PlanBuffer& from = plan_.buffers[step.reads[0].buffer];
  return driver().Check(
      driver().cu().copy_within(addresses[step.writes[0].buffer], addresses[step.reads[0].buffer],
                                from.Bytes(), request.stream),
      "copy '" + from.name + "'");
}

Status LoadedPlan::CallExtern(size_t step, const PlanRequest& request,
                              const Addresses& addresses) const {
  Addresses inputs, outputs;
  for (const PlanTensor& tensor : plan_.steps[step].reads)
    inputs.push_back(addresses[tensor.buffer]);
  for (const PlanTensor& tensor : plan_.steps[step].writes)
    outputs.push_back(addresses[tensor.buffer]);
  return request.run_extern({step, inputs, outputs, request.stream, false});
}

/// The operator gets copies in the host's memory.
Status LoadedPlan::CallExternOnHost(size_t step, const PlanRequest& request,
                                    const Addresses& addresses) const {
  ATUNNER_RETURN_IF_ERROR(Wait(request.stream));
  std::vector<std::vector<std::max_align_t>> copies;
  const auto host = [&](const PlanTensor& tensor) {
    const uint64_t bytes = plan_.buffers[tensor.buffer].Bytes();
    return copies.emplace_back(bytes / sizeof(std::max_align_t) + 1).data();
  };
  Addresses inputs, outputs;
  for (const PlanTensor& tensor : plan_.steps[step].reads) {
    void* const copy = host(tensor);
    inputs.push_back(reinterpret_cast<uintptr_t>(copy));
    ATUNNER_RETURN_IF_ERROR(Download(tensor.buffer, addresses[tensor.buffer], copy));
  }
  for (const PlanTensor& tensor : plan_.steps[step].writes)
    outputs.push_back(reinterpret_cast<uintptr_t>(host(tensor)));
  ATUNNER_RETURN_IF_ERROR(request.run_extern({step, inputs, outputs, request.stream, true}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t buffer = plan_.steps[step].writes[i].buffer;
    ATUNNER_RETURN_IF_ERROR(Upload(buffer, addresses[buffer], OnHost(outputs[i])));
  }
  return Wait(nullptr);
}

}  // namespace atunner::loader
