// Every pointwise operator against a formula of its own, in the C library's functions.
#include <array>
#include <cmath>
#include <functional>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

using Formula = std::function<double(double a, double b, double c)>;

double Phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double Clamp(double x, double low, double high) { return std::fmin(std::fmax(x, low), high); }
double FlooredMod(double a, double b) { return a - b * std::floor(a / b); }

#define F(expression)                                                            \
  [](double a, [[maybe_unused]] double b, [[maybe_unused]] double c) -> double { \
    return expression;                                                           \
  }
const std::map<std::string, Formula> kFormulas = {
    {"clamp_tensor", F(std::fmin(std::fmax(a, b), c))},
    {"entr", F(a < 0 ? -INFINITY : -a * std::log(a))},
    {"gelu_quick", F(a / (1 + std::exp(-1.702 * a)))},
    {"isfinite", F(std::isfinite(a))},
    {"ldexp", F(a* std::pow(2, b))},
    {"logaddexp2", F(std::log2(std::pow(2, a) + std::pow(2, b)))},
    {"logical_and", F(a != 0 && b != 0)},
    {"logical_not", F(a == 0)},
    {"logical_or", F(a != 0 || b != 0)},
    {"logical_xor", F((a != 0) != (b != 0))},
    {"ndtr", F(Phi(a))},
    {"signbit", F(std::signbit(a))},
    {"xlog1py", F(a* std::log1p(b))},
    {"geglu_tanh",
     F(b* a / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * std::pow(a, 3)))))},
    {"glu", F(a* Logistic(b))},
    {"abs", F(std::abs(a))},
    {"acos", F(std::acos(a))},
    {"acosh", F(std::acosh(a))},
    {"add", F(a + b)},
    {"addcdiv", F(a + b / c)},
    {"addcmul", F(a + b * c)},
    {"asin", F(std::asin(a))},
    {"asinh", F(std::asinh(a))},
    {"atan", F(std::atan(a))},
    {"atan2", F(std::atan2(a, b))},
    {"atanh", F(std::atanh(a))},
    {"cbrt", F(std::cbrt(a))},
    {"ceil", F(std::ceil(a))},
    {"celu", F(std::fmax(a, 0) + std::fmin(0, std::exp(a) - 1))},
    {"clamp", F(Clamp(a, -1, 1))},
    {"clamp_min", F(std::fmax(a, 0))},
    {"clamp_max", F(std::fmin(a, 0))},
    {"copysign", F(std::copysign(a, b))},
    {"cos", F(std::cos(a))},
    {"cosh", F(std::cosh(a))},
    {"deg2rad", F(a* M_PI / 180)},
    {"digamma", F((std::lgamma(a + 1e-5) - std::lgamma(a - 1e-5)) / 2e-5)},
    {"div", F(a / b)},
    {"elu", F(a > 0 ? a : std::exp(a) - 1)},
    {"eq", F(a == b)},
    {"erf", F(std::erf(a))},
    {"erfc", F(1 - std::erf(a))},
    {"exp", F(std::exp(a))},
    {"exp2", F(std::pow(2, a))},
    {"expm1", F(std::expm1(a))},
    {"floor", F(std::floor(a))},
    {"floor_divide", F(std::floor(a / b))},
    {"fmax", F(std::fmax(a, b))},
    {"fmin", F(std::fmin(a, b))},
    {"fmod", F(std::fmod(a, b))},
    {"frac", F(a - std::trunc(a))},
    {"ge", F(a >= b)},
    {"gelu", F(a* Phi(a))},
    {"gelu_tanh",
     F(a / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * std::pow(a, 3)))))},
    {"gt", F(a > b)},
    {"hardshrink", F(a > 0.5 || a < -0.5 ? a : 0)},
    {"hardsigmoid", F(Clamp(a / 6 + 0.5, 0, 1))},
    {"hardswish", F(a* Clamp(a / 6 + 0.5, 0, 1))},
    {"hardtanh", F(Clamp(a, -1, 1))},
    {"heaviside", F(a > 0   ? 1
                    : a < 0 ? 0
                            : b)},
    {"hypot", F(std::sqrt(a* a + b * b))},
    {"isinf", F(std::isinf(a))},
    {"isnan", F(std::isnan(a))},
    {"le", F(a <= b)},
    {"leaky_relu", F(a > 0 ? a : 0.01 * a)},
    {"lerp", F(a * (1 - c) + b * c)},
    {"lgamma", F(std::lgamma(a))},
    {"log", F(std::log(a))},
    {"log10", F(std::log10(a))},
    {"log1p", F(std::log1p(a))},
    {"log2", F(std::log2(a))},
    {"logaddexp", F(std::log(std::exp(a) + std::exp(b)))},
    {"logit", F(std::log(a) - std::log(1 - a))},
    {"log_sigmoid", F(std::log(Logistic(a)))},
    {"lt", F(a < b)},
    {"maximum", F(a > b ? a : b)},
    {"minimum", F(a < b ? a : b)},
    {"mish", F(a* std::tanh(std::log1p(std::exp(a))))},
    {"mul", F(a* b)},
    {"nan_to_num", F(a)},
    {"ne", F(a != b)},
    {"neg", F(-a)},
    {"pow", F(std::pow(a, b))},
    {"pow_scalar", F(std::pow(a, 2))},
    {"prelu", F(a > 0 ? a : a * b)},
    {"rad2deg", F(a * 180 / M_PI)},
    {"reciprocal", F(1 / a)},
    {"relu", F(a > 0 ? a : 0)},
    {"relu6", F(Clamp(a, 0, 6))},
    {"remainder", F(FlooredMod(a, b))},
    {"round", F(std::rint(a))},
    {"rsqrt", F(std::pow(a, -0.5))},
    {"rsub", F(b - a)},
    {"selu", F(1.05070098735548 * (a > 0 ? a : 1.67326324235438 * (std::exp(a) - 1)))},
    {"sigmoid", F(Logistic(a))},
    {"sign", F(a > 0   ? 1
               : a < 0 ? -1
                       : 0)},
    {"silu", F(a* Logistic(a))},
    {"sin", F(std::sin(a))},
    {"sinc", F(std::sin(M_PI* a) / (M_PI * a))},
    {"sinh", F(std::sinh(a))},
    {"softplus", F(std::log(1 + std::exp(a)))},
    {"softshrink", F(a > 0.5    ? a - 0.5
                     : a < -0.5 ? a + 0.5
                                : 0)},
    {"softsign", F(a / (1 + std::fabs(a)))},
    {"sqrt", F(std::sqrt(a))},
    {"square", F(std::pow(a, 2))},
    {"squared_relu", F(a > 0 ? a * a : 0)},
    {"sub", F(a - b)},
    {"tan", F(std::tan(a))},
    {"tanh", F(std::tanh(a))},
    {"tanhshrink", F(a - std::tanh(a))},
    {"threshold", F(a > 0 ? a : 0)},
    {"trunc", F(std::trunc(a))},
    {"where", F(a > 0 ? b : c)},
    {"xlogy", F(a* std::log(b))},
    {"geglu", F(a* Phi(a) * b)},
    {"reglu", F(a > 0 ? a * b : 0)},
    {"swiglu", F(a / (1 + std::exp(-a)) * b)},
    {"erfinv", F(std::erf(a))},  // the other way round: see below
};
#undef F

