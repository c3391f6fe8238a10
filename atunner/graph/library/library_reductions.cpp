// Reductions and scans along an axis.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

/// `keep`: reduced axes stay with extent 1.
struct Along {
  Call& call;
  std::vector<int64_t> axes;
  bool keep;

  Value Reduce(Combine op, Value x) const { return call.g.Reduce(op, x, axes, keep); }
  /// The reduction with its axes kept as extents of 1, to be broadcast over the elements again.
  Value Kept(Combine op, Value x) const { return call.g.Reduce(op, x, axes, true); }
  Value Mean(Value x) const { return Kept(Combine::kMean, x); }
  Value Squeezed(Value kept) const {
    if (keep) return kept;
    Shape shape;
    for (size_t i = 0; i < call.g.TypeOf(kept).rank(); ++i) {
      if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end())
        shape.push_back(call.g.TypeOf(kept).shape[i]);
    }
    return call.g.Reshape(kept, shape);
  }
};

struct Row {
  const char* name;
  const char* meaning;
  Value (*make)(const Along&, Value x);  ///< x is at least float32, if a float
  std::vector<Attribute> attributes = {};
  bool differentiable = true;
};

Value Variance(const Along& a, Value x) {
  const Value centred = a.call.g.Map("a - b", {x, a.Mean(x)});
  Value variance = a.Reduce(Combine::kMean, a.call.g.Map("a * a", {centred}));
  if (a.call.Whole("correction") == 0) return variance;
  Extent count(1);
  for (int64_t axis : a.axes) count = count * a.call.g.TypeOf(x).shape[axis];
  const auto n = static_cast<double>(count.factor());
  const double rest = n - static_cast<double>(a.call.Whole("correction"));
  a.call.Check(rest > 0, "the correction leaves no degree of freedom",
               "reduce more elements, or correction=0");
  return a.call.g.Map(fmt::format("a * {}", n / rest), {variance});
}

/// The maximum, by which exponents are shifted so that they do not overflow. The result does not
/// depend on it, so gradients treat it as a constant.
Value Top(const Along& a, Value x) { return a.call.g.Map("detach(a)", {a.Kept(Combine::kMax, x)}); }

Value LogSumExp(const Along& a, Value x) {
  const Value top = Top(a, x);
  const Value sum = a.Kept(Combine::kSum,
                           a.call.g.Map("exp(select(isinf(a) & a == b, 0, a - b))", {x, top}));
  return a.Squeezed(a.call.g.Map("a + log(b)", {top, sum}));
}

/// A square root whose gradient at 0 is 0, as in PyTorch: an infinite slope times 0 would be NaN.
const char* kRoot = "select(a == 0, 0, sqrt(select(a == 0, 1, a)))";

Value Norm(const Along& a, Value x) {
  const double p = a.call.Real("p");
  GraphBuilder& g = a.call.g;
  if (std::isinf(p)) return a.Reduce(p > 0 ? Combine::kMax : Combine::kMin, g.Map("abs(a)", {x}));
  if (p == 2) return g.Map(kRoot, {a.Reduce(Combine::kSum, g.Map("a * a", {x}))});
  if (p == 1) return a.Reduce(Combine::kSum, g.Map("abs(a)", {x}));
  a.call.Check(p != 0, "p=0", "count what differs from zero with count_nonzero");
  // The gradient at 0 is 0, because the slope of |a|^p may be infinite there.
  const auto power = [&](const char* of, double exponent, Value value) {
    return g.Map(fmt::format("select(a == 0, {}, pow(select(a == 0, 1, {}), {}))",
                             exponent > 0 ? "0" : "inf", of, exponent),
                 {value});
  };
  return power("a", 1 / p, a.Reduce(Combine::kSum, power("abs(a)", p, x)));
}

Value Truth(const Along& a, Value x) {
  return a.call.g.TypeOf(x).dtype == DType::kBool ? x : a.call.g.Map("a != 0", {x});
}

const std::vector<Attribute> kCorrection = {
    {"correction", int64_t{1}, "subtracted from the count: 0 or 1"}};

const Row kRows[] = {
    {"sum", "sum", [](const Along& a, Value x) { return a.Reduce(Combine::kSum, x); }},
    {"mean", "mean", [](const Along& a, Value x) { return a.Reduce(Combine::kMean, x); }},
    {"prod", "product", [](const Along& a, Value x) { return a.Reduce(Combine::kProd, x); }},
    {"amax", "largest element, or NaN if there is one",
     [](const Along& a, Value x) { return a.Reduce(Combine::kMax, x); }},
    {"amin", "smallest element, or NaN if there is one",
     [](const Along& a, Value x) { return a.Reduce(Combine::kMin, x); }},
    {"argmax",
     "index of the first largest element",
     [](const Along& a, Value x) { return a.Reduce(Combine::kArgMax, x); },
     {},
     false},
    {"argmin",
     "index of the first smallest element",
     [](const Along& a, Value x) { return a.Reduce(Combine::kArgMin, x); },
     {},
     false},
    {"any",
     "true if any element differs from 0",
     [](const Along& a, Value x) { return a.Reduce(Combine::kAny, Truth(a, x)); },
     {},
     false},
    {"all",
     "true if all elements differ from 0",
     [](const Along& a, Value x) { return a.Reduce(Combine::kAll, Truth(a, x)); },
     {},
     false},
    {"count_nonzero",
     "number of elements that differ from 0",
     [](const Along& a, Value x) { return a.Reduce(Combine::kSum, Truth(a, x)); },
     {},
     false},
    {"sum_of_squares", "sum of squares",
     [](const Along& a, Value x) { return a.Reduce(Combine::kSum, a.call.g.Map("a * a", {x})); }},
    {"norm", "p-norm", Norm, {{"p", 2.0, "1, 2, inf or another"}}},
    {"var", "variance", Variance, kCorrection},
    {"std", "standard deviation",
     [](const Along& a, Value x) { return a.call.g.Map(kRoot, {Variance(a, x)}); }, kCorrection},
    {"logsumexp", "log of the sum of exponentials", LogSumExp},
    {"softmax", "exp(x - max) / sum(exp(x - max))",
     [](const Along& a, Value x) {
       const Value e = a.call.g.Map("exp(a - b)", {x, Top(a, x)});
       return a.call.g.Map("a / b", {e, a.Kept(Combine::kSum, e)});
     }},
    {"log_softmax", "x - max - log(sum(exp(x - max)))",
     [](const Along& a, Value x) {
       const Value moved = a.call.g.Map("a - b", {x, Top(a, x)});
       return a.call.g.Map("a - log(b)",
                           {moved, a.Kept(Combine::kSum, a.call.g.Map("exp(a)", {moved}))});
     }},
    {"normalize", "x / max(norm, 1e-12)",
     [](const Along& a, Value x) {
       const Value squares = a.Kept(Combine::kSum, a.call.g.Map("a * a", {x}));
       return a.call.g.Map("a / sqrt(maximum(b, 1e-24))", {x, squares});
     }},
};

