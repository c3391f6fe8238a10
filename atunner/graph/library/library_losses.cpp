// Losses and optimizers.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

std::vector<int64_t> AllAxes(const Shape& shape) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

const Attribute kReduction = {"reduction", std::string("mean"), "mean, sum or none"};

/// The attribute `reduction` of losses: mean, sum or none.
void Reduced(Call& call, Value each) {
  const std::string reduction = call.Text("reduction");
  if (!call.Check(reduction == "mean" || reduction == "sum" || reduction == "none",
                  "reduction=" + reduction, "mean, sum or none") ||
      !call.g.ok())
    return;
  const Combine op = reduction == "sum" ? Combine::kSum : Combine::kMean;
  call.Output("loss", reduction == "none"
                          ? each
                          : call.g.Reduce(op, each, AllAxes(call.g.TypeOf(each).shape)));
}

/// Pointwise losses of operands a, b and perhaps c.
struct LossRow {
  const char* name;
  const char* body;  ///< $x: the attribute x
  const char* meaning;
  std::vector<Attribute> attributes = {};
  std::vector<std::string> operands = {"prediction", "target"};
};
const LossRow kLosses[] = {
    {"mse_loss", "(a - b) * (a - b)", "mean squared error"},
    {"l1_loss", "abs(a - b)", "mean absolute error"},
    {"huber_loss",
     "let t = abs(a - b) in select(t < $delta, 0.5 * t * t, $delta * (t - 0.5 * $delta))",
     "squared near 0, linear beyond delta",
     {{"delta", 1.0, "where it becomes linear"}}},
    {"smooth_l1_loss",
     "let t = abs(a - b) in select(t < $delta, 0.5 * t * t / $delta, t - 0.5 * $delta)",
     "Huber's loss by delta",
     {{"delta", 1.0, "where it becomes linear"}}},
    {"log_cosh_loss", "let t = abs(a - b) in t + log1p(exp(-2 * t)) - 0.6931471805599453",
     "log cosh of the error"},
    {"hinge_loss", "maximum(1 - a * b, 0)", "margin of targets -1 and 1"},
    {"squared_hinge_loss", "let t = maximum(1 - a * b, 0) in t * t",
     "squared margin of targets -1 and 1"},
    {"hinge_embedding_loss",
     "let t = $margin - a in select(b > 0, a, select(t < 0, 0, t))",
     "distances: small where the target is 1, at least margin where it is -1",
     {{"margin", 1.0, "distance wanted"}}},
    {"margin_ranking_loss",
     "let t = -c * (a - b) + $margin in select(t < 0, 0, t)",
     "a ranked above b where the target is 1, below where it is -1",
     {{"margin", 0.0, "distance wanted"}},
     {"a", "b", "target"}},
    {"soft_margin_loss", "maximum(-a * b, 0) + log1p(exp(-abs(a * b)))",
     "logistic loss of targets -1 and 1"},
    {"bce_with_logits", "maximum(a, 0) - a * b + log1p(exp(-abs(a)))",
     "binary cross-entropy of logits"},
    {"focal_loss",
     "let t = select(b > 0, a, -a), w = sigmoid(-t) in w ** $gamma * (maximum(-t, 0) + "
     "log1p(exp(-abs(t))))",
     "binary cross-entropy of logits, with less weight on easy elements; targets above 0 are true",
     {{"gamma", 2.0, "exponent of the weight"}}},
    {"kl_div", "exp(b) * (b - a)", "Kullback-Leibler divergence of log probabilities"},
    {"poisson_nll_loss", "exp(a) - a * b", "negative log likelihood of counts, by log rate"},
    {"gaussian_nll_loss",
     "let v = maximum(abs(c), $eps) in 0.5 * (log(v) + (a - b) * (a - b) / v)",
     "negative log likelihood of a normal distribution; the variance's absolute value counts",
     {{"eps", 1e-6, "least variance"}},
     {"prediction", "target", "variance"}},
};

LibraryOperator Loss(const LossRow& row) {
  std::vector<Attribute> attributes = row.attributes;
  attributes.push_back(kReduction);
  return {.name = row.name,
          .signature = fmt::format("{}({}) → loss[]", row.name, fmt::join(row.operands, ", ")),
          .meaning = std::string(row.meaning) + ", averaged",
          .shape_help = "one shape: request.shapes 1024,4096",
          .attributes = attributes,
          .build =
              [row](Call& call) {
                if (!call.Check(!call.shape().empty(), "a scalar has nothing to average")) return;
                const bool bends = std::ranges::find(row.attributes, "delta", &Attribute::name) !=
                                   row.attributes.end();
                if (bends && !call.Check(call.Real("delta") > 0, "delta=" + call.Text("delta"),
                                         "above 0; l1_loss is the limit"))
                  return;
                std::vector<Value> operands;
                for (const std::string& name : row.operands)
                  operands.push_back(call.Wide(call.Input(name, call.shape())));
                Reduced(call, call.g.Map(WithAttributes(row.body, row.attributes, call), operands));
              },
          .example = {{3, 5}}};
}

