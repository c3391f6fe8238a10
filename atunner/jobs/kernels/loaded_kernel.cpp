#include "atunner/jobs/kernels/loaded_kernel.h"

#include "atunner/base/files.h"
#include "atunner/capture/blob_store.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/codegen/template/family.h"
#include "atunner/intake/captured/captured_kernel.h"
#include "atunner/jobs/kernels/artifact_kernel.h"
#include "atunner/jobs/kernels/proposal.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/requests/user_sources.h"

namespace atunner::jobs {
namespace {

constexpr uint64_t kSeed = 1;

/// Renders and compiles one configuration. Messages name `file`.
Result<LoadedKernel> FromTemplate(const ScheduleTemplate& schedule, const std::string& settings,
                                  const Path& file, const Target& target, Compiler& compiler) {
  LoadedKernel loaded;
  loaded.spec = schedule.spec();
  loaded.name = loaded.spec.name;
  ATUNNER_TRY(const Configuration configuration, ConfigurationOf(schedule, settings));
  loaded.configuration = schedule.space().Describe(configuration);
  ATUNNER_TRY(const RenderedKernel kernel, schedule.Render(configuration));
  loaded.source_name = kernel.source.name;
  loaded.source = kernel.source.text;
  loaded.folder = file.parent_path();
  loaded.candidate.plan = kernel.plan;
  loaded.rendered = kernel;
  ATUNNER_TRY(CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), target.profile.Arch()}));
  if (!outcome.ok()) return Invalid("the kernel does not compile: " + outcome.error, file.string());
  loaded.candidate.module = *std::move(outcome.module);
  return loaded;
}

Result<LoadedKernel> FromArtifact(const KernelRequest& request, const Target& target,
                                  Compiler& compiler) {
  LoadedKernel loaded;
  ATUNNER_TRY(const Artifact artifact, LoadArtifact(request.file));
  if (!request.configuration.empty())
    return Invalid("an artifact has one configuration", "request.configuration");
  loaded.name = artifact.name;
  for (const auto& [name, value] : artifact.configuration)
    loaded.configuration += (loaded.configuration.empty() ? "" : ", ") + name + "=" +
                            ToString(value);
  loaded.spec = artifact.spec;
  loaded.source_name = "kernel.cu";
  loaded.source = ReadFile(request.file / "kernel.cu").value_or("");
  loaded.folder = request.file;
  ATUNNER_TRY(loaded.candidate, CandidateOf(request.file, artifact, target, compiler));
  loaded.rendered.source.text = loaded.source;
  loaded.rendered.plan = artifact.plan;
  return loaded;
}

/// The first launch that was recorded with its memory, of the kernel that the request names a part
/// of; of any kernel without a name.
Result<LoadedKernel> FromCapture(const KernelRequest& request, const Target& target,
                                 Compiler& compiler) {
  ATUNNER_TRY(const capture::Capture captured, capture::ReadCapture(request.file));
  for (size_t kernel = 0; kernel < captured.kernels.size(); ++kernel) {
    if (!captured.kernels[kernel].readable.contains(request.kernel)) continue;
    const auto launches = captured.RepeatableLaunches(kernel);
    if (launches.empty()) continue;
    ATUNNER_TRY(UserKernel user,
                KernelOfLaunch(captured, *launches.front(), capture::BlobsOf(request.file)));
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(user, false));
    return FromTemplate(*schedule, request.configuration, request.file, target, compiler);
  }
  return Invalid("no launch of such a kernel was recorded with its memory", "request.kernel",
                 "`atunner show` lists the kernels of a capture");
}

}  // namespace

Result<Target> TargetOf(const KernelRequest& request, Devices& devices) {
  std::string name = request.gpu;
  if (name == "auto" && !devices.HasGpu()) {
    name = "A100";
    if (IsFolder(request.file) && !capture::IsCapture(request.file)) {
      ATUNNER_TRY(const Artifact artifact, LoadArtifact(request.file));
      name = artifact.device;
    }
  }
  return devices.Choose({name, name != "auto"});
}

Result<LoadedKernel> LoadKernel(const KernelRequest& request, const Target& target,
                                Compiler& compiler, const EventSink& events) {
  if (request.file.empty() != request.task.has_value())
    return Invalid("what to run is not clear", "",
                   "name a file, or an operator by request.operator and request.shapes");
  if (request.task) {
    ATUNNER_TRY(const KernelSpec spec, SpecOf(*request.task));
    ATUNNER_TRY(const auto schedule, MakeTemplate(spec, target.profile));
    return FromTemplate(*schedule, request.configuration, request.file, target, compiler);
  }
  if (capture::IsCapture(request.file)) return FromCapture(request, target, compiler);
  if (IsFolder(request.file)) return FromArtifact(request, target, compiler);
  SourceOptions options;
  options.kernel = request.kernel;
  options.multiprocessors = target.profile.sms;
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(request.file.string(), options));
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, request.file.string(), events, false));
  return FromTemplate(*schedule, request.configuration, request.file, target, compiler);
}

Result<LoadedKernel> LoadKernel(const ScheduleTemplate& schedule, const std::string& configuration,
                                const Target& target, Compiler& compiler) {
  return FromTemplate(schedule, configuration, {}, target, compiler);
}

Result<std::unique_ptr<KernelOnVirtualGpu>> KernelOnVirtualGpu::Make(const LoadedKernel& kernel,
                                                                     const Target& target,
                                                                     Compiler& compiler) {
  std::unique_ptr<KernelOnVirtualGpu> made(new KernelOnVirtualGpu(target.profile));
  ATUNNER_TRY(made->module_, made->gpu_.Load(kernel.candidate.module));
  ATUNNER_RETURN_IF_ERROR(made->Fill(kernel, compiler));
  return made;
}

Status KernelOnVirtualGpu::Fill(const LoadedKernel& kernel, Compiler& compiler) {
  ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(gpu_, kernel.spec, kernel.spec.dims, 0));
  buffers_ = std::move(buffers);
  ATUNNER_TRY(const auto kernels, JudgeKernels::Make(gpu_, compiler));
  ATUNNER_RETURN_IF_ERROR(buffers_->DrawInputs(*kernels, {InputFamily::kNormal, kSeed, false}));
  for (const TaskBuffers::Tensor& tensor : buffers_->tensors())
    gpu_.SetName(tensor.address, tensor.spec->name);
  ATUNNER_TRY(plan_, BindPlan(gpu_, kernel.candidate.plan, kernel.spec, *buffers_));
  for (size_t i = 0; i < plan_->workspaces.size(); ++i) {
    const Buffer& workspace = *plan_->workspaces[i];
    gpu_.SetName(workspace.address(), kernel.candidate.plan.workspaces[i].name);
    gpu_.MarkContents(workspace.address(), workspace.bytes(), false);
  }
  return CopySymbols(gpu_, *module_, *plan_);
}

}  // namespace atunner::jobs
