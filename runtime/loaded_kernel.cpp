#include "runtime/loaded_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace atunner::loader {
namespace {

/// Larger clusters are "non-portable" and must be allowed per kernel.
constexpr uint64_t kPortableCluster = 8;

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> LoadedKernel::Make(std::shared_ptr<const ModuleOwner> module,
                                                         const Artifact& artifact, const Dims& dims,
                                                         Choice choice) {
  std::unique_ptr<LoadedKernel> kernel(new LoadedKernel(std::move(module)));
  kernel->choice_ = std::move(choice);
  const ContextScope scope(kernel->module_->context());
  ATUNNER_RETURN_IF_ERROR(scope.status());
  ATUNNER_RETURN_IF_ERROR(kernel->AddArguments(artifact, dims));
  ATUNNER_TRY(const ConcretePlan plan, Resolve(artifact.plan, dims, artifact.spec.attributes));
  std::map<std::string, uint64_t> offsets;
  for (const ConcreteWorkspace& workspace : plan.workspaces) {
    offsets[workspace.name] = kernel->workspace_bytes_;
    kernel->workspace_bytes_ += RoundUp(workspace.bytes, kWorkspaceAlignment);
  }
  ATUNNER_RETURN_IF_ERROR(kernel->AddSymbols(plan));
  for (const ConcreteStep& step : plan.steps)
    ATUNNER_RETURN_IF_ERROR(kernel->AddStep(artifact, step, offsets));
  return kernel;
}

Status LoadedKernel::AddArguments(const Artifact& artifact, const Dims& dims) {
  for (const ArgSpec& spec : artifact.spec.args) {
    if (spec.role == Role::kScalar) continue;
    ATUNNER_TRY(TensorShape shape, ShapeOf(spec, artifact.spec, dims));
    arguments_.push_back(
        {spec.name, spec.role, spec.dtype, std::string(Name(spec.dtype)), std::move(shape)});
  }
  return {};
}

Result<size_t> LoadedKernel::TensorIndex(const std::string& name) const {
  const auto at = std::ranges::find(arguments_, name, &Argument::name);
  if (at == arguments_.end())
    return Invalid("the launch plan names the unknown argument '" + name + "'");
  return static_cast<size_t>(at - arguments_.begin());
}

Status LoadedKernel::AddSymbols(const ConcretePlan& plan) {
  for (const SymbolCopy& copy : plan.symbols) {
    ATUNNER_TRY(const size_t tensor, TensorIndex(copy.tensor));
    cuda::DevicePointer address = 0;
    size_t bytes = 0;
    ATUNNER_RETURN_IF_ERROR(driver().Check(
        driver().cu().global(&address, &bytes, module_->handle(), copy.symbol.c_str()),
        "find the symbol '" + copy.symbol + "'"));
    if (bytes < static_cast<uint64_t>(arguments_[tensor].shape.bytes)) {
      return Invalid("the symbol '" + copy.symbol + "' holds " + std::to_string(bytes) +
                     " bytes, argument '" + copy.tensor + "' has " +
                     std::to_string(arguments_[tensor].shape.bytes));
    }
    copies_.push_back({address, tensor});
  }
  return {};
}

Status LoadedKernel::AddStep(const Artifact& artifact, const ConcreteStep& concrete,
                             const std::map<std::string, uint64_t>& offsets) {
  Step& step = steps_.emplace_back(
      Step{concrete.entry,
           nullptr,
           concrete.grid,
           concrete.block,
           concrete.cluster,
           concrete.shared_bytes,
           concrete.cooperative,
           concrete.programmatic && driver().cu().launch_extended != nullptr,
           {}});
  for (const ConcreteArg& arg : concrete.args)
    ATUNNER_RETURN_IF_ERROR(AddParameter(step, arg, offsets));
  const auto resources = std::ranges::find(artifact.resources, concrete.entry,
                                           &KernelResources::entry);
  const std::string& symbol = resources->mangled.empty() ? resources->entry : resources->mangled;
  ATUNNER_RETURN_IF_ERROR(
      driver().Check(driver().cu().function(&step.function, module_->handle(), symbol.c_str()),
                     "find the kernel '" + symbol + "'"));
  return Prepare(step);
}

Status LoadedKernel::AddParameter(Step& step, const ConcreteArg& arg,
                                  const std::map<std::string, uint64_t>& offsets) const {
  if (IsTexture(arg.kind))
    return Fail(
        ErrorCode::kUnsupported, "'" + step.entry + "' takes a texture object", "",
        "launch the artifact's kernel by the driver: only tensors and numbers are passed here");
  if (arg.kind == ArgBinding::Kind::kBytes)
    return Fail(ErrorCode::kUnsupported,
                "'" + step.entry + "' was captured from a program, with its parameters as bytes",
                "", "`atunner apply` runs the program with it");
  Parameter& parameter = step.parameters.emplace_back(
      Parameter{arg.kind, 0, 0, arg.scalar, arg.map});
  if (IsMap(arg.kind) && driver().cu().encode_tiled == nullptr)
    return Fail(ErrorCode::kUnsupported,
                "'" + step.entry + "' needs tensor maps, which this driver lacks", "",
                "update the driver");
  if (InWorkspace(arg.kind)) {
    parameter.offset = offsets.at(arg.name);
  } else if (arg.kind != ArgBinding::Kind::kScalar) {
    ATUNNER_TRY(parameter.tensor, TensorIndex(arg.name));
  }
  return {};
}

/// Sets the attributes that a launch of this step needs.
Status LoadedKernel::Prepare(const Step& step) const {
  // Above 48 KiB, what the kernel declares included, dynamic shared memory must be asked for (CUDA
  // programming guide, "shared memory").
  if (step.shared_bytes > 0) {
    ATUNNER_RETURN_IF_ERROR(module_->AllowShared(step.function, step.shared_bytes, step.entry));
  }
  if (step.cluster.Count() <= 1 && !step.cooperative) return {};
  if (driver().cu().launch_extended == nullptr)
    return Fail(
        ErrorCode::kUnsupported,
        "'" + step.entry + "' needs clusters or a cooperative launch, which this driver lacks", "",
        "update the driver");
  if (step.cluster.Count() > kPortableCluster) {
    ATUNNER_RETURN_IF_ERROR(
        driver().Check(driver().cu().set_function(step.function, cuda::kFuncNonPortableCluster, 1),
                       "allow clusters of that size"));
  }
  return {};
}

Status LoadedKernel::CheckRequest(const LaunchRequest& request) const {
  if (request.tensors.size() != arguments_.size()) {
    return Invalid("the kernel takes " + std::to_string(arguments_.size()) + " tensors, " +
                   std::to_string(request.tensors.size()) + " are given");
  }
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (request.tensors[i] == 0) return Invalid("argument '" + arguments_[i].name + "' is null");
    if (request.tensors[i] % kTensorAlignment != 0) {
      return Invalid("argument '" + arguments_[i].name + "' is not aligned to " +
                         std::to_string(kTensorAlignment) + " bytes",
                     "", "copy the tensor to memory of its own");
    }
  }
  return CheckWorkspace(request);
}

