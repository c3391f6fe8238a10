#include "atunner/recognition/recognise.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/text.h"
#include "atunner/recognition/kernel_samples.h"

namespace atunner::recognition {
namespace {

/// How far results may be from exact ones, beside |r| + rms(r). A sum of some hundred terms that
/// leaves one out is off by 5 % of its root mean square.
double ToleranceOf(DType dtype) {
  if (!IsFloat(dtype)) return 0;
  return SizeOf(dtype) == 8 ? 1e-9 : SizeOf(dtype) == 4 ? 1e-4 : 1e-2;
}

double RootMeanSquare(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, values.size())));
}

bool AreClose(std::span<const double> exact, std::span<const double> found, DType dtype) {
  const double tolerance = ToleranceOf(dtype), scale = RootMeanSquare(exact);
  for (size_t i = 0; i < exact.size(); ++i) {
    // Written so that a NaN on either side is no match.
    if (!(std::abs(exact[i] - found[i]) <= tolerance * (std::abs(exact[i]) + scale))) return false;
  }
  return true;
}

/// The graph's result on the inputs of a run.
Result<std::vector<double>> ResultOf(const graph::ValidGraph& graph, const Hypothesis& hypothesis,
                                     const Sample& sample) {
  std::vector<graph::Tensor> inputs;
  for (const graph::NodeId id : graph.inputs()) {
    const graph::Node& node = graph.node(id);
    std::vector<int64_t> shape;
    for (const graph::Extent& extent : node.type.shape) shape.push_back(extent.factor());
    inputs.push_back(graph::Tensor::Of(node.type.dtype, std::move(shape),
                                       sample.before.at(hypothesis.names.at(node.name))));
  }
  ATUNNER_TRY(const std::vector<graph::Tensor> results, graph::Evaluate(graph, inputs));
  return results.front().Reals();
}

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// The elements of an output to compare, with where they stand.
struct Compared {
  std::vector<size_t> places;
  std::vector<double> values;
};

/// All elements, or those that the blocks that ran have changed.
Compared ComparedOf(const Samples& samples, const Sample& run, const std::string& output) {
  const std::vector<double>&before = run.before.at(output), &after = run.after.at(output);
  Compared compared;
  for (size_t i = 0; i < after.size(); ++i) {
    if (!samples.whole && IsSame(before[i], after[i])) continue;
    compared.places.push_back(i);
    compared.values.push_back(after[i]);
  }
  return compared;
}

bool HoldsFor(const graph::ValidGraph& graph, const Hypothesis& hypothesis,
              const BufferFact& output, const Samples& samples, const Sample& run) {
  const Compared compared = ComparedOf(samples, run, output.name);
  const auto all = ResultOf(graph, hypothesis, run);
  if (!all || all->size() != run.after.at(output.name).size()) return false;
  std::vector<double> exact;
  for (const size_t place : compared.places) exact.push_back((*all)[place]);
  return !exact.empty() && AreClose(exact, compared.values, output.dtype);
}

bool Holds(const Hypothesis& hypothesis, const BufferFact& output, const Samples& samples) {
  const auto graph = graph::Parse(hypothesis.graph);
  return graph && std::ranges::all_of(samples.runs, [&](const Sample& run) {
           return HoldsFor(*graph, hypothesis, output, samples, run);
         });
}

/// True if results are infinite and NaN where the kernel's are.
bool AgreesOnInfinities(const Hypothesis& hypothesis, const BufferFact& output,
                        const Samples& samples) {
  const auto graph = graph::Parse(hypothesis.graph);
  if (!graph) return false;
  const Compared compared = ComparedOf(samples, samples.infinities, output.name);
  const auto all = ResultOf(*graph, hypothesis, samples.infinities);
  if (!all) return false;
  for (size_t i = 0; i < compared.places.size(); ++i) {
    const double exact = (*all)[compared.places[i]], found = compared.values[i];
    const bool both_finite = std::isfinite(exact) && std::isfinite(found);
    if (!both_finite && !IsSame(exact, found)) return false;
  }
  return true;
}

void MarkWritten(const Samples& samples, Facts& facts) {
  for (BufferFact& buffer : facts.buffers) {
    for (const Sample& run : samples.runs)
      buffer.written = buffer.written || !std::ranges::equal(run.before.at(buffer.name),
                                                             run.after.at(buffer.name), IsSame);
  }
}