/// The operators of integers.
const std::map<std::string, std::function<int32_t(int32_t, int32_t)>> kBits = {
    {"bitwise_and", [](int32_t a, int32_t b) { return a & b; }},
    {"bitwise_or", [](int32_t a, int32_t b) { return a | b; }},
    {"bitwise_xor", [](int32_t a, int32_t b) { return a ^ b; }},
    {"bitwise_not", [](int32_t a, int32_t) { return ~a; }},
    {"bitwise_left_shift", [](int32_t a, int32_t b) { return a * (1 << b); }},
    {"bitwise_right_shift", [](int32_t a, int32_t b) { return a >> b; }},
};

TEST(Pointwise, EveryOperatorAgreesWithItsFormula) {
  size_t checked = 0;
  for (const LibraryOperator& op : Library()) {
    if (!op.pointwise || kBits.contains(op.name)) continue;
    SCOPED_TRACE(op.name);
    const auto formula = kFormulas.find(op.name);
    ASSERT_NE(formula, kFormulas.end()) << "an operator without an independent reference";
    const ValidGraph graph = Build({&op, false}, {DType::kFloat64, {{40}}, {}}).value();
    auto inputs = RandomInputs(graph, 31);
    const bool unit = op.name == "acos" || op.name == "asin" || op.name == "atanh" ||
                      op.name == "logit" || op.name == "erfinv";
    for (Tensor& input : inputs) {
      for (Cell& cell : input.cells) cell.real = unit ? Logistic(cell.real) * 0.98 : cell.real;
      for (size_t i = &input - inputs.data(); op.name.starts_with("logical") && i < 40; i += 3)
        input.cells[i].real = 0;
    }
    const Tensor y = RunGraph(graph, inputs);
    std::vector<double> want;
    for (size_t i = 0; i < 40; ++i) {
      const auto at = [&](size_t k) { return k < inputs.size() ? inputs[k].cells[i].real : 0.0; };
      // The inverse of erf is judged by what erf makes of it.
      want.push_back(op.name == "erfinv" ? at(0) : formula->second(at(0), at(1), at(2)));
    }
    if (op.name == "erfinv") {
      Tensor back = y;
      for (Cell& cell : back.cells) cell.real = std::erf(cell.real);
      ExpectNear(back, want, 1e-14);
    } else {
      ExpectNear(y, want, op.name == "digamma" ? 1e-3 : 1e-11);
    }
    ++checked;
  }
  EXPECT_EQ(checked, kFormulas.size());
}