const Attribute kIgnored = {"ignore_index", int64_t{-100}, "rows with this label are ignored"};

/// Reduces a loss over the rows that are not ignored; a mean divides by their number.
void ReducedOfLabels(Call& call, Value each, Value labels) {
  const std::string counts = fmt::format("b != {}", call.Whole("ignore_index"));
  each = call.g.Map(fmt::format("select({}, a, 0)", counts), {each, labels});
  if (call.Text("reduction") != "mean" || !call.g.ok()) return Reduced(call, each);
  const DType dtype = call.g.TypeOf(each).dtype;
  const Value rows = call.g.Map(
      fmt::format("cast(a != {}, {})", call.Whole("ignore_index"), Name(dtype)), {labels});
  const auto total = [&](Value x) { return call.g.Reduce(Combine::kSum, x, {0}); };
  call.Output("loss", call.g.Map("a / b", {total(each), total(rows)}));
}

/// Cross entropy: minus the log softmax of the logits at the label's index, for each row.
void BuildCrossEntropy(Call& call) {
  if (!call.Check(call.shape().size() == 2, "cross_entropy takes logits N,C")) return;
  GraphBuilder& g = call.g;
  const Value x = call.Wide(call.Input("logits", call.shape()));
  const Value labels = call.Input("labels", {call.shape()[0]}, DType::kInt64);
  const Value moved = g.Map("a - detach(b)", {x, g.Reduce(Combine::kMax, x, {1}, true)});
  const Value total = g.Reduce(Combine::kSum, g.Map("exp(a)", {moved}), {1});
  const Value picked = g.Add(Gather{1, 1}, {moved, labels});
  const double smoothing = call.Real("label_smoothing");
  if (smoothing == 0) return ReducedOfLabels(call, g.Map("log(a) - b", {total, picked}), labels);
  const Value mean = g.Reduce(Combine::kMean, moved, {1});
  ReducedOfLabels(call,
                  g.Map(fmt::format("log(a) - {} * b - {} * c", 1 - smoothing, smoothing),
                        {total, picked, mean}),
                  labels);
}

void BuildNll(Call& call) {
  if (!call.Check(call.shape().size() == 2, "nll_loss takes log probabilities N,C")) return;
  const Value x = call.Wide(call.Input("log_probabilities", call.shape()));
  const Value labels = call.Input("labels", {call.shape()[0]}, DType::kInt64);
  ReducedOfLabels(call, call.g.Map("-a", {call.g.Add(Gather{1, 1}, {x, labels})}), labels);
}

/// The cosine similarity of rows: a · b / (|a| |b|).
Value Cosine(Call& call, Value a, Value b) {
  const auto dot = [&](Value x, Value y) {
    return call.g.Reduce(Combine::kSum, call.g.Map("a * b", {x, y}), {-1});
  };
  return call.g.Map("a * rsqrt(maximum(b, 1e-16)) * rsqrt(maximum(c, 1e-16))",
                    {dot(a, b), dot(a, a), dot(b, b)});
}

void BuildCosine(Call& call) {
  if (!call.Check(call.shape().size() == 2, "cosine_loss takes rows N,D")) return;
  const Value a = call.Wide(call.Input("a", call.shape()));
  const Value b = call.Wide(call.Input("b", call.shape()));
  Reduced(call, call.g.Map("1 - a", {Cosine(call, a, b)}));
}

void BuildTriplet(Call& call) {
  if (!call.Check(call.shape().size() == 2, "triplet_loss takes rows N,D")) return;
  GraphBuilder& g = call.g;
  const Value a = call.Wide(call.Input("anchor", call.shape()));
  const auto distance = [&](const char* name) {
    const Value other = call.Wide(call.Input(name, call.shape()));
    const Value square = g.Map("let t = a - b + 1e-06 in t * t", {a, other});
    return g.Map("sqrt(a)", {g.Reduce(Combine::kSum, square, {-1})});
  };
  const Value near = distance("positive");
  const Value far = distance("negative");
  const Value margin = g.Scalar(g.TypeOf(a).dtype, call.Real("margin"));
  Reduced(call, g.Map("let t = a - b + c in select(t < 0, 0, t)", {near, far, margin}));
}

