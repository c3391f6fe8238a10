// Losses and optimizers.
#include <fmt/format.h>

#include <cmath>

#include "atunner/graph/library.h"

namespace atunner::graph {
namespace {

/// Pointwise losses of prediction a and target b, then the mean.
struct LossRow {
  const char* name;
  const char* body;  ///< $x: the attribute
  const char* meaning;
  std::vector<Attribute> attributes = {};
};
const LossRow kLosses[] = {
    {"mse_loss", "(a - b) * (a - b)", "mean squared error"},
    {"l1_loss", "abs(a - b)", "mean absolute error"},
    {"huber_loss",
     "let t = abs(a - b) in select(t < $d, 0.5 * t * t, $d * (t - 0.5 * $d))",
     "squared near 0, linear beyond delta",
     {{"delta", 1.0, "where it becomes linear"}}},
    {"smooth_l1_loss",
     "let t = abs(a - b) in select(t < $d, 0.5 * t * t / $d, t - 0.5 * $d)",
     "Huber's loss by delta",
     {{"delta", 1.0, "where it becomes linear"}}},
    {"hinge_loss", "maximum(1 - a * b, 0)", "margin of targets -1 and 1"},
    {"soft_margin_loss", "maximum(-a * b, 0) + log1p(exp(-abs(a * b)))", "logistic loss of targets -1 and 1"},
    {"bce_with_logits", "maximum(a, 0) - a * b + log1p(exp(-abs(a)))", "binary cross-entropy of logits"},
    {"kl_div", "exp(b) * (b - a)", "Kullback-Leibler divergence of log probabilities"},
    {"poisson_nll_loss", "exp(a) - a * b", "negative log likelihood of counts, by log rate"},
};

std::vector<int64_t> AllAxes(const Call& call) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < call.shape().size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

LibraryOperator Loss(const LossRow& row) {
  return {.name = row.name,
          .signature = fmt::format("{}(prediction, target) → loss[]", row.name),
          .meaning = std::string(row.meaning) + ", averaged",
          .shape_help = "one shape: --input-shape 1024,4096",
          .attributes = row.attributes,
          .build =
              [row](Call& call) {
                if (!call.Check(!call.shape().empty(), "a scalar has nothing to average")) return;
                std::string body = row.body;
                const std::string delta = row.attributes.empty() ? "" : fmt::format("{}", call.Real("delta"));
                for (size_t at = body.find("$d"); at != std::string::npos; at = body.find("$d"))
                  body.replace(at, 2, delta);
                const Value a = call.Wide(call.Input("prediction", call.shape()));
                const Value b = call.Wide(call.Input("target", call.shape()));
                call.Output("loss", call.g.Reduce(Combine::kMean, call.g.Map(body, {a, b}), AllAxes(call)));
              },
          .example = {{3, 5}}};
}

void BuildCrossEntropy(Call& call) {
  if (!call.Check(call.shape().size() == 2, "cross_entropy takes logits N,C")) return;
  GraphBuilder& g = call.g;
  const Value x = call.Wide(call.Input("logits", call.shape()));
  const Value labels = call.Input("labels", {call.shape()[0]}, DType::kInt64);
  const Value moved = g.Map("a - detach(b)", {x, g.Reduce(Combine::kMax, x, {1}, true)});
  const Value total = g.Reduce(Combine::kSum, g.Map("exp(a)", {moved}), {1});
  const Value picked = g.Add(Gather{1, 1}, {moved, labels});
  call.Output("loss", g.Reduce(Combine::kMean, g.Map("log(a) - b", {total, picked}), {0}));
}

/// a · b / (|a| |b|) of rows.
Value Cosine(Call& call, Value a, Value b) {
  const auto dot = [&](Value x, Value y) { return call.g.Reduce(Combine::kSum, call.g.Map("a * b", {x, y}), {-1}); };
  return call.g.Map("a * rsqrt(maximum(b * c, 1e-16))", {dot(a, b), dot(a, a), dot(b, b)});
}

void BuildCosine(Call& call) {
  if (!call.Check(call.shape().size() == 2, "cosine_loss takes rows N,D")) return;
  const Value a = call.Wide(call.Input("a", call.shape()));
  const Value b = call.Wide(call.Input("b", call.shape()));
  call.Output("loss", call.g.Reduce(Combine::kMean, call.g.Map("1 - a", {Cosine(call, a, b)}), {0}));
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
  call.Output("loss", g.Reduce(Combine::kMean, g.Map("maximum(a - b + c, 0)", {near, far, margin}), {0}));
}

const std::vector<Attribute> kAdam = {{"lr", 1e-3, "learning rate"},
                                      {"beta1", 0.9, "decay of the mean"},
                                      {"beta2", 0.999, "decay of the mean square"},
                                      {"eps", 1e-8, "added to the root"},
                                      {"step", int64_t{1}, "number of this step, from 1"},
                                      {"weight_decay", 0.0, "decoupled for adamw"}};

/// Parameters, gradients and moments in; their successors out.
void BuildAdam(Call& call, bool decoupled) {
  GraphBuilder& g = call.g;
  const Value p = call.Wide(call.Input("p", call.shape()));
  const Value gradient = call.Wide(call.Input("grad", call.shape()));
  const Value m = call.Wide(call.Input("m", call.shape()));
  const Value v = call.Wide(call.Input("v", call.shape()));
  const double beta1 = call.Real("beta1");
  const double beta2 = call.Real("beta2");
  const double lr = call.Real("lr");
  const double decay = call.Real("weight_decay");
  const auto step = static_cast<double>(call.Whole("step"));
  if (!call.Check(step >= 1, "step counts from 1")) return;
  const Value d = decoupled ? gradient : g.Map(fmt::format("a + {} * b", decay), {gradient, p});
  const Value mean = g.Map(fmt::format("{} * a + {} * b", beta1, 1 - beta1), {m, d});
  // A mean square is not negative; its absolute value keeps every input meaningful.
  const Value square = g.Map(fmt::format("{} * abs(a) + {} * b * b", beta2, 1 - beta2), {v, d});
  const Value kept = decoupled ? g.Map(fmt::format("a * {}", 1 - lr * decay), {p}) : p;
  const double mean_scale = lr / (1 - std::pow(beta1, step));
  const double root_scale = 1 / std::sqrt(1 - std::pow(beta2, step));
  call.Output("p_next", g.Map(fmt::format("a - {} * b / (sqrt(c) * {} + {})", mean_scale, root_scale, call.Real("eps")),
                              {kept, mean, square}));
  call.Output("m_next", mean);
  call.Output("v_next", square);
}

void BuildSgd(Call& call) {
  GraphBuilder& g = call.g;
  const Value p = call.Wide(call.Input("p", call.shape()));
  const Value gradient = call.Wide(call.Input("grad", call.shape()));
  const Value v = call.Wide(call.Input("v", call.shape()));
  const Value next =
      g.Map(fmt::format("{} * a + b + {} * c", call.Real("momentum"), call.Real("weight_decay")), {v, gradient, p});
  call.Output("p_next", g.Map(fmt::format("a - {} * b", call.Real("lr")), {p, next}));
  call.Output("v_next", next);
}

/// Gradients scaled so that their norm is at most `max_norm`.
void BuildClip(Call& call) {
  if (!call.Check(!call.shape().empty(), "a scalar has no norm")) return;
  const Value x = call.Wide(call.Input("grad", call.shape()));
  const Value squares = call.g.Reduce(Combine::kSum, call.g.Map("a * a", {x}), AllAxes(call), true);
  call.Output("y",
              call.g.Map(fmt::format("a * minimum({} / (sqrt(b) + 1e-06), 1)", call.Real("max_norm")), {x, squares}));
}

}  // namespace

void AddLosses(std::vector<LibraryOperator>& library) {
  for (const LossRow& row : kLosses) library.push_back(Loss(row));
  const char* one = "one shape: --input-shape 4096,4096";
  library.push_back({"cross_entropy",
                     "cross_entropy(logits[N, C], labels[N]) → loss[]",
                     "mean of -log softmax at the labels",
                     one,
                     {},
                     BuildCrossEntropy,
                     true,
                     {{3, 5}}});
  library.push_back({"cosine_loss",
                     "cosine_loss(a[N, D], b[N, D]) → loss[]",
                     "mean of 1 - cosine of rows",
                     one,
                     {},
                     BuildCosine,
                     true,
                     {{3, 5}}});
  library.push_back({"triplet_loss",
                     "triplet_loss(anchor, positive, negative) → loss[]",
                     "mean of max(|a - p| - |a - n| + margin, 0)",
                     one,
                     {{"margin", 1.0, "distance wanted"}},
                     BuildTriplet,
                     true,
                     {{3, 5}}});
  library.push_back({"adam",
                     "adam(p, grad, m, v) → p_next, m_next, v_next",
                     "one step of Adam",
                     one,
                     kAdam,
                     [](Call& call) { BuildAdam(call, false); },
                     false,
                     {{3, 5}}});
  library.push_back({"adamw",
                     "adamw(p, grad, m, v) → p_next, m_next, v_next",
                     "one step of Adam with decoupled weight decay",
                     one,
                     kAdam,
                     [](Call& call) { BuildAdam(call, true); },
                     false,
                     {{3, 5}}});
  library.push_back({"sgd",
                     "sgd(p, grad, v) → p_next, v_next",
                     "one step of gradient descent with momentum",
                     one,
                     {{"lr", 1e-2, "learning rate"},
                      {"momentum", 0.9, "share of the step before"},
                      {"weight_decay", 0.0, "pull to 0"}},
                     BuildSgd,
                     false,
                     {{3, 5}}});
  library.push_back({"clip_grad_norm",
                     "clip_grad_norm(grad) → y",
                     "grad · min(max_norm / |grad|, 1)",
                     one,
                     {{"max_norm", 1.0, "largest norm"}},
                     BuildClip,
                     false,
                     {{3, 5}}});
}

}  // namespace atunner::graph