TEST(Pointwise, BitsOfIntegers) {
  for (const auto& [name, formula] : kBits) {
    SCOPED_TRACE(name);
    const ValidGraph graph = Build(*FindInLibrary(name), {DType::kInt32, {{64}}, {}}).value();
    auto inputs = RandomInputs(graph, 5);
    if (name.ends_with("shift")) {
      for (Cell& cell : inputs[1].cells) cell.whole &= 7;
    }
    const Tensor y = RunGraph(graph, inputs);
    for (size_t i = 0; i < 64; ++i) {
      const auto a = static_cast<int32_t>(inputs[0].cells[i].whole);
      const auto b = inputs.size() > 1 ? static_cast<int32_t>(inputs[1].cells[i].whole) : 0;
      EXPECT_EQ(y.cells[i].whole, formula(a, b));
    }
  }
}

TEST(Pointwise, LargeArgumentsDoNotOverflowWhereTheResultDoesNot) {
  const auto at = [](const char* name, double x) {
    const ValidGraph graph = Build(*FindInLibrary(name), {DType::kFloat64, {{1}}, {}}).value();
    const std::vector<Tensor> inputs(graph.inputs().size(),
                                     Tensor::Of(DType::kFloat64, {1}, std::vector{x}));
    return RunGraph(graph, inputs).cells[0].real;
  };
  EXPECT_EQ(at("softplus", 1000), 1000);
  EXPECT_EQ(at("log_sigmoid", -1000), -1000);
  EXPECT_EQ(at("mish", 1000), 1000);
  EXPECT_EQ(at("silu", -1000), 0);
  EXPECT_EQ(at("logaddexp", 1000), 1000 + std::log(2.0));
  EXPECT_EQ(at("sigmoid", -1000), 0);
}

}  // namespace
/// The result of an operator for one element, in float64 or in float32 arithmetic.
double At(const char* name, double a, Precision precision = Precision::kExact) {
  const auto graph = Build(*FindInLibrary(name), {DType::kFloat32, {{1}}, {}, false});
  std::vector<Tensor> inputs(graph->inputs().size(),
                             Tensor::Of(DType::kFloat32, {1}, std::array{1.0}));
  inputs[0] = Tensor::Of(DType::kFloat32, {1}, std::array{a});
  return Evaluate(*graph, inputs, precision).value()[0].Reals()[0];
}

TEST(LibraryPointwise, TheGradientOfSincHasNoTermsThatCancel) {
  EXPECT_EQ(At("sinc_backward", 0), 0);
  EXPECT_EQ(At("sinc", 0), 1);
  for (const double a : {1e-7, 1e-4, 0.01, 0.1, 0.159, 0.16, 0.3, 1.7}) {
    const double t = M_PI * a;
    const double right = t < 0.3 ? M_PI * (-t / 3 + t * t * t / 30 - std::pow(t, 5) / 840 +
                                           std::pow(t, 7) / 45360)
                                 : (std::cos(t) - std::sin(t) / t) / a;
    const double narrow = static_cast<float>(a);
    EXPECT_NEAR(At("sinc_backward", a) / right, 1, 1e-9) << a;
    EXPECT_NEAR(At("sinc_backward", narrow, Precision::kDeclared) / At("sinc_backward", narrow), 1,
                3e-6)
        << a;
  }
}

