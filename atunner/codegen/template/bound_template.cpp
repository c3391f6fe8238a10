#include "atunner/codegen/template/bound_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "atunner/model/value/capabilities.h"
#include "atunner/operators/operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Uses every combination of `choices`, the first parameter's values changing fastest.
template <class Use>
void ForEachOf(const Choices& choices, const Use& use) {
  if (std::ranges::any_of(choices, [](const auto& values) { return values.empty(); })) return;
  std::vector<size_t> at(choices.size(), 0);
  for (bool more = true; more;) {
    Configuration one;
    for (size_t i = 0; i < at.size(); ++i) one.values.push_back(choices[i][at[i]]);
    use(one);
    size_t digit = 0;
    while (digit < at.size() && ++at[digit] == choices[digit].size()) at[digit++] = 0;
    more = digit < at.size();
  }
}

}  // namespace

std::vector<Value> Integers(std::initializer_list<int64_t> values) {
  return {values.begin(), values.end()};
}

Argument::Argument(const std::string& word) {
  constexpr std::pair<std::string_view, DType> kScalars[] = {
      {"i32:", DType::kInt32}, {"i64:", DType::kInt64}, {"f32:", DType::kFloat32}};
  for (const auto& [prefix, type] : kScalars) {
    if (!word.starts_with(prefix)) continue;
    *this = Scalar(type, Expr::MustParse(word.substr(prefix.size())));
    return;
  }
  *this = word[0] == '@' ? Workspace(word.substr(1)) : Tensor(word);
}

void AddArguments(LaunchStep& step, const Arguments& arguments) {
  step.args.insert(step.args.end(), arguments.begin(), arguments.end());
}

LaunchStep Step(std::string entry, const std::string& blocks, const Expr& threads,
                const Arguments& arguments) {
  LaunchStep step;
  step.entry = std::move(entry);
  step.grid[0] = Expr::MustParse(blocks);
  step.block[0] = threads;
  AddArguments(step, arguments);
  return step;
}

ConstantBlock& ConstantBlock::Int(std::string_view name, int64_t value, std::string_view comment) {
  text_ += fmt::format("constexpr int {} = {};{}{}\n", name, value, comment.empty() ? "" : "  // ",
                       comment);
  return *this;
}

ConstantBlock& ConstantBlock::Bool(std::string_view name, bool value, std::string_view comment) {
  text_ += fmt::format("constexpr bool {} = {};{}{}\n", name, value, comment.empty() ? "" : "  // ",
                       comment);
  return *this;
}

ConstantBlock& ConstantBlock::Define(std::string_view name, int64_t value) {
  text_ += fmt::format("#define {} {}\n", name, value);
  return *this;
}

ConstantBlock& ConstantBlock::Line(std::string_view line) {
  text_ += line;
  text_ += '\n';
  return *this;
}

ConstantBlock& ConstantBlock::Ints(const Chosen& chosen, std::initializer_list<const char*> names) {
  for (const char* name : names) Int(Capitals(name), chosen[name]);
  return *this;
}

std::string Capitals(std::string_view name) {
  std::string capitals(name);
  for (char& each : capitals)
    each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  return capitals;
}

std::optional<RenderedKernel> BoundTemplate::Naive() const { return OracleOf(spec_)->Naive(spec_); }

void BoundTemplate::Add(const std::string& condition, const char* reason) {
  space_.constraints.push_back({Expr::MustParse(condition), reason});
}

void BoundTemplate::AddShared(const std::string& bytes) {
  Add(fmt::format("{} <= {}", bytes, profile_.shared_per_block), "shared memory");
}

int64_t BoundTemplate::Evaluate(const Expr& expression, const Configuration& configuration) const {
  Bindings bindings(spec_.dims);
  const std::vector<std::string> names = space_.Names();
  bindings.Add(names, configuration.values);
  return expression.EvaluateInt(bindings).value();
}

Choices BoundTemplate::AllValues() const {
  Choices all;
  for (const Parameter& parameter : space_.parameters) all.push_back(parameter.values);
  return all;
}

Configuration BoundTemplate::Default() const {
  Configuration best;
  double least = INFINITY;
  for (const Choices& way : Ways()) {
    ForEachOf(way, [&](const Configuration& one) {
      if (!space_.Allows(one, spec_.dims).value_or(false)) return;
      const double cost = Cost(one, profile_).value_or(INFINITY);
      if (cost >= least) return;
      least = cost;
      best = one;
    });
  }
  return best;
}

SourceUnit BoundTemplate::Emit(const Configuration& configuration, const ConstantBlock& constants,
                               std::initializer_list<std::string_view> texts) const {
  std::string head;
  if (half_precision())
    head = fmt::format(
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\ntypedef {} T;\n#define MMA_TYPE "
        "\"{}\"\n",
        CudaName(element_), element_ == DType::kBFloat16 ? "bf16" : "f16");
  return Titled(fmt::format("{} in {}, scheduled by atunner", spec_.name, Name(element_)),
                configuration, head + constants.text(), Joined(texts));
}

std::string BoundTemplate::Joined(std::initializer_list<std::string_view> texts) {
  std::string joined(embed::kWordsCuh);
  for (const std::string_view text : texts) joined.append(text.empty() ? "" : "\n").append(text);
  return joined;
}

SourceUnit BoundTemplate::Titled(const std::string& title, const Configuration& configuration,
                                 const std::string& head, const std::string& body) const {
  return {.name = spec_.name + ".cu",
          .text = fmt::format("// {}.\n// {}\n{}\n{}", title, space_.Describe(configuration), head,
                              body)};
}

LaunchPlan BoundTemplate::Plan(const Configuration& configuration,
                               std::vector<LaunchStep> steps) const {
  LaunchPlan plan;
  plan.steps = std::move(steps);
  plan.parameter_names = space_.Names();
  plan.parameter_values = configuration.values;
  return plan;
}

ValidSizes BoundTemplate::OpenSize(const char* reason) const {
  if (spec_.dims.size() != 1) return {};
  const auto& [name, most] = *spec_.dims.begin();
  if (reason == nullptr) return {{name}, {}};
  return {{name}, {{Expr::MustParse(fmt::format("{} <= {}", name, most)), reason}}};
}

Constraint WholeSteps(std::string_view dim, int64_t step) {
  return {Expr::MustParse(fmt::format("{} % {} == 0", dim, step)),
          fmt::format("rows are moved {} elements at a time", step)};
}

Status NeedsAmpere(const KernelSpec& spec, const DeviceProfile& profile) {
  if (spec.compute_dtype == DType::kFloat32 || CapabilitiesOf(profile).mma_16bit) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("{} in {} needs compute capability 8.0 or later, {} has {}.{}", spec.name,
                  Name(spec.compute_dtype), profile.name, profile.cc_major, profile.cc_minor));
}

}  // namespace atunner
