#include "atunner/jobs/requests/user_sources.h"

#include <fmt/format.h>

#include "atunner/base/files.h"
#include "atunner/intake/described/kernel_toml.h"
#include "atunner/intake/described/t1.h"
#include "atunner/intake/rewrite/source_headers.h"

namespace atunner::jobs {
namespace {

constexpr size_t kLargestSource = size_t{16} << 20;
constexpr size_t kLargestData = size_t{64} << 30;

/// Files are named relative to the one that names them; so are the headers that a source includes.
FileReader Beside(const Path& file) {
  return [folder = file.parent_path()](const std::string& name) {
    return ReadFile(folder / name, kLargestSource);
  };
}

void FindHeaders(UserKernel& kernel, const Path& file) {
  const Path folder = std::filesystem::absolute(file).parent_path();
  const auto add = [&](SourceUnit& source) {
    source.include_folders.push_back((folder / source.name).parent_path().string());
    for (std::string& option : source.options) {  // -I relative to the describing file
      if (option.starts_with("-I") && option.size() > 2 && option[2] != '/')
        option = "-I" + (folder / option.substr(2)).string();
    }
  };
  add(kernel.source);
  if (kernel.reference) add(kernel.reference->source);
  for (ArgSpec& arg : kernel.spec.args) {
    if (arg.fill.kind == Fill::Kind::kFile) arg.fill.path = (folder / arg.fill.path).string();
  }
}

/// Data files are the user's to mend before anything is compiled. Other contents are another task:
/// trials are not shared.
Status CheckFiles(UserKernel& kernel) {
  for (ArgSpec& arg : kernel.spec.args) {
    if (arg.fill.kind != Fill::Kind::kFile) continue;
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, kernel.spec, kernel.spec.dims));
    const auto bytes = ReadFile(arg.fill.path, kLargestData);
    if (!bytes) return Invalid("argument '" + arg.name + "': " + bytes.error().what, arg.fill.path);
    if (bytes->size() != static_cast<size_t>(shape.bytes)) {
      return Invalid(fmt::format("argument '{}' has {} bytes, the file {}", arg.name, shape.bytes,
                                 bytes->size()),
                     arg.fill.path, "raw little-endian elements are expected, and nothing else");
    }
    arg.fill.digest = DigestOf(*bytes).ToHex();
  }
  return {};
}

}  // namespace

Result<UserKernel> ReadUserKernel(const std::string& file, const SourceOptions& options) {
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargestSource));
  const std::string name = Path(file).filename().string();
  if (file.ends_with(".json")) return ParseT1(text, file, Beside(file));
  if (file.ends_with(".toml")) return ParseKernelToml(text, file, Beside(file));
  return ParseBareSource(WithHeaders(text, name, Beside(file)), name, options);
}

std::vector<std::string> KernelsOf(const std::string& file, const std::string& kernel) {
  const bool bare = !file.empty() && !IsFolder(file) && !file.ends_with(".json") &&
                    !file.ends_with(".toml");
  if (!bare || !kernel.empty()) return {kernel};
  const auto text = ReadFile(file, kLargestSource);
  std::vector<std::string> kernels;
  if (text) kernels = LaunchedKernels(WithHeaders(*text, Path(file).filename(), Beside(file)));
  return kernels.size() > 1 ? kernels : std::vector<std::string>{kernel};
}

Result<std::unique_ptr<ScheduleTemplate>> TemplateOf(UserKernel& kernel, const std::string& file,
                                                     const EventSink& events, bool verified) {
  FindHeaders(kernel, file);
  ATUNNER_RETURN_IF_ERROR(CheckFiles(kernel));
  ATUNNER_TRY(auto schedule, MakeUserTemplate(kernel, verified));
  for (const std::string& note : kernel.notes) events(NoteEvent{note});
  return schedule;
}

}  // namespace atunner::jobs
