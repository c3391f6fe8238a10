#include "atunner/model/schedule/joined_kernel.h"

#include <fmt/format.h>

#include <regex>
#include <sstream>
#include <utility>

#include "atunner/model/kernel/substitution.h"

namespace atunner {
namespace {

/// With `waits` each kernel waits for the launch before it: first of all, where it does not say
/// when.
std::set<std::string> KernelsOf(std::string& source, bool waits) {
  static const std::regex kernel(
      R"(extern "C" __global__ void\s+(?:__launch_bounds__\([^()]*\)\s+)?(\w+)\()");
  std::set<std::string> names;
  std::smatch found;
  const auto from = [&](size_t at) { return source.cbegin() + static_cast<ptrdiff_t>(at); };
  for (size_t at = 0; std::regex_search(from(at), source.cend(), found, kernel);) {
    names.insert(found[1].str());
    const size_t signature = at + static_cast<size_t>(found.position());
    at = source.find('{', signature);
    const bool later = source.substr(at, source.find("\n}\n", at) - at)
                           .contains("await_launch_before()");
    // A signature of which the preprocessor takes a part has no one place to begin at.
    ATUNNER_CHECK(!waits || later || !source.substr(signature, at - signature).contains("\n#"));
    const char* const wait = later ? "" : "\\ngriddepcontrol.wait;";
    if (waits)
      source.insert(
          at + 1,
          fmt::format("\n  asm volatile(\"griddepcontrol.launch_dependents;{}\" ::: \"memory\");",
                      wait));
  }
  return names;
}

}  // namespace

std::string JoinedKernel::WithoutIncludes(const std::string& source) {
  std::string text;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include"))
      includes_.insert(line);
    else
      text += line + "\n";
  }
  return text;
}

/// Blocks of a stage that moves so many bytes gain nothing by starting some us early, and each of
/// them pays for its wait: 824 MB written by 200 000 blocks took 247 us in place of 191 on an H200.
bool JoinedKernel::StartsEarly(const KernelSpec& task) const {
  constexpr double kLarge = 128e6;
  return early_ && MinimumBytes(task, task.dims).value_or(0) < kLarge;
}

/// Every stage's source is in a namespace of its own, since helpers are written for constants in
/// front of them.
Status JoinedKernel::Add(RenderedKernel kernel, const KernelSpec& task,
                         const std::map<std::string, std::string>& names, const Meanings& sizes) {
  const std::string stage = fmt::format("stage{}", ++stages_);
  // Whatever namespace they are in, kernels need names that no other stage has, also those that are
  // not launched.
  const bool early = StartsEarly(task);
  std::string before, behind;
  for (const std::string& entry : EntriesOf(kernel.plan))
    behind += fmt::format("using {}::{};\n", stage, entry);
  for (const std::string& entry : KernelsOf(kernel.source.text, early)) {
    before += fmt::format("#define {1} {0}_{1}\n", stage, entry);
    behind += fmt::format("#undef {}\n", entry);
  }
  for (const ArgSpec& arg : task.args) {
    const std::string& known = names.at(arg.name);
    if (arg.role == Role::kOutput && !IsArgument(known)) {
      std::string bytes = std::to_string(SizeOf(arg.dtype));
      for (const Expr& extent : arg.shape) bytes += " * (" + extent.text() + ")";
      all_.plan.workspaces.push_back({known, Expr::MustParse(bytes)});
      ATUNNER_RETURN_IF_ERROR(Substitute(all_.plan.workspaces.back().bytes, sizes));
    }
    if (!early_ || !IsArgument(known) || whole_.FindArg(known)->role != Role::kInput) continue;
    before += fmt::format("#define IS_GIVEN_{}\n", arg.name);
    behind += fmt::format("#undef IS_GIVEN_{}\n", arg.name);
  }
  text_ += fmt::format("\n{}namespace {} {{\n{}}}\n{}", before, stage,
                       WithoutIncludes(kernel.source.text), behind);
  return AddPlan(std::move(kernel.plan), early, stage + "_", sizes, names);
}

Status JoinedKernel::AddPlan(LaunchPlan plan, bool early, const std::string& prefix,
                             const Meanings& sizes,
                             const std::map<std::string, std::string>& names) {
  using Kind = ArgBinding::Kind;
  ATUNNER_RETURN_IF_ERROR(Substitute(plan, sizes));
  for (const Workspace& workspace : plan.workspaces)
    all_.plan.workspaces.push_back({prefix + workspace.name, workspace.bytes});
  for (LaunchStep& step : plan.steps) {
    for (ArgBinding& arg : step.args) {
      if (InWorkspace(arg.kind)) {
        arg.name = prefix + arg.name;
      } else if (arg.kind != Kind::kScalar) {
        arg.name = names.at(arg.name);
        if (!IsArgument(arg.name))
          arg.kind = IsMap(arg.kind) ? Kind::kWorkspaceMap : Kind::kWorkspace;
      }
    }
    step.entry = prefix + step.entry;
    step.programmatic = early && !step.cooperative && !all_.plan.steps.empty();
    all_.plan.steps.push_back(std::move(step));
  }
  return {};
}

RenderedKernel JoinedKernel::Finish() && {
  all_.source.name = whole_.name + ".cu";
  all_.source.text = fmt::format(
      "// {} in {} parts that follow each other, scheduled by atunner.\n", whole_.name, stages_);
  for (const std::string& include : includes_) all_.source.text += include + "\n";
  if (early_) all_.source.text += "#define STARTS_EARLY\n";
  all_.source.text += text_;
  return std::move(all_);
}

}  // namespace atunner
