#include "faces/cli/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "atunner/base/closest_name.h"
#include "atunner/base/files.h"
#include "atunner/codegen/template/family.h"
#include "atunner/device/real_device.h"

namespace atunner::cli {
namespace {

constexpr uint64_t kSeed = 1;

Status SetParameter(const ParameterSpace& space, const std::string& setting,
                    Configuration& configuration) {
  const size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  const int at = space.Find(name);
  if (at < 0 || equals == std::string::npos) {
    const std::string near = ClosestName(name, space.Names());
    return Invalid(
        "'" + setting + "' sets no parameter of this kernel", "--config",
        near.empty() ? "write name=value, with commas between" : "did you mean '" + near + "'?");
  }
  const std::vector<Value>& values = space.parameters[static_cast<size_t>(at)].values;
  const auto value = std::ranges::find_if(
      values, [&](const Value& v) { return ToString(v) == setting.substr(equals + 1); });
  if (value == values.end()) {
    std::string listed;
    for (const Value& v : values) listed += (listed.empty() ? "" : ", ") + ToString(v);
    return Invalid("'" + setting.substr(equals + 1) + "' is no value of '" + name + "'", "--config",
                   "use " + listed);
  }
  configuration.values[static_cast<size_t>(at)] = *value;
  return {};
}

Result<Configuration> ConfigurationOf(const ScheduleTemplate& schedule, const std::string& text) {
  Configuration configuration = schedule.Default();
  std::istringstream settings(text);
  for (std::string setting; std::getline(settings, setting, ',');)
    ATUNNER_RETURN_IF_ERROR(SetParameter(schedule.space(), setting, configuration));
  ATUNNER_TRY(const bool allowed, schedule.space().Allows(configuration, schedule.spec().dims));
  if (!allowed) return Invalid("the constraints rule this configuration out", "--config " + text);
  return configuration;
}

Result<Subject> FromTemplate(const ScheduleTemplate& schedule, const SubjectFlags& flags,
                             const Target& target, Compiler& compiler) {
  Subject subject;
  subject.spec = schedule.spec();
  subject.name = subject.spec.name;
  ATUNNER_TRY(const Configuration configuration, ConfigurationOf(schedule, flags.config));
  subject.configuration = schedule.space().Describe(configuration);
  ATUNNER_TRY(const RenderedKernel kernel, schedule.Render(configuration));
  subject.source_name = kernel.source.name;
  subject.source = kernel.source.text;
  subject.folder = Path(flags.file).parent_path();
  subject.candidate.plan = kernel.plan;
  ATUNNER_TRY(CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), target.profile.Arch()}));
  if (!outcome.ok()) return Invalid("the kernel does not compile: " + outcome.error, flags.file);
  subject.candidate.module = *std::move(outcome.module);
  return subject;
}

Result<Subject> FromArtifact(const SubjectFlags& flags, const Target& target, Compiler& compiler) {
  Subject subject;
  ATUNNER_TRY(const Artifact artifact, LoadArtifact(flags.file));
  if (!flags.config.empty()) return Invalid("an artifact has one configuration", "--config");
  subject.name = artifact.name;
  for (const auto& [name, value] : artifact.configuration)
    subject.configuration += (subject.configuration.empty() ? "" : ", ") + name + "=" +
                             ToString(value);
  subject.spec = artifact.spec;
  subject.source_name = "kernel.cu";
  subject.source = ReadFile(Path(flags.file) / "kernel.cu").value_or("");
  subject.folder = flags.file;
  ATUNNER_TRY(subject.candidate, CandidateOf(flags.file, artifact, target, compiler));
  return subject;
}

}  // namespace

Result<Target> TargetOf(const SubjectFlags& flags) {
  std::string name = flags.target;
  if (name == "auto" && !ListRealDevices()) {
    name = "A100";
    if (IsFolder(flags.file)) {
      ATUNNER_TRY(const Artifact artifact, LoadArtifact(flags.file));
      name = artifact.device;
    }
  }
  return ChooseTarget(name, name != "auto");
}

