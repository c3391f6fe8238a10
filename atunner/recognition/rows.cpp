// Reductions of the rows or columns of a matrix, running sums, and normalisations of rows.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

/// `before`: the elements that are reduced, from x; `behind`: from the result r.
struct Reduction {
  const char *name, *before, *op, *behind;
};
constexpr std::array kReductions{
    Reduction{"sum", "{0}", "sum", "{0}"},
    Reduction{"mean", "{0}", "mean", "{0}"},
    Reduction{"maximum", "{0}", "max", "{0}"},
    Reduction{"minimum", "{0}", "min", "{0}"},
    Reduction{"sum of squares", "{0} * {0}", "sum", "{0}"},
    Reduction{"mean of squares", "{0} * {0}", "mean", "{0}"},
    Reduction{"Euclidean norm", "{0} * {0}", "sum", "sqrt({0})"},
    Reduction{"sum of magnitudes", "abs({0})", "sum", "{0}"},
    Reduction{"logarithm of the sum of exponentials", "exp({0})", "sum", "log({0})"},
};

std::string Of(const char* form, const std::string& value) {
  return fmt::format(fmt::runtime(form), value);
}

/// x is [outer, length], or [length, outer] where columns are reduced.
void AddReductions(const Facts& facts, const BufferFact& x, bool columns,
                   std::vector<Hypothesis>& all) {
  const BufferFact& output = *facts.Output();
  const int64_t outer = output.elements, length = x.elements / outer;
  const std::vector<int64_t> shape = columns ? std::vector{length, outer}
                                             : std::vector{outer, length};
  for (const Epilogue& epilogue : EpiloguesOf(facts)) {
    for (const Reduction& reduction : kReductions) {
      const char* what = outer == 1 ? "all elements" : columns ? "columns" : "rows";
      HypothesisWriter writer(
          fmt::format("{} of {}", reduction.name, what),
          fmt::format("{} of {} of {}{}", reduction.name, what, x.name, epilogue.form));
      const std::string wide = writer.Wide(writer.Input(x, shape), x);
      const std::string element = Of(reduction.before, wide);
      const std::string from = element == wide ? wide : writer.Line(element);
      const std::string reduced = writer.Line(
          fmt::format("reduce_{}({}, axes=[{}])", reduction.op, from, columns ? 0 : 1));
      const std::string value = Of(reduction.behind, reduced);
      all.push_back(Finish(std::move(writer), facts,
                           value == reduced || epilogue.form.empty() ? value : "(" + value + ")",
                           epilogue, {outer}));
    }
  }
}

/// x is [outer, channels, inner], and all but the channels are reduced.
void AddChannelSums(const Facts& facts, const BufferFact& x, std::vector<Hypothesis>& all) {
  const int64_t channels = facts.Output()->elements;
  for (const SizeFact& size : facts.sizes) {
    const int64_t inner = size.value;
    if (channels < 2 || inner < 2 || inner > x.elements) continue;
    if (x.elements % (channels * inner) != 0 || x.elements / (channels * inner) < 2) continue;
    for (const char* op : {"sum", "mean"}) {
      HypothesisWriter writer(
          fmt::format("{} of channels", op),
          fmt::format("{} of channels of {}, {} elements each", op, x.name, size.name));
      const std::string in = writer.Wide(
          writer.Input(x, {x.elements / (channels * inner), channels, inner}), x);
      const std::string sum = writer.Line(fmt::format("reduce_{}({}, axes=[0, 2])", op, in));
      all.push_back(std::move(writer).Output(*facts.Output(), sum));
    }
  }
}

void AddArgExtremes(const Facts& facts, const BufferFact& x, std::vector<Hypothesis>& all) {
  const int64_t outer = facts.Output()->elements;
  for (const char* op : {"argmax", "argmin"}) {
    HypothesisWriter writer(fmt::format("{} of rows", op), fmt::format("{} of {}", op, x.name));
    const std::string in = writer.Input(x, {outer, x.elements / outer});
    const std::string at = writer.Line(fmt::format("reduce_{}({}, axes=[1])", op, in));
    all.push_back(std::move(writer).Output(*facts.Output(), at));
  }
}

void AddScans(const Facts& facts, const BufferFact& x, const SizeFact& length,
              std::vector<Hypothesis>& all) {
  for (const bool exclusive : {false, true}) {
    const std::string form = fmt::format(
        "{} running sum of {} by {}", exclusive ? "exclusive" : "inclusive", x.name, length.name);
    HypothesisWriter writer("running sum", form);
    const std::string wide = writer.Wide(writer.Input(x, {x.elements / length.value, length.value}),
                                         x);
    const std::string sums = writer.Line(
        fmt::format("scan_sum({}, axis=1, exclusive={})", wide, exclusive ? "true" : "false"));
    all.push_back(std::move(writer).Output(*facts.Output(), sums));
  }
}

/// Normalisations of the rows of x; the output has its size. In place x is the output.
struct RowInput {
  const BufferFact& x;
  const SizeFact& length;
  HypothesisWriter Writer(const std::string& name, const std::string& more = "") const {
    return {name, fmt::format("{} of {} by {}{}", name, x.name, length.name, more)};
  }
  std::vector<int64_t> Shape() const { return {x.elements / length.value, length.value}; }
};

