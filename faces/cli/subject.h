// One kernel on the virtual GPU, ready to launch: what `sanitize` and `counts` share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/verify/task_buffers.h"
#include "atunner/vgpu/virtual_gpu.h"
#include "faces/cli/cli.h"

namespace atunner::cli {

struct Subject {
  std::string name;
  std::string configuration;  ///< "tile=16, unroll=4"; "" when there is nothing to choose
  KernelSpec spec;
  CandidateKernel candidate;
  std::string source_name;  ///< as reports name its file
  std::string source;
  Path folder;  ///< that the file stands in
};

/// A message of the compiler is an error of the user's.
Result<Subject> LoadSubject(const SubjectFlags& flags, const Target& target, Compiler& compiler,
                            const Common& common);

/// The GPU that flags name: that of the machine or, for `auto` without one, A100. It is never
/// executed on.
Result<Target> TargetOf(const SubjectFlags& flags);

/// Memory with the inputs drawn and all else undefined.
class SubjectOnDevice {
 public:
  static Result<std::unique_ptr<SubjectOnDevice>> Make(const Subject& subject, const Target& target,
                                                       Compiler& compiler);
  vgpu::VirtualGpu& gpu() { return gpu_; }
  LoadedModule& module() { return *module_; }
  const std::vector<BoundStep>& steps() const { return plan_->steps; }

 private:
  explicit SubjectOnDevice(const DeviceProfile& profile) : gpu_(profile) { gpu_.TrackMemory(); }
  Status Fill(const Subject& subject, Compiler& compiler);

  vgpu::VirtualGpu gpu_;
  std::unique_ptr<LoadedModule> module_;
  std::optional<TaskBuffers> buffers_;
  std::optional<BoundPlan> plan_;
};

/// Lines of the source by number; those of headers are read when asked for.
class SourceLines {
 public:
  /// `name`: as reports name the file of `text`; files that it includes are looked for in `folder`
  /// too.
  SourceLines(const std::string& name, const std::string& text, Path folder);
  explicit SourceLines(const Subject& subject)
      : SourceLines(subject.source_name, subject.source, subject.folder) {}
  /// As a person names the file: compilers put the working directory in front of the source's name.
  static std::string Short(const std::string& file);
  /// Without the blanks around it; "" when the file is not to be had.
  std::string At(const std::string& file, uint32_t line);

 private:
  void Add(const std::string& name, const std::string& text);

  Path folder_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace atunner::cli