TEST(LibraryPointwise, DigammaIsRightBesideItsPoles) {
  for (const double pole : {0.0, -1.0, -2.0}) {
    const double away = 0x1p-22;  // Ψ(-n + d) = -1/d + Ψ(n + 1) + O(d)
    EXPECT_NEAR(At("digamma", pole + away) * away, -1, 1e-5) << pole;
    EXPECT_NEAR(At("digamma", pole - away) * away, 1, 1e-5) << pole;
  }
}

/// The result of an operator for two numbers.
double At(const char* name, double a, double b) {
  const auto graph = Build(*FindInLibrary(name), {DType::kFloat64, {{1}}, {}, false});
  const std::vector<Tensor> inputs = {Tensor::Of(DType::kFloat64, {1}, std::array{a}),
                                      Tensor::Of(DType::kFloat64, {1}, std::array{b})};
  return Evaluate(*graph, inputs).value()[0].Reals()[0];
}

// tests/torch compares all of these with PyTorch, where there is one.
TEST(LibraryPointwise, InfinitiesAndNansAreAsPyTorchHasThem) {
  for (const double a : {-HUGE_VAL, HUGE_VAL, std::nan(""), 1.0})
    EXPECT_EQ(At("isfinite", a), std::isfinite(a)) << a;
  for (const char* name : {"relu", "relu6", "clamp", "hardtanh", "hardshrink", "threshold",
                           "hardsigmoid", "hardswish"})
    EXPECT_TRUE(std::isnan(At(name, NAN))) << name;
  for (const double a : {-HUGE_VAL, HUGE_VAL}) {
    EXPECT_EQ(At("logaddexp", a, a), a);
    EXPECT_EQ(At("logaddexp2", a, a), a);
  }
  EXPECT_EQ(At("heaviside", -INFINITY, 0.5), 0);
  EXPECT_EQ(At("fmax", NAN, 2), 2);
  EXPECT_EQ(At("fmin", 2, NAN), 2);
  EXPECT_EQ(At("digamma", 0.0), -INFINITY);
  EXPECT_EQ(At("xlogy", 0, 0), 0);
  EXPECT_TRUE(std::isnan(At("xlogy", 0, NAN)));
}

TEST(LibraryPointwise, AFlooredQuotientAndItsRestAddUp) {
  EXPECT_EQ(At("floor_divide", 1, 0.1), 9)
      << "0.1 is a little more than a tenth, 1 / 0.1 is rounded to 10";
  EXPECT_EQ(At("floor_divide", -7, 2), -4);
  EXPECT_EQ(At("floor_divide", 1, -INFINITY), -1);
  EXPECT_EQ(At("floor_divide", 1, INFINITY), 0);
  EXPECT_EQ(At("floor_divide", 1, 0.0), INFINITY);
  EXPECT_TRUE(std::isnan(At("floor_divide", INFINITY, 2)));
  for (int i = -40; i <= 40; ++i) {
    const double a = i / 10.0;
    EXPECT_NEAR(At("floor_divide", a, 0.1) * 0.1 + At("remainder", a, 0.1), a, 1e-15) << a;
  }
}

// An input of exactly 0 is nothing rare: padding, dropout, another relu.
TEST(LibraryPointwise, GradientsAtKinksAreOnOneSide) {
  EXPECT_EQ(At("relu_backward", 0), 0);
  EXPECT_EQ(At("relu6_backward", 6), 0);
  EXPECT_EQ(At("hardtanh_backward", -1), 0);
  EXPECT_EQ(At("hardsigmoid_backward", 3), 0);
  EXPECT_EQ(At("clamp_backward", -1), 1);
  EXPECT_EQ(At("clamp_backward", 1), 1);
  EXPECT_EQ(At("clamp_min_backward", 0), 1);
}

TEST(LibraryPointwise, IntegersHaveNoGradients) {
  EXPECT_FALSE(FindInLibrary("bitwise_and_backward"));
  EXPECT_TRUE(FindInLibrary("eq_backward"));
}

}  // namespace atunner::graph