Status LoadedKernel::CheckWorkspace(const LaunchRequest& request) const {
  if (request.workspace == 0) return {};
  if (request.workspace_bytes < workspace_bytes_) {
    return Invalid("the workspace has " + std::to_string(request.workspace_bytes) + " bytes, " +
                   std::to_string(workspace_bytes_) + " are needed");
  }
  if (request.workspace % kWorkspaceAlignment != 0)
    return Invalid("the workspace is not aligned to " + std::to_string(kWorkspaceAlignment) +
                   " bytes");
  return {};
}

Status LoadedKernel::CopySymbols(const LaunchRequest& request) const {
  for (const Copy& copy : copies_) {
    const auto bytes = static_cast<size_t>(arguments_[copy.tensor].shape.bytes);
    ATUNNER_RETURN_IF_ERROR(driver().Check(
        driver().cu().copy_within(copy.symbol, request.tensors[copy.tensor], bytes, request.stream),
        "copy '" + arguments_[copy.tensor].name + "' to its symbol"));
  }
  return {};
}

Status LoadedKernel::Fill(TensorMap& bytes, const Parameter& parameter,
                          const LaunchRequest& request, cuda::DevicePointer workspace) const {
  if (parameter.kind == ArgBinding::Kind::kScalar) {
    std::memcpy(bytes.bytes.data(), parameter.scalar.bytes.data(), parameter.scalar.bytes.size());
    return {};
  }
  const cuda::DevicePointer address = InWorkspace(parameter.kind)
                                          ? workspace + parameter.offset
                                          : request.tensors[parameter.tensor];
  if (!IsMap(parameter.kind)) {
    std::memcpy(bytes.bytes.data(), &address, sizeof address);
    return {};
  }
  TensorMapSpec spec = parameter.map;
  spec.address = address;
  return driver().Check(Encode(driver().cu().encode_tiled, spec, bytes), "encode a tensor map");
}