void AddSoftmax(const Facts& facts, const RowInput& row, std::vector<Hypothesis>& all) {
  for (const bool logarithm : {false, true}) {
    HypothesisWriter writer = row.Writer(logarithm ? "logarithm of softmax" : "softmax");
    const std::string x = writer.Wide(writer.Input(row.x, row.Shape()), row.x);
    const std::string most = writer.Line(fmt::format("reduce_max({}, axes=[-1], keep=true)", x));
    const std::string power = writer.Line(fmt::format("exp({} - {})", x, most));
    const std::string sum = writer.Line(fmt::format("reduce_sum({}, axes=[-1], keep=true)", power));
    const std::string value = writer.Line(logarithm ? fmt::format("{} - {} - log({})", x, most, sum)
                                                    : fmt::format("{} / {}", power, sum));
    all.push_back(std::move(writer).Output(*facts.Output(), value));
  }
}

/// The numbers that are added to variances; 0 first.
std::vector<FactorFact> EpsilonsOf(const Facts& facts) {
  std::vector<FactorFact> all = facts.factors;
  for (const double epsilon : {1e-5, 1e-6, 1e-8, 1e-12, 0.0})
    all.push_back({fmt::format("{:g}", epsilon), epsilon});
  return all;
}

/// Weights and biases of a row's length.
struct Affine {
  const BufferFact *weight = nullptr, *bias = nullptr;
};

std::vector<Affine> AffinesOf(const Facts& facts, const RowInput& row) {
  std::vector<const BufferFact*> vectors{nullptr};
  for (const BufferFact* input : facts.Inputs()) {
    if (input != &row.x && input->elements == row.length.value) vectors.push_back(input);
  }
  std::vector<Affine> all;
  for (const BufferFact* weight : vectors) {
    for (const BufferFact* bias : vectors) {
      if (weight != bias || weight == nullptr) all.push_back({weight, bias});
    }
  }
  return all;
}

std::string WithAffine(HypothesisWriter& writer, const Affine& affine, int64_t length,
                       std::string value) {
  const auto vector = [&](const BufferFact& buffer) {
    return writer.Wide(writer.Input(buffer, {length}), buffer);
  };
  if (affine.weight != nullptr) value += " * " + vector(*affine.weight);
  if (affine.bias != nullptr) value += " + " + vector(*affine.bias);
  return value;
}

void AddNorm(const Facts& facts, const RowInput& row, bool centred, const FactorFact& epsilon,
             const Affine& affine, std::vector<Hypothesis>& all) {
  const std::string name = centred ? "layer normalisation" : "root mean square normalisation";
  HypothesisWriter writer = row.Writer(
      name, fmt::format(" with {}, weight {}, bias {}", epsilon.name,
                        affine.weight != nullptr ? affine.weight->name : "none",
                        affine.bias != nullptr ? affine.bias->name : "none"));
  std::string x = writer.Wide(writer.Input(row.x, row.Shape()), row.x);
  if (centred) {
    const std::string mean = writer.Line(fmt::format("reduce_mean({}, axes=[-1], keep=true)", x));
    x = writer.Line(fmt::format("{} - {}", x, mean));
  }
  const std::string square = writer.Line(fmt::format("{0} * {0}", x));
  const std::string variance = writer.Line(
      fmt::format("reduce_mean({}, axes=[-1], keep=true)", square));
  std::string value = fmt::format("{} * rsqrt({} + {})", x, variance, NumberText(epsilon.value));
  value = WithAffine(writer, affine, row.length.value, value);
  all.push_back(std::move(writer).Output(*facts.Output(), writer.Line(value)));
}

void AddNormalisations(const Facts& facts, const RowInput& row, std::vector<Hypothesis>& all) {
  AddSoftmax(facts, row, all);
  for (const FactorFact& epsilon : EpsilonsOf(facts)) {
    for (const Affine& affine : AffinesOf(facts, row)) {
      AddNorm(facts, row, true, epsilon, affine, all);
      AddNorm(facts, row, false, epsilon, affine, all);
    }
  }
}

}  // namespace

std::vector<Hypothesis> RowHypotheses(const Facts& facts) {
  std::vector<Hypothesis> all;
  const BufferFact& output = *facts.Output();
  std::vector<const BufferFact*> inputs = facts.Inputs();
  for (const BufferFact* x : inputs) {
    if (x->elements % output.elements != 0 || x->elements / output.elements < 2) continue;
    if (!IsFloat(output.dtype)) {
      AddArgExtremes(facts, *x, all);
      continue;
    }
    AddReductions(facts, *x, false, all);
    if (output.elements > 1) AddReductions(facts, *x, true, all);
    AddChannelSums(facts, *x, all);
  }
  if (!IsFloat(output.dtype)) return all;
  if (output.has_input) inputs.push_back(&output);
  for (const BufferFact* x : inputs) {
    for (const SizeFact& length : facts.sizes) {
      const bool rows = x->elements == output.elements && length.value > 1 &&
                        x->elements % length.value == 0;
      if (!rows) continue;
      AddScans(facts, *x, length, all);
      AddNormalisations(facts, {*x, length}, all);
    }
  }
  return all;
}

}  // namespace atunner::recognition
