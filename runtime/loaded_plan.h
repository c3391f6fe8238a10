// An execution plan on one device: its kernels loaded, its weights in device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/plan/execution_plan.h"
#include "runtime/artifact_set.h"
#include "runtime/cuda_driver.h"
#include "runtime/device_memory.h"
#include "runtime/loaded_kernel.h"
#include "runtime/run_cache.h"

namespace atunner::loader {

/// A step that the framework must run. Tensors are in the order of the step's reads and writes.
struct ExternCall {
  size_t step = 0;
  std::span<const uint64_t> inputs, outputs;  ///< addresses
  cuda::Stream stream = nullptr;
  bool on_host = false;  ///< addresses are the host's
};
using RunExtern = std::function<Status(const ExternCall& call)>;

struct PlanRequest {
  cuda::Stream stream = nullptr;
  std::span<const uint64_t> inputs, outputs;  ///< addresses, in the plan's order
  cuda::DevicePointer workspace = 0;          ///< 0 = take it from the driver's pool
  uint64_t workspace_bytes = 0;
  /// Addresses are the host's: the run copies them, and has ended when it returns.
  bool on_host = false;
  RunExtern run_extern;  ///< needed by plans with externs
  /// Runs with equal addresses are recorded as CUDA graphs (RunCache). Needs a workspace, if the
  /// plan has one; has no effect on plans with externs and with `on_host`.
  bool replay = false;
};

class LoadedPlan {
 public:
  /// Loads the folder's kernels and weights on a device: `libcuda` and `device` as ArtifactSet has
  /// them. kInvalidInput for a damaged folder; kNotFound for kernels that this GPU cannot run.
  static Result<std::unique_ptr<LoadedPlan>> Load(const Path& folder, const std::string& libcuda,
                                                  int device);

  const ExecutionPlan& plan() const { return plan_; }
  const std::vector<size_t>& inputs() const { return inputs_; }    ///< indices of buffers
  const std::vector<size_t>& outputs() const { return outputs_; }  ///< indices of buffers

  /// True if a step writes the buffer.
  bool Changes(size_t buffer) const;

  /// Enqueues all steps on the stream. Several threads may run a plan at once, unless it changes
  /// its weights.
  Status Run(const PlanRequest& request) const;

 private:
  /// A step with the buffers of its kernel's tensors in the kernel's order.
  struct Step {
    std::vector<size_t> tensors;
    uint64_t scratch = 0;  ///< offset in the workspace
    uint64_t scratch_bytes = 0;
  };
  using Addresses = std::vector<uint64_t>;  ///< of all buffers

  explicit LoadedPlan(std::string libcuda) : set_(std::move(libcuda)) {}
  const Driver& driver() const { return context_->driver(); }
  Status LoadKernels(const Path& folder, int device);
  Status LoadWeights(const Path& folder);
  Result<Step> Bind(const PlanStep& step) const;
  Status BindLaunch(const PlanStep& step, const LoadedKernel& kernel, Step& bound) const;

  Status CheckRequest(const PlanRequest& request) const;
  Status CheckTensors(std::span<const uint64_t> addresses, const std::vector<size_t>& buffers,
                      bool on_host) const;
  Status RunOnDevice(const PlanRequest& request) const;
  Status RunReplayed(const PlanRequest& request) const;
  Status RunOnHost(const PlanRequest& request) const;
  Status Upload(size_t buffer, uint64_t device, const void* host) const;
  Status Download(size_t buffer, uint64_t device, void* host) const;
  Status Wait(cuda::Stream stream) const;
  Addresses AddressesOf(const PlanRequest& request, cuda::DevicePointer workspace) const;
  Status RunSteps(const PlanRequest& request, cuda::DevicePointer workspace) const;
  Status RunStep(size_t step, const PlanRequest& request, const Addresses& addresses,
                 cuda::DevicePointer workspace) const;
  Status Launch(size_t step, const PlanRequest& request, const Addresses& addresses,
                cuda::DevicePointer workspace) const;
  Status Copy(const PlanStep& step, const PlanRequest& request, const Addresses& addresses) const;
  Status CallExtern(size_t step, const PlanRequest& request, const Addresses& addresses) const;
  Status CallExternOnHost(size_t step, const PlanRequest& request,
                          const Addresses& addresses) const;

  ExecutionPlan plan_;
  ArtifactSet set_;
  std::shared_ptr<const ContextOwner> context_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
  std::vector<Step> steps_;
  std::vector<size_t> inputs_, outputs_;
  bool has_externs_ = false;
  DeviceMemory weights_;
  mutable RunCache recorded_;
};

}  // namespace atunner::loader