Status LoadedKernel::LaunchStep(const Step& step, const LaunchRequest& request,
                                cuda::DevicePointer workspace) const {
  std::vector<TensorMap> values(step.parameters.size());  // the largest that a parameter can be
  std::vector<void*> pointers(step.parameters.size());
  for (size_t i = 0; i < step.parameters.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(Fill(values[i], step.parameters[i], request, workspace));
    pointers[i] = values[i].bytes.data();
  }
  return driver().Check(Enqueue(step, request.stream, pointers.data()),
                        "launch '" + step.entry + "'");
}

cuda::Result LoadedKernel::Enqueue(const Step& step, cuda::Stream stream, void** pointers) const {
  const DriverFunctions& cu = driver().cu();
  cuda::LaunchAttributes attributes(step.cooperative, step.programmatic);
  if (step.cluster.Count() > 1)
    attributes.SetCluster(step.cluster.x, step.cluster.y, step.cluster.z);
  if (attributes.count == 0)
    return cu.launch(step.function, step.grid.x, step.grid.y, step.grid.z, step.block.x,
                     step.block.y, step.block.z, step.shared_bytes, stream, pointers, nullptr);
  const cuda::LaunchConfig config{
      step.grid.x,  step.grid.y,       step.grid.z, step.block.x,           step.block.y,
      step.block.z, step.shared_bytes, stream,      attributes.list.data(), attributes.count};
  return cu.launch_extended(&config, step.function, pointers, nullptr);
}

Status LoadedKernel::AllocateWorkspace(cuda::Stream stream, cuda::DevicePointer& workspace) const {
  if (driver().cu().memory.allocate_async == nullptr || driver().cu().memory.free_async == nullptr)
    return Fail(ErrorCode::kUnsupported, "this driver has no memory pool", "",
                "pass a workspace, or update the driver");
  return driver().Check(driver().cu().memory.allocate_async(&workspace, workspace_bytes_, stream),
                        "take " + std::to_string(workspace_bytes_) +
                            " bytes of scratch memory from the driver's pool");
}

Status LoadedKernel::Launch(const LaunchRequest& request) const {
  ATUNNER_RETURN_IF_ERROR(CheckRequest(request));
  const ContextScope scope(module_->context());
  ATUNNER_RETURN_IF_ERROR(scope.status());
  cuda::DevicePointer workspace = request.workspace;
  const bool pooled = workspace_bytes_ > 0 && workspace == 0;
  if (pooled) ATUNNER_RETURN_IF_ERROR(AllocateWorkspace(request.stream, workspace));
  Status launched = CopySymbols(request);
  for (const Step& step : steps_) {
    if (launched) launched = LaunchStep(step, request, workspace);
  }
  if (pooled) {
    const Status freed = driver().Check(driver().cu().memory.free_async(workspace, request.stream),
                                        "give the scratch memory back");
    if (launched && !freed) return freed;
  }
  return launched;
}

}  // namespace atunner::loader