// --- Optimizers: one step for each of the tensors whose shapes are given. ---

/// An optimizer as formulas over the parameter a, the gradient b and the states c, d. Later
/// formulas may use earlier results. A mean square is never negative, so its absolute value is
/// taken, which gives random test inputs a meaning.
struct OptimizerRow {
  const char* name;
  const char* meaning;
  std::vector<std::string> states;
  std::string let;                ///< definitions that several formulas share
  std::vector<std::string> next;  ///< the formulas of the new parameter and the new states
  std::vector<Attribute> attributes;
};

const Attribute kRate = {"lr", 1e-3, "learning rate"};
const Attribute kDecay = {"weight_decay", 0.0, "decay towards 0"};
const Attribute kOptimizerEps = {"eps", 1e-8, "added to the root"};
const std::vector<Attribute> kAdam = {{"lr", 1e-3, "learning rate"},
                                      {"beta1", 0.9, "decay of the mean"},
                                      {"beta2", 0.999, "decay of the mean square"},
                                      kOptimizerEps,
                                      {"step", int64_t{1}, "number of this step, from 1"},
                                      {"weight_decay", 0.0, "decoupled for adamw"}};
const char* kMoments =
    "m = $beta1 * c + (1 - $beta1) * t, v = $beta2 * abs(d) + (1 - $beta2) * t * t, "
    "s = $lr * m / (1 - $beta1 ** $step) / (sqrt(v / (1 - $beta2 ** $step)) + $eps)";

const OptimizerRow kOptimizers[] = {
    {"adam",
     "one step of Adam",
     {"m", "v"},
     std::string("t = b + $weight_decay * a, ") + kMoments,
     {"a - s", "m", "v"},
     kAdam},
    {"adamw",
     "one step of Adam with decoupled weight decay",
     {"m", "v"},
     std::string("t = b, ") + kMoments,
     {"a * (1 - $lr * $weight_decay) - s", "m", "v"},
     kAdam},
    {"sgd",
     "one step of gradient descent with momentum",
     {"v"},
     "v = $momentum * c + b + $weight_decay * a",
     {"a - $lr * v", "v"},
     {{"lr", 1e-2, "learning rate"}, {"momentum", 0.9, "weight of the previous step"}, kDecay}},
    {"rmsprop",
     "one step of RMSprop",
     {"v"},
     "v = $alpha * abs(c) + (1 - $alpha) * b * b",
     {"a - $lr * b / (sqrt(v) + $eps)", "v"},
     {kRate, {"alpha", 0.99, "decay of the mean square"}, kOptimizerEps}},
    {"adagrad",
     "one step of Adagrad",
     {"sum"},
     "v = abs(c) + b * b",
     {"a - $lr * b / (sqrt(v) + $eps)", "v"},
     {kRate, kOptimizerEps}},
    {"lion",
     "one step of Lion",
     {"m"},
     "m = $beta2 * c + (1 - $beta2) * b",
     {"a * (1 - $lr * $weight_decay) - $lr * sign($beta1 * c + (1 - $beta1) * b)", "m"},
     {kRate, {"beta1", 0.9, "of the step"}, {"beta2", 0.99, "decay of the mean"}, kDecay}},
};

/// The suffix of names: empty for a single tensor ("p"), else the tensor's number ("p0", "p1").
std::string Numbered(const Call& call, size_t i) {
  return call.shapes() == 1 ? "" : std::to_string(i);
}

LibraryOperator Optimizer(const OptimizerRow& row) {
  std::string signature = fmt::format("{}(p, grad, {}) → p_next", row.name,
                                      fmt::join(row.states, ", "));
  for (const std::string& state : row.states) signature += ", " + state + "_next";
  return {.name = row.name,
          .signature = signature,
          .meaning = row.meaning,
          .shape_help = "a shape for each tensor: request.shapes 4096,4096",
          .attributes = row.attributes,
          .build =
              [row](Call& call) {
                const bool counts = std::ranges::find(row.attributes, "step", &Attribute::name) !=
                                    row.attributes.end();
                if (counts && !call.Check(call.Whole("step") >= 1, "step counts from 1")) return;
                for (size_t i = 0; i < call.shapes(); ++i) {
                  std::vector<std::string> names = {"p", "grad"};
                  names.insert(names.end(), row.states.begin(), row.states.end());
                  std::vector<Value> operands;
                  for (const std::string& name : names)
                    operands.push_back(
                        call.Wide(call.Input(name + Numbered(call, i), call.own_shape(i))));
                  names.erase(names.begin() + 1);
                  for (size_t k = 0; k < names.size(); ++k) {
                    const std::string body = fmt::format("let {} in {}", row.let, row.next[k]);
                    call.Output(names[k] + "_next" + Numbered(call, i),
                                call.g.Map(WithAttributes(body, row.attributes, call), operands));
                  }
                }
              },
          .differentiable = false,
          .example = {{3, 5}}};
}