LibraryOperator Reduction(const Row& row) {
  std::vector<Attribute> attributes = {{"axis", int64_t{-1}, "the axis, or all"},
                                       {"keep", false, "keep the axis with extent 1"}};
  attributes.insert(attributes.end(), row.attributes.begin(), row.attributes.end());
  return {.name = row.name,
          .signature = fmt::format("{}(x) → y", row.name),
          .meaning = std::string(row.meaning) + " along an axis",
          .shape_help = "one shape: request.shapes 8,1024,4096",
          .attributes = std::move(attributes),
          .build =
              [row](Call& call) {
                const Value x = call.Wide(call.Input("x", call.shape()));
                std::vector<int64_t> axes = {0};
                if (call.Text("axis") == "all") {
                  axes.resize(call.shape().size());
                  std::iota(axes.begin(), axes.end(), 0);
                } else {
                  axes[0] = call.Axis(x);
                }
                if (!call.g.ok()) return;
                const Value y = row.make({call, axes, call.Flag("keep")}, x);
                const bool as_asked = IsFloat(call.g.TypeOf(y).dtype) && IsFloat(call.dtype());
                as_asked ? call.Output("y", y) : call.g.Output("y", y);
              },
          .differentiable = row.differentiable,
          .example = {{4, 6}}};
}

LibraryOperator Cumulative(const char* name, Combine op, const char* meaning) {
  return {.name = name,
          .signature = fmt::format("{}(x) → y", name),
          .meaning = meaning,
          .shape_help = "one shape: request.shapes 1024,4096",
          .attributes = {{"axis", int64_t{-1}, "the axis"},
                         {"exclusive", false, "element i combines the elements before i"},
                         {"reverse", false, "runs from the end"}},
          .build =
              [op](Call& call) {
                const Value x = call.Wide(call.Input("x", call.shape()));
                const Scan scan{op, call.Axis(x), call.Flag("exclusive"), call.Flag("reverse")};
                const Value y = call.g.Add(scan, {x});
                IsFloat(call.dtype()) ? call.Output("y", y) : call.g.Output("y", y);
              },
          .differentiable = op == Combine::kSum || op == Combine::kProd,
          .example = {{3, 5}}};
}

}  // namespace

void AddReductions(std::vector<LibraryOperator>& library) {
  for (const Row& row : kRows) library.push_back(Reduction(row));
  library.push_back({.name = "softmax_backward",
                     .signature = "softmax_backward(y, dy) → dx",
                     .meaning = "gradient of softmax along an axis, from its result",
                     .shape_help = "one shape: request.shapes 8,1024,4096",
                     .attributes = {{"axis", int64_t{-1}, "the axis"}},
                     .build =
                         [](Call& call) {
                           const Value y = call.Wide(call.Input("y", call.shape()));
                           const Value dy = call.Wide(call.Input("dy", call.shape()));
                           const Value both = call.g.Map("a * b", {y, dy});
                           const Value sum = call.g.Reduce(Combine::kSum, both, {call.Axis(y)},
                                                           true);
                           call.Output("dx", call.g.Map("a * (b - c)", {y, dy, sum}));
                         },
                     .differentiable = false,
                     .example = {{4, 6}}});
  library.push_back(Cumulative("cumsum", Combine::kSum, "running sum along an axis"));
  library.push_back(Cumulative("cumprod", Combine::kProd, "running product along an axis"));
  library.push_back(Cumulative("cummax", Combine::kMax, "running maximum along an axis"));
  library.push_back(Cumulative("cummin", Combine::kMin, "running minimum along an axis"));
  library.push_back(
      {.name = "masked_cumsum",
       .signature = "masked_cumsum(x, mask) → y",
       .meaning = "running sum along the last axis of the elements where mask is true",
       .shape_help = "one shape: request.shapes 1024,4096",
       .build =
           [](Call& call) {
             const Value x = call.Wide(call.Input("x", call.shape()));
             const Value mask = call.Input("mask", call.shape(), DType::kBool);
             call.Output("y",
                         call.g.Add(Scan{.axis = -1}, {call.g.Map("select(b, a, 0)", {x, mask})}));
           },
       .example = {{3, 5}}});
}

}  // namespace atunner::graph
