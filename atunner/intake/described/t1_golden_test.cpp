// Reads T1 files in the style of the tools that write them. Each NAME.json has the expected result
// in NAME.golden.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/base/files.h"
#include "atunner/intake/described/t1.h"

namespace atunner {
namespace {

Path Folder() { return Path(ATUNNER_SOURCE_DIR) / "atunner/intake/testdata/t1"; }

std::string FillText(const Fill& fill) {
  switch (fill.kind) {
    case Fill::Kind::kConstant:
      return fmt::format("constant {}", fill.low);
    case Fill::Kind::kUniform:
      return fmt::format("uniform {} {}", fill.low, fill.high);
    case Fill::Kind::kFile:
      return "file " + fill.path;
    case Fill::Kind::kGenerator:
      return "generator " + fill.path;
    default:
      return "other";
  }
}

std::string ArgumentText(const ArgSpec& arg) {
  std::string text = fmt::format("argument {} {} {}", arg.name, Name(arg.role), Name(arg.dtype));
  if (arg.value) return text + " = " + arg.value->text();
  return text + fmt::format("[{}] {}", arg.shape.at(0).text(), FillText(arg.fill));
}

std::string Summary(UserKernel kernel) {
  auto schedule = MakeUserTemplate(kernel);
  if (!schedule) return schedule.error().ToString() + "\n";
  const auto rendered = (*schedule)->Render((*schedule)->Default());
  if (!rendered) return rendered.error().ToString() + "\n";
  const auto plan = Resolve(rendered->plan, kernel.spec.dims, kernel.spec.attributes);
  if (!plan) return plan.error().ToString() + "\n";
  const ConcreteStep& step = plan->steps.at(0);
  std::string text = fmt::format("kernel {}\nspace {}\ndefault {}\n", step.entry,
                                 kernel.space.CartesianSize(),
                                 kernel.space.Describe(kernel.initial));
  for (const ArgSpec& arg : kernel.spec.args) text += ArgumentText(arg) + "\n";
  for (const SymbolCopy& copy : plan->symbols)
    text += fmt::format("symbol {} = {}\n", copy.symbol, copy.tensor);
  text += "passed";
  for (const ConcreteArg& arg : step.args)
    text += " " + (arg.kind == ArgBinding::Kind::kScalar
                       ? fmt::format("{}-byte scalar", arg.scalar.size)
                       : arg.name);
  text += fmt::format("\ngrid {} {} {}\nblock {} {} {}\nshared {}\n", step.grid.x, step.grid.y,
                      step.grid.z, step.block.x, step.block.y, step.block.z, step.shared_bytes);
  for (const auto& [name, value] : rendered->source.defines)
    text += "define " + name + "=" + value + "\n";
  for (const std::string& option : rendered->source.options) text += "option " + option + "\n";
  if (kernel.spec.tolerance.relative)
    text += fmt::format("relative {}\n", *kernel.spec.tolerance.relative);
  for (const std::string& note : kernel.notes) text += "note " + note + "\n";
  return text;
}

class T1Golden : public testing::TestWithParam<std::string> {};

TEST_P(T1Golden, IsReadAsItIs) {
  const Path file = Folder() / (GetParam() + ".json");
  const auto text = ReadFile(file);
  ASSERT_TRUE(text) << text.error().ToString();
  const FileReader read = [](const std::string& name) { return ReadFile(Folder() / name); };
  const auto kernel = ParseT1(*text, file.filename().string(), read);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Summary(*kernel),
            ReadFile(Folder() / (GetParam() + ".golden")).value_or("no such file"));
}

INSTANTIATE_TEST_SUITE_P(All, T1Golden, testing::Values("bat", "kernel_tuner", "ktt", "schema"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace atunner
