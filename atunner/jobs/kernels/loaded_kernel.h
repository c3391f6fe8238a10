// One kernel, compiled and ready to launch on the virtual GPU: what `sanitize` and `counts` share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/verify/launch/task_buffers.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::jobs {

struct LoadedKernel {
  std::string name;
  std::string configuration;  ///< "tile=16, unroll=4"; "" when there is nothing to choose
  KernelSpec spec;
  CandidateKernel candidate;
  RenderedKernel rendered;  ///< as it was compiled
  std::string source_name;  ///< what hazards call the source's file
  std::string source;
  Path folder;  ///< of that file
};

/// The kernel of a request, compiled for `target`. kInvalidInput where the request names no kernel
/// or where the compiler refuses it.
Result<LoadedKernel> LoadKernel(const KernelRequest& request, const Target& target,
                                Compiler& compiler, const EventSink& events);

/// One configuration of a schedule, "tile=16,unroll=4", compiled for `target`.
Result<LoadedKernel> LoadKernel(const ScheduleTemplate& schedule, const std::string& configuration,
                                const Target& target, Compiler& compiler);

/// The GPU that a request names. Nothing is executed on it.
Result<Target> TargetOf(const KernelRequest& request, Devices& devices);

/// The kernel on a virtual GPU: its inputs are drawn, all other memory is undefined.
class KernelOnVirtualGpu {
 public:
  static Result<std::unique_ptr<KernelOnVirtualGpu>> Make(const LoadedKernel& kernel,
                                                          const Target& target, Compiler& compiler);
  vgpu::VirtualGpu& gpu() { return gpu_; }
  LoadedModule& module() { return *module_; }
  const std::vector<BoundStep>& steps() const { return plan_->steps; }
  const TaskBuffers& buffers() const { return *buffers_; }

 private:
  explicit KernelOnVirtualGpu(const DeviceProfile& profile) : gpu_(profile) { gpu_.TrackMemory(); }
  Status Fill(const LoadedKernel& kernel, Compiler& compiler);

  vgpu::VirtualGpu gpu_;
  std::unique_ptr<LoadedModule> module_;
  std::optional<TaskBuffers> buffers_;
  std::optional<BoundPlan> plan_;
};

}  // namespace atunner::jobs