Result<Subject> LoadSubject(const SubjectFlags& flags, const Target& target, Compiler& compiler,
                            const Common& common) {
  if (flags.file.empty() == flags.operation.operator_name.empty())
    return Invalid("what to run is not clear", "",
                   "name a file, or an operator by --operator and --input-shape");
  if (flags.file.empty()) {
    ATUNNER_TRY(const KernelSpec spec, SpecOf(flags.operation));
    ATUNNER_TRY(const auto schedule, MakeTemplate(spec, target.profile));
    return FromTemplate(*schedule, flags, target, compiler);
  }
  if (IsFolder(flags.file)) return FromArtifact(flags, target, compiler);
  SourceOptions options;
  options.kernel = flags.kernel;
  options.multiprocessors = target.profile.sms;
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(flags.file, options));
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, flags.file, common, false));
  return FromTemplate(*schedule, flags, target, compiler);
}

Result<std::unique_ptr<SubjectOnDevice>> SubjectOnDevice::Make(const Subject& subject,
                                                               const Target& target,
                                                               Compiler& compiler) {
  std::unique_ptr<SubjectOnDevice> made(new SubjectOnDevice(target.profile));
  ATUNNER_TRY(made->module_, made->gpu_.Load(subject.candidate.module));
  ATUNNER_RETURN_IF_ERROR(made->Fill(subject, compiler));
  return made;
}

Status SubjectOnDevice::Fill(const Subject& subject, Compiler& compiler) {
  ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(gpu_, subject.spec, subject.spec.dims, 0));
  buffers_ = std::move(buffers);
  ATUNNER_TRY(const auto kernels, JudgeKernels::Make(gpu_, compiler));
  ATUNNER_RETURN_IF_ERROR(buffers_->DrawInputs(*kernels, {InputFamily::kNormal, kSeed, false}));
  for (const TaskBuffers::Tensor& tensor : buffers_->tensors())
    gpu_.SetName(tensor.address, tensor.spec->name);
  ATUNNER_TRY(plan_, BindPlan(gpu_, subject.candidate.plan, subject.spec, *buffers_));
  for (size_t i = 0; i < plan_->workspaces.size(); ++i) {
    const Buffer& workspace = *plan_->workspaces[i];
    gpu_.SetName(workspace.address(), subject.candidate.plan.workspaces[i].name);
    gpu_.MarkUndefined(workspace.address(), workspace.bytes());
  }
  return CopySymbols(gpu_, *module_, *plan_);
}

std::string SourceLines::Short(const std::string& file) {
  const std::string here = std::filesystem::current_path().string() + "/";
  return file.starts_with(here) ? file.substr(here.size()) : file;
}

SourceLines::SourceLines(const std::string& name, const std::string& text, Path folder)
    : folder_(std::move(folder)) {
  Add(name, text);
}

/// Lines behind `#line 12 "grid.h"` are that header's.
void SourceLines::Add(const std::string& name, const std::string& text) {
  std::vector<std::string>* lines = &files_[name];
  size_t next = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    constexpr size_t kMostLines = size_t{1} << 20;
    const size_t directive = line.find("#line "), quote = line.find('"'), end = line.rfind('"');
    if (directive != std::string::npos && line.find_first_not_of(" \t") == directive) {
      next = std::min(std::strtoul(line.c_str() + directive + 6, nullptr, 10), kMostLines);
      next -= next > 0;
      if (quote != end) lines = &files_[line.substr(quote + 1, end - quote - 1)];
      continue;
    }
    if (lines->size() <= next) lines->resize(next + 1);
    (*lines)[next++] = line;
  }
}

std::string SourceLines::At(const std::string& file, uint32_t line) {
  const std::string name = Short(file);
  if (!files_.contains(name)) {
    auto text = ReadFile(name);
    if (!text) text = ReadFile(folder_ / name);
    Add(name, text.value_or(""));
  }
  const std::vector<std::string>& lines = files_[name];
  if (line == 0 || line > lines.size()) return "";
  const std::string& text = lines[line - 1];
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace atunner::cli
