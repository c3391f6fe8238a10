// Recurrent layers: RNN, GRU and LSTM, unrolled over the steps of the sequence.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

constexpr int64_t kMostSteps = 4096;

/// An activation as an expression over a.
std::optional<std::string> ActivationOf(const OnnxCall& call, std::string_view name, size_t index) {
  const auto attribute = [&](const char* list, double fallback) {
    const auto* found = call.Find(list);
    return found != nullptr && index < found->reals.size() ? found->reals[index] : fallback;
  };
  if (name == "Sigmoid") return "sigmoid(a)";
  if (name == "Tanh") return "tanh(a)";
  if (name == "Relu") return "select(a <= 0, 0, a)";
  if (name == "Softsign") return "a / (1 + abs(a))";
  if (name == "Softplus") return "maximum(a, 0) + log1p(exp(-abs(a)))";
  if (name == "Affine")
    return fmt::format("a * {} + {}", attribute("activation_alpha", 1),
                       attribute("activation_beta", 0));
  if (name == "LeakyRelu")
    return fmt::format("select(a >= 0, a, a * {})", attribute("activation_alpha", 0.01));
  if (name == "HardSigmoid")
    return fmt::format("maximum(0, minimum(1, a * {} + {}))", attribute("activation_alpha", 0.2),
                       attribute("activation_beta", 0.5));
  return std::nullopt;
}

/// The weights of one direction: [gates · hidden, …], and what the steps share.
struct Direction {
  Value w, r;                   ///< [gates · hidden, inputs], [gates · hidden, hidden]
  std::optional<Value> wb, rb;  ///< [gates · hidden]
  std::optional<Value> p;       ///< [3 · hidden]: LSTM's peepholes
  std::vector<std::string> activations;
  std::optional<double> clip;
};

struct State {
  Value h, c;  ///< [batch, hidden]; c is LSTM's
};

class Layer {
 public:
  Layer(OnnxCall& call, std::string_view kind)
      : call_(call), kind_(kind), hidden_(call.Whole("hidden_size", 0)) {}

  std::vector<Value> Build();

 private:
  bool Check();
  int64_t Gates() const { return kind_ == "lstm" ? 4 : kind_ == "gru" ? 3 : 1; }
  Direction DirectionOf(int64_t number);
  State InitialOf(int64_t number);
  Value Part(Value x, int64_t axis, int64_t number, int64_t size) {
    return call_.SliceOf(x, axis, number * size, (number + 1) * size);
  }
  /// The input of one direction: [1, …] without its first axis.
  Value Of(Value x, int64_t number) {
    Integers sizes = call_.SizesOf(x);
    sizes.erase(sizes.begin());
    return call_.Reshape(Part(x, 0, number, 1), sizes);
  }
  Value Map(const Direction& d, size_t activation, Value x) {
    if (d.clip) x = call_.g.Map(fmt::format("maximum({}, minimum({}, a))", -*d.clip, *d.clip), {x});
    return call_.g.Map(d.activations[activation], {x});
  }
  Value Affine(Value x, Value weights, const std::optional<Value>& bias) {
    const Value y = call_.g.Contract("mk,nk->mn", x, weights);
    return bias ? call_.g.Map("a + b", {y, *bias}) : y;
  }
  Value Gate(Value gates, int64_t number) { return Part(gates, 1, number, hidden_); }
  State RnnStep(const Direction& d, Value x, const State& before);
  State GruStep(const Direction& d, Value x, const State& before);
  State LstmStep(const Direction& d, Value x, const State& before);
  State Step(const Direction& d, Value x, const State& before) {
    if (kind_ == "rnn") return RnnStep(d, x, before);
    return kind_ == "gru" ? GruStep(d, x, before) : LstmStep(d, x, before);
  }
  Value StepInput(int64_t step);

  OnnxCall& call_;
  std::string_view kind_;
  int64_t hidden_;
  int64_t directions_ = 1, steps_ = 0, batch_ = 0;
  bool batch_first_ = false;
  Value x_;
};

bool Layer::Check() {
  x_ = call_.In(0);
  batch_first_ = call_.Whole("layout", 0) != 0;
  if (!call_.Check(call_.Rank(x_) == 3 && hidden_ >= 1, "a recurrent layer of this shape"))
    return false;
  steps_ = call_.Size(x_, batch_first_ ? 1 : 0);
  batch_ = call_.Size(x_, batch_first_ ? 0 : 1);
  directions_ = call_.Text("direction", "forward") == "bidirectional" ? 2 : 1;
  if (steps_ > kMostSteps) {
    call_.Unsupported(
        fmt::format("a sequence of {} steps; at most {} are unrolled", steps_, kMostSteps));
    return false;
  }
  if (!call_.Has(4)) return true;
  const Integers lengths = call_.Wholes(4);
  const bool whole = std::ranges::all_of(lengths, [&](int64_t each) { return each == steps_; });
  if (!whole) call_.Unsupported("sequences of different lengths");
  return whole;
}

Direction Layer::DirectionOf(int64_t number) {
  Direction d;
  d.w = Of(call_.In(1), number);
  d.r = Of(call_.In(2), number);
  if (call_.Has(3)) {
    const Value b = Of(call_.In(3), number);
    d.wb = Part(b, 0, 0, Gates() * hidden_);
    d.rb = Part(b, 0, 1, Gates() * hidden_);
  }
  if (kind_ == "lstm" && call_.Has(7)) d.p = Of(call_.In(7), number);
  if (call_.HasAttribute("clip")) d.clip = call_.Real("clip", 0);
  std::vector<std::string> names = kind_ == "rnn" ? std::vector<std::string>{"Tanh"}
                                   : kind_ == "gru"
                                       ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                       : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  const size_t per_direction = names.size();
  const auto first = static_cast<size_t>(number) * per_direction;
  const auto* stated = call_.Find("activations");
  for (size_t i = 0; i < per_direction; ++i) {
    const bool given = stated != nullptr && first + i < stated->texts.size();
    const std::string& name = given ? stated->texts[first + i] : names[i];
    const auto body = ActivationOf(call_, name, first + i);
    if (!body) call_.Unsupported("the activation " + name);
    d.activations.push_back(body.value_or("a"));
  }
  return d;
}

