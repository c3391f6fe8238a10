// One artifact at one problem size on one device, ready to launch: every expression evaluated,
// every function looked up.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/artifact/artifact.h"
#include "runtime/cuda_driver.h"
#include "runtime/match.h"

namespace atunner::loader {

/// Every tensor must start at a multiple of this many bytes (ATUNNER_ALIGNMENT of atunner.h): the
/// judge's did, and kernels load up to 16 bytes at once.
constexpr uint64_t kTensorAlignment = 16;
/// The alignment that cuMemAlloc guarantees, and to which workspaces are aligned.
constexpr uint64_t kWorkspaceAlignment = 256;

/// A tensor the caller passes.
struct Argument {
  std::string name;
  Role role = Role::kInput;
  DType dtype = DType::kFloat32;
  std::string dtype_text;
  TensorShape shape;
};

struct LaunchRequest {
  cuda::Stream stream = nullptr;
  std::span<const cuda::DevicePointer> tensors;  ///< in the order of arguments()
  cuda::DevicePointer workspace = 0;             ///< 0 = take it from the driver's pool
  uint64_t workspace_bytes = 0;
};

class LoadedKernel {
 public:
  static Result<std::unique_ptr<LoadedKernel>> Make(std::shared_ptr<const ModuleOwner> module,
                                                    const Artifact& artifact, const Dims& dims,
                                                    Choice choice);

  const Choice& choice() const { return choice_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  uint64_t workspace_bytes() const { return workspace_bytes_; }

  /// Enqueues all steps. Const and without shared state: several threads may launch at once.
  Status Launch(const LaunchRequest& request) const;

 private:
  /// A kernel parameter: a scalar, or the tensor or workspace whose address it gets.
  struct Parameter {
    ArgBinding::Kind kind = ArgBinding::Kind::kScalar;
    size_t tensor = 0;    ///< index into arguments()
    uint64_t offset = 0;  ///< offset of a workspace in the scratch memory
    ScalarBytes scalar;
    TensorMapSpec map;  ///< of a tensor map, without its address
  };
  struct Step {
    std::string entry;
    cuda::Function function = nullptr;
    Dim3 grid, block, cluster;
    uint32_t shared_bytes = 0;
    bool cooperative = false;
    bool programmatic = false;
    std::vector<Parameter> parameters;
  };
  struct Copy {
    cuda::DevicePointer symbol = 0;
    size_t tensor = 0;
  };

  explicit LoadedKernel(std::shared_ptr<const ModuleOwner> module) : module_(std::move(module)) {}
  const Driver& driver() const { return module_->context().driver(); }
  Status AddArguments(const Artifact& artifact, const Dims& dims);
  Status AddSymbols(const ConcretePlan& plan);
  Status AddStep(const Artifact& artifact, const ConcreteStep& step,
                 const std::map<std::string, uint64_t>& offsets);
  Status AddParameter(Step& step, const ConcreteArg& arg,
                      const std::map<std::string, uint64_t>& offsets) const;
  Status Prepare(const Step& step) const;
  Result<size_t> TensorIndex(const std::string& name) const;

  Status CheckRequest(const LaunchRequest& request) const;
  Status CheckWorkspace(const LaunchRequest& request) const;
  Status CopySymbols(const LaunchRequest& request) const;
  /// The bytes of a kernel parameter.
  Status Fill(TensorMap& bytes, const Parameter& parameter, const LaunchRequest& request,
              cuda::DevicePointer workspace) const;
  /// Takes scratch memory from the driver's pool.
  Status AllocateWorkspace(cuda::Stream stream, cuda::DevicePointer& workspace) const;
  Status LaunchStep(const Step& step, const LaunchRequest& request,
                    cuda::DevicePointer workspace) const;
  cuda::Result Enqueue(const Step& step, cuda::Stream stream, void** pointers) const;

  std::shared_ptr<const ModuleOwner> module_;
  Choice choice_;
  std::vector<Argument> arguments_;
  std::vector<Step> steps_;
  std::vector<Copy> copies_;
  uint64_t workspace_bytes_ = 0;
};

}  // namespace atunner::loader