/// Scales gradients so that their common norm is at most `max_norm`.
void BuildClip(Call& call) {
  GraphBuilder& g = call.g;
  std::vector<Value> gradients;
  Value total;
  for (size_t i = 0; i < call.shapes(); ++i) {
    if (!call.Check(!call.own_shape(i).empty(), "a scalar has no norm")) return;
    gradients.push_back(call.Wide(call.Input("grad" + Numbered(call, i), call.own_shape(i))));
    const Value squares = g.Map("a * a", {gradients.back()});
    const bool alone = call.shapes() == 1;
    const Value sum = g.Reduce(Combine::kSum, squares, AllAxes(call.own_shape(i)), alone);
    total = i == 0 ? sum : g.Map("a + b", {total, sum});
  }
  for (size_t i = 0; i < gradients.size(); ++i)
    call.Output("y" + Numbered(call, i),
                g.Map(fmt::format("a * minimum({} / (sqrt(b) + 1e-06), 1)", call.Real("max_norm")),
                      {gradients[i], total}));
}

/// Mixed-precision training: divides gradients by the loss scale, and reports if any is infinite or
/// NaN.
void BuildUnscale(Call& call) {
  GraphBuilder& g = call.g;
  const Value scale = call.Input("scale", {Extent(1)}, DType::kFloat32);
  Value found;
  for (size_t i = 0; i < call.shapes(); ++i) {
    if (!call.Check(!call.own_shape(i).empty(), "a scalar has no axes")) return;
    const Value x = call.Wide(call.Input("grad" + Numbered(call, i), call.own_shape(i)));
    const Value bad = g.Reduce(Combine::kAny, g.Map("isnan(a) | isinf(a)", {x}),
                               AllAxes(call.own_shape(i)));
    found = i == 0 ? bad : g.Map("a | b", {found, bad});
    call.Output("y" + Numbered(call, i), g.Map("a / b", {x, g.Cast(scale, g.TypeOf(x).dtype)}));
  }
  g.Output("found", found);
}

}  // namespace

void AddLosses(std::vector<LibraryOperator>& library) {
  for (const LossRow& row : kLosses) library.push_back(Loss(row));
  const char* one = "one shape: request.shapes 4096,4096";
  library.push_back({"cross_entropy",
                     "cross_entropy(logits[N, C], labels[N]) → loss[]",
                     "mean of -log softmax at the labels",
                     one,
                     {{"label_smoothing", 0.0, "weight of the uniform distribution in the target"},
                      kIgnored,
                      kReduction},
                     BuildCrossEntropy,
                     true,
                     {{3, 5}}});
  library.push_back({"nll_loss",
                     "nll_loss(log_probabilities[N, C], labels[N]) → loss[]",
                     "minus the mean of the log probabilities at the labels",
                     one,
                     {kIgnored, kReduction},
                     BuildNll,
                     true,
                     {{3, 5}}});
  library.push_back({"cosine_loss",
                     "cosine_loss(a[N, D], b[N, D]) → loss[]",
                     "mean of 1 - cosine of rows",
                     one,
                     {kReduction},
                     BuildCosine,
                     true,
                     {{3, 5}}});
  library.push_back({"triplet_loss",
                     "triplet_loss(anchor, positive, negative) → loss[]",
                     "mean of max(|a - p| - |a - n| + margin, 0)",
                     one,
                     {{"margin", 1.0, "distance wanted"}, kReduction},
                     BuildTriplet,
                     true,
                     {{3, 5}}});
  for (const OptimizerRow& row : kOptimizers) library.push_back(Optimizer(row));
  const char* tensors = "a shape for each tensor: request.shapes 4096,4096";
  library.push_back({"clip_grad_norm",
                     "clip_grad_norm(grad) → y",
                     "grad · min(max_norm / |grad|, 1), by the norm of all tensors",
                     tensors,
                     {{"max_norm", 1.0, "largest norm"}},
                     BuildClip,
                     false,
                     {{3, 5}}});
  library.push_back({"unscale",
                     "unscale(scale[1], grad) → y, found[]",
                     "grad / scale, and whether any is infinite or NaN",
                     tensors,
                     {},
                     BuildUnscale,
                     false,
                     {{3, 5}}});
}

}  // namespace atunner::graph