State Layer::InitialOf(int64_t number) {
  const DType type = call_.TypeOf(x_);
  const auto given = [&](size_t input) {
    if (!call_.Has(input)) return call_.Filled({batch_, hidden_}, type, 0);
    Value state = call_.In(input);
    if (batch_first_) state = call_.g.Transpose(state, {1, 0, 2});
    return Of(state, number);
  };
  return State{given(5), kind_ == "lstm" ? given(6) : Value{}};
}

Value Layer::StepInput(int64_t step) {
  const Value x = call_.SliceOf(x_, batch_first_ ? 1 : 0, step, step + 1);
  return call_.Reshape(x, {batch_, call_.Size(x_, 2)});
}

/// h' = f(x · Wᵀ + h · Rᵀ + b).
State Layer::RnnStep(const Direction& d, Value x, const State& before) {
  const Value sum = call_.g.Map("a + b", {Affine(x, d.w, d.wb), Affine(before.h, d.r, d.rb)});
  return {Map(d, 0, sum), {}};
}

/// Gates z, r, h in this order. With `linear_before_reset` the reset gate multiplies the product.
State Layer::GruStep(const Direction& d, Value x, const State& before) {
  const Value from_x = Affine(x, d.w, d.wb);
  const Value from_h = Affine(before.h, d.r, d.rb);
  const auto gate = [&](int64_t number) {
    return Map(d, 0, call_.g.Map("a + b", {Gate(from_x, number), Gate(from_h, number)}));
  };
  const Value z = gate(0);
  const Value r = gate(1);
  Value inner;
  if (call_.Whole("linear_before_reset", 0) != 0) {
    inner = call_.g.Map("a * b", {r, Gate(from_h, 2)});
  } else {
    const Value rows = Part(d.r, 0, 2, hidden_);
    const auto bias = d.rb ? std::optional(Part(*d.rb, 0, 2, hidden_)) : std::nullopt;
    inner = Affine(call_.g.Map("a * b", {r, before.h}), rows, bias);
  }
  const Value h = Map(d, 1, call_.g.Map("a + b", {Gate(from_x, 2), inner}));
  return {call_.g.Map("(1 - a) * b + a * c", {z, h, before.h}), {}};
}

/// Gates i, o, f, c in this order; peepholes of i, o, f.
State Layer::LstmStep(const Direction& d, Value x, const State& before) {
  const Value gates = call_.g.Map("a + b", {Affine(x, d.w, d.wb), Affine(before.h, d.r, d.rb)});
  const auto gate = [&](int64_t number, Value cell) {
    const Value sum = Gate(gates, number);
    if (!d.p) return Map(d, 0, sum);
    return Map(d, 0, call_.g.Map("a + b * c", {sum, Part(*d.p, 0, number, hidden_), cell}));
  };
  const Value i = gate(0, before.c);
  const Value f = call_.Whole("input_forget", 0) != 0 ? call_.g.Map("1 - a", {i})
                                                      : gate(2, before.c);
  const Value candidate = Map(d, 1, Gate(gates, 3));
  const Value c = call_.g.Map("a * b + c * d", {f, before.c, i, candidate});
  const Value o = gate(1, c);
  return {call_.g.Map("a * b", {o, call_.g.Map(d.activations[2], {c})}), c};
}

std::vector<Value> Layer::Build() {
  if (!Check()) return {};
  const std::string stated = call_.Text("direction", "forward");
  std::vector<std::vector<Value>> outputs(static_cast<size_t>(steps_));
  std::vector<Value> last_h;
  std::vector<Value> last_c;
  for (int64_t number = 0; number < directions_ && call_.g.ok(); ++number) {
    const bool backwards = number == 1 || stated == "reverse";
    const Direction d = DirectionOf(number);
    State state = InitialOf(number);
    for (int64_t i = 0; i < steps_ && call_.g.ok(); ++i) {
      const int64_t step = backwards ? steps_ - 1 - i : i;
      state = Step(d, StepInput(step), state);
      outputs[static_cast<size_t>(step)].push_back(call_.Reshape(state.h, {1, 1, batch_, hidden_}));
    }
    last_h.push_back(call_.Reshape(state.h, {1, batch_, hidden_}));
    if (kind_ == "lstm") last_c.push_back(call_.Reshape(state.c, {1, batch_, hidden_}));
  }
  if (!call_.g.ok()) return {};
  const auto joined = [&](const std::vector<Value>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : call_.g.Add(graph::Concat{axis}, parts);
  };
  std::vector<Value> steps;
  for (const auto& step : outputs) steps.push_back(joined(step, 1));
  std::vector<Value> results{joined(steps, 0), joined(last_h, 0)};
  if (kind_ == "lstm") results.push_back(joined(last_c, 0));
  if (!batch_first_) return results;
  results[0] = call_.g.Transpose(results[0], {2, 0, 1, 3});
  for (size_t i = 1; i < results.size(); ++i) results[i] = call_.g.Transpose(results[i], {1, 0, 2});
  return results;
}

}  // namespace

std::vector<Value> Recurrent(OnnxCall& call, std::string_view text) {
  return Layer(call, text).Build();
}

}  // namespace atunner::importers::onnx