/// The sizes that may vary get values that differ, so that hypotheses are told apart: small odd
/// multiples of the power of two that kernels may rely on.
std::optional<Dims> DistinctDims(const Dims& own, const std::vector<Dims>& check_dims) {
  if (check_dims.empty()) return std::nullopt;
  constexpr int64_t kWholeTiles = 32;
  Dims dims = check_dims.back();
  int64_t factor = 2;
  for (auto& [name, value] : dims) {
    if (own.at(name) == value) continue;
    value = std::min(kWholeTiles, value & -value) * ++factor;
  }
  return dims;
}

/// The form of the first hypothesis that holds at `dims`; of those of one name, preferably of one
/// that also agrees on infinities: results may differ there alone, as those of `v > 0 ? v : 0` and
/// `v < 0 ? 0 : v` do.
Result<std::optional<std::string>> FormAt(const RenderedKernel& kernel, const KernelSpec& spec,
                                          const Dims& dims, Device& device, Compiler& compiler,
                                          std::set<std::string>& written) {
  ATUNNER_TRY(const Samples samples, RunSamples(kernel, spec, dims, device, compiler));
  ATUNNER_TRY(Facts facts, FactsOf(spec, kernel.plan, dims));
  MarkWritten(samples, facts);
  const BufferFact* output = facts.Output();
  if (output == nullptr) return std::nullopt;
  written = {output->name};
  const Hypothesis* first = nullptr;
  const std::vector<Hypothesis> all = AllHypotheses(facts);
  for (const Hypothesis& hypothesis : all) {
    if (first != nullptr && hypothesis.name != first->name) continue;
    if (!Holds(hypothesis, *output, samples)) continue;
    if (AgreesOnInfinities(hypothesis, *output, samples)) return hypothesis.form;
    if (first == nullptr) first = &hypothesis;
  }
  return first == nullptr ? std::nullopt : std::optional(first->form);
}

Result<std::optional<Hypothesis>> AtOwnSize(const KernelSpec& spec, const LaunchPlan& plan,
                                            const std::string& form,
                                            const std::set<std::string>& written) {
  ATUNNER_TRY(Facts facts, FactsOf(spec, plan, spec.dims));
  for (BufferFact& buffer : facts.buffers) buffer.written = written.contains(buffer.name);
  for (Hypothesis& hypothesis : AllHypotheses(facts)) {
    if (hypothesis.form == form) return std::move(hypothesis);
  }
  return std::nullopt;
}

}  // namespace

Result<Facts> FactsOf(const KernelSpec& spec, const LaunchPlan& plan, const Dims& dims) {
  Facts facts;
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, spec, dims));
    facts.buffers.push_back({arg.name, arg.dtype, shape.elements, arg.role != Role::kOutput});
  }
  Bindings known(dims);
  known.Add(spec.attributes).Add(plan.parameter_names, plan.parameter_values);
  std::set<std::string> named;
  for (const LaunchStep& step : plan.steps) {
    for (const ArgBinding& arg : step.args) {
      const std::string& text = arg.value.text();
      if (arg.kind != ArgBinding::Kind::kScalar || !named.insert(text).second) continue;
      ATUNNER_TRY(const Value value, arg.value.Evaluate(known));
      if (IsFloat(arg.dtype))
        facts.factors.push_back({text, ToDouble(value)});
      else
        facts.sizes.push_back({text, static_cast<int64_t>(ToDouble(value))});
    }
  }
  for (const auto& [name, value] : dims) {
    if (named.insert(name).second) facts.sizes.push_back({name, value});
  }
  return facts;
}

Result<std::optional<Hypothesis>> Recognise(const RenderedKernel& kernel, const KernelSpec& spec,
                                            const std::vector<Dims>& check_dims, Device& device,
                                            Compiler& compiler) {
  std::set<std::string> written;
  std::optional<std::string> form;
  if (const auto distinct = DistinctDims(spec.dims, check_dims)) {
    // A kernel may not be valid at sizes of ours.
    auto found = FormAt(kernel, spec, *distinct, device, compiler, written);
    if (found) form = *std::move(found);
  }
  if (!form) {
    const Dims& dims = check_dims.empty() ? spec.dims : check_dims.back();
    ATUNNER_TRY(form, FormAt(kernel, spec, dims, device, compiler, written));
  }
  if (!form) return std::nullopt;
  return AtOwnSize(spec, kernel.plan, *form, written);
}

}  // namespace atunner::recognition
