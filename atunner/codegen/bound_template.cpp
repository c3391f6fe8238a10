#include "atunner/codegen/bound_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <utility>

#include "atunner/operators/operator.h"

namespace atunner {

std::vector<Value> Integers(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

void AddArguments(LaunchStep& step, const ArgumentWords& words) {
  constexpr std::pair<std::string_view, DType> kScalars[] = {
      {"i32:", DType::kInt32}, {"i64:", DType::kInt64}, {"f32:", DType::kFloat32}};
  for (const std::string& word : words) {
    const auto scalar = std::ranges::find_if(kScalars, [&](const auto& kind) { return word.starts_with(kind.first); });
    if (scalar != std::end(kScalars))
      step.args.push_back(ArgBinding::Scalar(scalar->second, Expr::MustParse(word.substr(scalar->first.size()))));
    else
      step.args.push_back(word[0] == '@' ? ArgBinding::Workspace(word.substr(1)) : ArgBinding::Tensor(word));
  }
}

LaunchStep Step(std::string entry, const std::string& blocks, const Expr& threads, const ArgumentWords& words) {
  LaunchStep step;
  step.entry = std::move(entry);
  step.grid[0] = Expr::MustParse(blocks);
  step.block[0] = threads;
  AddArguments(step, words);
  return step;
}

ConstantBlock& ConstantBlock::Int(std::string_view name, int64_t value, std::string_view comment) {
  text_ += fmt::format("constexpr int {} = {};{}{}\n", name, value, comment.empty() ? "" : "  // ", comment);
  return *this;
}

ConstantBlock& ConstantBlock::Bool(std::string_view name, bool value, std::string_view comment) {
  text_ += fmt::format("constexpr bool {} = {};{}{}\n", name, value, comment.empty() ? "" : "  // ", comment);
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
  for (const char* name : names) {
    std::string capitals = name;
    std::ranges::transform(capitals, capitals.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    Int(capitals, chosen[name]);
  }
  return *this;
}

std::optional<RenderedKernel> BoundTemplate::Naive() const { return OracleOf(spec_)->Naive(spec_); }

int64_t BoundTemplate::attribute(std::string_view name) const {
  return static_cast<int64_t>(ToDouble(spec_.attributes.find(name)->second));
}

void BoundTemplate::Add(const std::string& condition, const char* reason) {
  space_.constraints.push_back({Expr::MustParse(condition), reason});
}

bool BoundTemplate::Allows(const Configuration& configuration) const {
  return space_.Allows(configuration, spec_.dims).value_or(false);
}

Configuration BoundTemplate::FirstAllowed(const std::vector<std::vector<int64_t>>& candidates) const {
  for (const std::vector<int64_t>& values : candidates) {
    Configuration one{{values.begin(), values.end()}};
    if (Allows(one)) return one;
  }
  return {};
}

Configuration BoundTemplate::Default() const {
  std::vector<std::vector<Value>> all;
  for (const Parameter& parameter : space_.parameters) all.push_back(parameter.values);
  return CheapestOf(all);
}

Configuration BoundTemplate::CheapestOf(const std::vector<std::vector<Value>>& choices) const {
  Configuration best;
  double least = INFINITY;
  std::vector<size_t> at(choices.size(), 0);
  while (true) {
    Configuration one;
    for (size_t i = 0; i < at.size(); ++i) one.values.push_back(choices[i][at[i]]);
    if (Allows(one)) {
      const double cost = Cost(one, profile_).value_or(INFINITY);
      if (cost < least) {
        least = cost;
        best = one;
      }
    }
    size_t digit = 0;
    while (digit < at.size() && ++at[digit] == choices[digit].size()) at[digit++] = 0;
    if (digit == at.size()) return best;
  }
}

SourceUnit BoundTemplate::Emit(const Configuration& configuration, const ConstantBlock& constants,
                               std::initializer_list<std::string_view> texts) const {
  SourceUnit source;
  source.name = spec_.name + ".cu";
  source.text = fmt::format("// {} in {}, scheduled by atunner.\n// {}\n", spec_.name, Name(element_),
                            space_.Describe(configuration));
  if (half_precision()) {
    const bool brain = element_ == DType::kBFloat16;
    source.text +=
        fmt::format("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\ntypedef {} T;\n#define MMA_TYPE \"{}\"\n",
                    CudaName(element_), brain ? "bf16" : "f16");
  }
  source.text += constants.text();
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    source.text += '\n';
    source.text += text;
  }
  return source;
}

LaunchPlan BoundTemplate::Plan(const Configuration& configuration, std::vector<LaunchStep> steps) const {
  LaunchPlan plan;
  plan.steps = std::move(steps);
  plan.parameter_names = space_.Names();
  plan.parameter_values = configuration.values;
  return plan;
}

SizeFreedom BoundTemplate::OpenSize(const char* reason) const {
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
  if (spec.compute_dtype == DType::kFloat32 || profile.cc_major >= 8) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{} in {} needs compute capability 8.0 or later, {} has {}.{}", spec.name,
                          Name(spec.compute_dtype), profile.name, profile.cc_major, profile.cc_minor));
}

}  // namespace atunner
