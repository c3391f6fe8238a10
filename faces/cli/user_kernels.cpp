// `tune` and `hardware-optimize`: kernels that users bring.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/intake/bare/bare_source.h"
#include "atunner/intake/described/kernel_toml.h"
#include "atunner/intake/described/t1.h"
#include "atunner/intake/rewrite/source_headers.h"
#include "atunner/model/json/json.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
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

void PrintNotes(const UserKernel& kernel, const Common& common) {
  if (common.quiet || common.json) return;
  for (const std::string& note : kernel.notes) fmt::print(stderr, "note: {}\n", note);
}

std::string ShapeText(const ArgSpec& arg) {
  std::string text;
  for (const Expr& extent : arg.shape) text += (text.empty() ? "" : ", ") + extent.text();
  return std::string(Name(arg.dtype)) + "[" + text + "]";
}

/// What was understood of a bare source, for people: `hardware-optimize` without --auto-tune.
int PrintUnderstood(const UserKernel& kernel, const Common& common) {
  const LaunchStep& step = kernel.plan.steps.front();
  if (common.json) {
    Json json{{"kernel", kernel.spec.name},
              {"entry", step.entry},
              {"notes", kernel.notes},
              {"space", ToJson(kernel.space)}};
    json["sizes"] = Json::object();
    for (const auto& [name, value] : kernel.spec.dims) json["sizes"][name] = value;
    json["arguments"] = Json::array();
    for (const ArgSpec& arg : kernel.spec.args)
      json["arguments"].push_back(
          {{"name", arg.name}, {"role", Name(arg.role)}, {"shape", ShapeText(arg)}});
    PrintJson(json);
    return 0;
  }
  fmt::print("kernel     {}\n", step.entry);
  for (const auto& [name, value] : kernel.spec.dims)
    fmt::print("size       {} = {}\n", name, value);
  for (const ArgSpec& arg : kernel.spec.args)
    fmt::print("argument   {} {} {}\n", arg.name, Name(arg.role), ShapeText(arg));
  fmt::print("grid       {}, {}, {}\nblock      {}, {}, {}\n", step.grid[0].text(),
             step.grid[1].text(), step.grid[2].text(), step.block[0].text(), step.block[1].text(),
             step.block[2].text());
  for (const Parameter& parameter : kernel.space.parameters) {
    std::string values;
    for (const Value& value : parameter.values)
      values += (values.empty() ? "" : ", ") + ToString(value);
    fmt::print("tunable    {} = {}{}\n", parameter.name, values,
               parameter.meaning.empty() ? "" : "  (" + parameter.meaning + ")");
  }
  for (const std::string& note : kernel.notes) fmt::print("note       {}\n", note);
  fmt::print("add --auto-tune to tune it\n");
  return 0;
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
                                                     const Common& common, bool verified) {
  FindHeaders(kernel, file);
  ATUNNER_RETURN_IF_ERROR(CheckFiles(kernel));
  ATUNNER_TRY(auto schedule, MakeUserTemplate(kernel, verified));
  PrintNotes(kernel, common);
  return schedule;
}

Result<int> TuneFile(const std::string& file, const TuneFlags& flags, const Common& common,
                     const std::string& command) {
  if (!file.ends_with(".json") && !file.ends_with(".toml")) {
    return Invalid("'" + file + "' is neither a kernel .toml nor a T1 .json", "",
                   file.ends_with(".cu")
                       ? "for a bare source: atunner hardware-optimize --source " + file
                       : "");
  }
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, {}));
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, file, common));
  ATUNNER_TRY(const Target target, ChooseTarget(flags.target, flags.force_virtual));
  return RunTuning(*schedule, target, flags, common, command);
}

Result<int> HardwareOptimize(const SourceFlags& flags, const Common& common,
                             const std::string& command) {
  ATUNNER_TRY(const Target target, ChooseTarget(flags.tune.target, flags.tune.force_virtual));
  SourceOptions options;
  options.kernel = flags.kernel;
  options.extra_tunables = flags.auto_tune;
  options.multiprocessors = target.profile.sms;
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(flags.source, options));
  if (!flags.auto_tune) return PrintUnderstood(kernel, common);
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, flags.source, common));
  return RunTuning(*schedule, target, flags.tune, common, command);
}

}  // namespace atunner::cli
