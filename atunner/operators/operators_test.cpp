// References against closed forms and independent computations.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "atunner/base/closest_name.h"
#include "atunner/base/random.h"
#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/operators/prefixed_sizes.h"
#include "atunner/operators/task.h"

namespace atunner {
namespace {

using testing::HasSubstr;

struct Instance {
  KernelSpec spec;
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> outputs;
};

Instance Make(const char* name, std::vector<std::vector<int64_t>> shapes,
              Attributes attributes = {}) {
  Instance instance;
  instance.spec = FindOperator(name)
                      ->Instantiate({std::move(shapes), DType::kFloat32, std::move(attributes)})
                      .value();
  Random random(7);
  for (const ArgSpec& arg : instance.spec.args) {
    std::vector<double> values(
        static_cast<size_t>(ShapeOf(arg, instance.spec, instance.spec.dims)->elements));
    if (arg.role == Role::kInput) {
      for (double& v : values) v = random.Normal();
      instance.inputs.push_back(std::move(values));
    } else {
      instance.outputs.push_back(std::move(values));
    }
  }
  return instance;
}

void Compute(Instance& i) {
  ASSERT_TRUE(FindOperator(i.spec.name)->Reference(i.spec, i.spec.dims, i.inputs, i.outputs));
}

// A text of all counts is longer than an expression may be: DenseNet-121 has 600 weights.
TEST(Tasks, HaveBytesOfHundredsOfInputs) {
  std::string inputs = "graph g\ninput x: float32[8, 16]\n";
  std::string sum = "y = slice(x, axis=1, start=0, stop=4)";
  for (int i = 0; i < 200; ++i) {
    inputs += fmt::format("input w{}: float32[8, 2, 2]\n", i);
    sum += fmt::format("\nr{0} = reshape(w{0}, shape=[8, 4])\ny{0} = {1} + r{0}", i,
                       i == 0 ? "y" : fmt::format("y{}", i - 1));
  }
  const auto graph = graph::Parse(inputs + sum + "\noutput y199\n");
  ASSERT_TRUE(graph) << graph.error().ToString();
  const auto spec = SpecOfGraph(*graph, {});
  ASSERT_TRUE(spec) << spec.error().ToString();
  EXPECT_EQ(spec->bytes->EvaluateInt({}).value(), 4 * (8 * 4 + 200 * 8 * 4 + 8 * 4));
}

TEST(Tasks, HaveTheirGraphParsedAndFused) {
  const KernelSpec spec = SpecOfGraph(
                              graph::Parse(
                                  "graph g\ndim N = 1..64\ninput x: float32[N]\n"
                                  "t = cast(exp(x), float16)\ny = cast(t, float32) + 1\noutput y\n")
                                  .value(),
                              {})
                              .value();
  const Task task = Task::Make(spec).value();
  EXPECT_EQ(graph::Print(*task.graph()), spec.oracle.graph);
  EXPECT_EQ(task.graph()->nodes().size(), 3u) << "the graph itself rounds to float16";
  EXPECT_EQ(task.fused()->nodes().size(), 2u);
  const auto prefixed = WithPrefixedSizes(task);
  ASSERT_TRUE(prefixed.has_value());
  EXPECT_TRUE(prefixed->spec().dims.contains("size_N"));
  KernelSpec other = spec;
  other.args[0].name = "z";
  EXPECT_THAT(Task::Make(other).error().ToString(), HasSubstr("not those of its graph"));
  const Task softmax = Task::Make(Make("softmax", {{3, 5}}).spec).value();
  EXPECT_EQ(softmax.graph(), nullptr);
  EXPECT_FALSE(WithPrefixedSizes(softmax).has_value());
}

// An expression with a term for each of a model's tensors was more than the parser takes.
TEST(ManyTensors, OfAModelAreATask) {
  const std::vector<std::vector<int64_t>> shapes(300, {3, 5});
  const KernelSpec spec = Make("adamw", shapes).spec;
  EXPECT_EQ(spec.args.size(), 300u * 7);
  EXPECT_TRUE(spec.dims.empty()) << "the rows of one of them are no batch";
  EXPECT_GT(FlopCount(spec, spec.dims).value(), 300 * 15 * 5);
}

TEST(ManyTensors, EachHasToDoWithItsOwn) {
  using testing::UnorderedElementsAre;
  const auto of = [](const char* name, const char* output) {
    return SourcesOf(Make(name, {{3, 5}, {7}}).spec, output).value();
  };
  EXPECT_THAT(of("adamw", "p_next1"), UnorderedElementsAre("p1", "grad1", "m1", "v1"));
  EXPECT_THAT(of("clip_grad_norm", "y1"), UnorderedElementsAre("grad1"))
      << "the others count by the norm alone";
  const KernelSpec one = Make("relu", {{1, 1}}).spec;
  EXPECT_EQ(SourcesOf(one, one.args.back().name).value().size(), 1u);
  EXPECT_FALSE(SourcesOf(Make("softmax", {{3, 5}}).spec, "y").has_value());
}

// A floor made of products with zeros called every fast kernel too fast to be true.
TEST(TransposedConvolution, ZerosBetweenElementsAreNoWork) {
  const auto flops = [](const char* name, std::vector<std::vector<int64_t>> shapes, int64_t stride,
                        int64_t padding) {
    const KernelSpec spec =
        Make(name, std::move(shapes), {{"stride", stride}, {"padding", padding}}).spec;
    return FlopCount(spec, spec.dims).value();
  };
  EXPECT_DOUBLE_EQ(flops("conv_transpose", {{3, 4, 8, 8}, {4, 6, 4, 4}}, 2, 1),
                   2.0 * 3 * 4 * 6 * 64 * 16);
  EXPECT_DOUBLE_EQ(flops("conv_transpose", {{2, 8, 32}, {8, 4, 16}}, 8, 4),
                   2.0 * 2 * 8 * 4 * 32 * 16);
  EXPECT_DOUBLE_EQ(flops("conv", {{3, 4, 8, 8}, {6, 4, 3, 3}}, 1, 1), 2.0 * 3 * 4 * 6 * 64 * 9);
  EXPECT_DOUBLE_EQ(flops("conv", {{3, 4, 8, 8}, {6, 4, 3, 3}}, 2, 1), 2.0 * 3 * 4 * 6 * 16 * 9);
}

// A floor with the table's bytes in it refused every kernel of its gradient, which needs its shape
// alone.
TEST(ProductsSummed, AreCountedThroughSeveralSums) {
  const auto spec = FindOperator("conv_backward")
                        ->Instantiate(
                            {{{2, 32, 16, 28, 28}, {32, 32, 3, 3, 3}}, DType::kFloat32, {}});
  ASSERT_TRUE(spec) << spec.error().ToString();
  const Operator& oracle = *OracleOf(*spec);
  EXPECT_EQ(oracle.ProductsSummed(*spec, spec->dims, "dx"), 32 * 27)
      << "products of the filters, folded by taps";
  EXPECT_EQ(oracle.ProductsSummed(*spec, spec->dims, "dw"), 2 * 14 * 26 * 26);
  const auto transposed = FindOperator("conv_transpose_backward")
                              ->Instantiate({{{2, 64, 7, 7}, {64, 32, 4, 4}},
                                             DType::kFloat32,
                                             {{"stride", int64_t{2}}}});
  ASSERT_TRUE(transposed) << transposed.error().ToString();
  EXPECT_EQ(OracleOf(*transposed)->ProductsSummed(*transposed, transposed->dims, "dx"), 32 * 16)
      << "a part of a sum";
  const auto softmax = FindOperator("log_softmax")->Instantiate({{{64, 64}}, DType::kFloat32, {}});
  ASSERT_TRUE(softmax) << softmax.error().ToString();
  EXPECT_EQ(OracleOf(*softmax)->ProductsSummed(*softmax, softmax->dims, "y"), 0);
}

TEST(TermsOfFewSums, AreThoseOfTheLongest) {
  const auto terms = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                        const char* output) {
    const KernelSpec spec =
        FindOperator(name)->Instantiate({std::move(shapes), DType::kFloat64, {}}).value();
    return OracleOf(spec)->TermsOfFewSums(spec, spec.dims, output, 16);
  };
  EXPECT_EQ(terms("softmax", {{5, 1651}}, "y"), 1651);
  EXPECT_EQ(terms("softmax", {{16, 1651}}, "y"), 0) << "many";
  EXPECT_EQ(terms("batch_norm", {{4, 3, 8, 8}}, "y"), 4 * 64);
  EXPECT_EQ(terms("batch_norm_backward", {{4, 3, 8, 8}}, "dbias"), 4 * 64);
  EXPECT_EQ(terms("relu", {{5, 5}}, "y"), 0);
}

TEST(UnreadInputs, AreNoTraffic) {
  const KernelSpec spec = Make("embedding_backward", {{1000, 64}, {500}}, {}).spec;
  EXPECT_DOUBLE_EQ(MinimumBytes(spec, spec.dims).value(), 500 * 8 + 500 * 64 * 4 + 1000 * 64 * 4);
}

// A floor made of products with masked keys refused every kernel that leaves them out.
TEST(MaskedProducts, AreNoWork) {
  const auto share = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                        Attributes attributes, double all) {
    const KernelSpec spec = Make(name, std::move(shapes), attributes).spec;
    return FlopCount(spec, spec.dims).value() / all;
  };
  const double products =
      // of maps and sums there are some more, 1 % of these a scalar operator
      2.0 * 2 * 4096 * 4096 * 128;
  const std::vector<std::vector<int64_t>> queries = {{1, 1, 4096, 128}};
  EXPECT_GT(share("attention_gqa", queries, {}, products), 1);
  EXPECT_NEAR(share("attention_gqa", queries, {{"causal", true}}, products), 0.53, 0.04);
  EXPECT_LT(share("attention_gqa", queries, {{"causal", true}, {"window", int64_t{256}}}, products),
            0.12);
  EXPECT_NEAR(share("attention_gqa", {{1, 1, 1024, 128}, {1, 1, 4096, 128}}, {{"causal", true}},
                    products / 4),
              0.91, 0.05);
  EXPECT_LT(share("attention_varlen", queries, {}, products), 0.06);
  EXPECT_NEAR(share("triangular_matmul", {{512, 512}, {512, 512}}, {}, 2.0 * 512 * 512 * 512), 0.5,
              0.01);
  EXPECT_NEAR(share("triangular_matmul", {{200, 200}, {200, 512}}, {{"upper", true}},
                    2.0 * 200 * 200 * 512),
              0.5, 0.01);
}

TEST(Softmax, RowsSumToOneAndShiftDoesNotMatter) {
  Instance a = Make("softmax", {{3, 5, 17}});
  Compute(a);
  for (size_t r = 0; r < 15; ++r) {
    double sum = 0;
    for (size_t i = 0; i < 17; ++i) sum += a.outputs[0][r * 17 + i];
    EXPECT_NEAR(sum, 1.0, 1e-14);
  }
  Instance b = a;
  for (double& v : b.inputs[0]) v += 1000;
  Compute(b);
  for (size_t i = 0; i < a.outputs[0].size(); ++i)
    EXPECT_NEAR(a.outputs[0][i], b.outputs[0][i], 1e-12);
}

/// Central differences of `forward`'s output dotted with `dy`, for input `which`.
std::vector<double> NumericGradient(Instance forward, const std::vector<double>& dy, size_t which) {
  std::vector<double> gradient;
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < forward.inputs[which].size(); ++i) {
    double sides[2];
    for (int s = 0; s < 2; ++s) {
      Instance moved = forward;
      moved.inputs[which][i] += s ? kStep : -kStep;
      Compute(moved);
      sides[s] = 0;
      for (size_t k = 0; k < dy.size(); ++k) sides[s] += moved.outputs[0][k] * dy[k];
    }
    gradient.push_back((sides[1] - sides[0]) / (2 * kStep));
  }
  return gradient;
}

TEST(SoftmaxBackward, IsTheDerivative) {
  Instance forward = Make("softmax", {{2, 7}});
  Compute(forward);
  Instance backward = Make("softmax_backward", {{2, 7}});
  backward.inputs[0] = forward.outputs[0];
  Compute(backward);
  const auto numeric = NumericGradient(forward, backward.inputs[1], 0);
  for (size_t i = 0; i < numeric.size(); ++i) EXPECT_NEAR(backward.outputs[0][i], numeric[i], 1e-8);
}

TEST(LayerNormBackward, IsTheDerivativeForAllThree) {
  Instance forward = Make("layernorm", {{3, 6}});
  Instance backward = Make("layernorm_backward", {{3, 6}});
  backward.inputs[0] = forward.inputs[0];
  backward.inputs[2] = forward.inputs[1];
  Compute(backward);
  for (size_t which = 0; which < 3; ++which) {
    const auto numeric = NumericGradient(forward, backward.inputs[1], which);
    for (size_t i = 0; i < numeric.size(); ++i)
      EXPECT_NEAR(backward.outputs[which][i], numeric[i], 1e-6) << which;
  }
}

TEST(Attention, IsSoftmaxBetweenTwoProducts) {
  Instance attention = Make("flash-attention", {{1, 1, 5, 4}}, {{"causal", true}});
  Compute(attention);
  const auto& in = attention.inputs;
  for (size_t row = 0; row < 5; ++row) {
    Instance softmax = Make("softmax", {{1, static_cast<int64_t>(row + 1)}});
    for (size_t key = 0; key <= row; ++key) {
      double dot = 0;
      for (size_t d = 0; d < 4; ++d) dot += in[0][row * 4 + d] * in[1][key * 4 + d];
      softmax.inputs[0][key] = dot * 0.5;
    }
    Compute(softmax);
    for (size_t d = 0; d < 4; ++d) {
      double want = 0;
      for (size_t key = 0; key <= row; ++key) want += softmax.outputs[0][key] * in[2][key * 4 + d];
      EXPECT_NEAR(attention.outputs[0][row * 4 + d], want, 1e-12);
    }
  }
}

TEST(Conv2d, OneByOneIsMatmul) {
  Instance conv = Make("conv2d", {{2, 3, 5, 4}, {6, 1, 1}});
  Compute(conv);
  for (size_t pixel = 0; pixel < 30; ++pixel) {
    for (size_t k = 0; k < 6; ++k) {
      double want = 0;
      for (size_t c = 0; c < 4; ++c)
        want += conv.inputs[0][pixel * 4 + c] * conv.inputs[1][k * 4 + c];
      EXPECT_NEAR(conv.outputs[0][pixel * 6 + k], want, 1e-12);
    }
  }
  EXPECT_EQ(
      Make("conv2d", {{1, 7, 7, 1}, {1, 3, 3}}, {{"stride", int64_t{2}}, {"padding", int64_t{1}}})
          .spec.dims.at("P"),
      4);
}

/// Arguments of the task, and how its oracle is known.
std::string TaskOf(const char* name, std::vector<std::vector<int64_t>> shapes,
                   Attributes attributes = {}, DType dtype = DType::kFloat32) {
  const KernelSpec spec =
      FindOperator(name)->Instantiate({std::move(shapes), dtype, std::move(attributes)}).value();
  std::string text = spec.oracle.kind == Oracle::Kind::kGraph ? "graph" : spec.oracle.operator_name;
  for (const ArgSpec& arg : spec.args) text += " " + arg.name;
  return text;
}

TEST(OneOperatorOfEachName, TheGraphTakesWhatTheClassDoesNot) {
  EXPECT_EQ(TaskOf("softmax", {{4, 8}}), "softmax x y");
  EXPECT_EQ(TaskOf("softmax", {{4, 8}}, {{"axis", int64_t{-1}}}), "softmax x y");
  EXPECT_EQ(TaskOf("softmax", {{4, 8}}, {{"axis", int64_t{0}}}), "graph x y");
  EXPECT_EQ(TaskOf("softmax", {{4, 8}}, {}, DType::kFloat64), "graph x y");
  EXPECT_EQ(TaskOf("softmax_backward", {{4, 8}}), "softmax_backward y dy dx");
  EXPECT_EQ(TaskOf("softmax_backward", {{4, 8}}, {{"axis", int64_t{0}}}), "graph y dy dx");
  EXPECT_EQ(TaskOf("layer_norm", {{4, 8}}), "layernorm x weight bias y");
  EXPECT_EQ(TaskOf("layer-norm-backward", {{4, 8}}, {{"wrt", std::string("weight")}}),
            "graph x dy dweight");
  EXPECT_EQ(TaskOf("matmul", {{4, 8}, {8, 2}}), "matmul a b c");
  EXPECT_EQ(TaskOf("matmul", {{4, 8}, {2, 8}}, {{"transpose_b", true}}), "graph a b c");
  EXPECT_EQ(TaskOf("matmul", {{3, 4, 8}, {3, 8, 2}}), "graph a b c");
  // A type that only the graph takes: M,N,K are sizes there, too, and not the shape of both
  // operands.
  const auto wide = FindOperator("matmul")->Instantiate({{{8, 8, 8}}, DType::kFloat64, {}});
  ASSERT_TRUE(wide) << wide.error().ToString();
  EXPECT_EQ(ShapeOf(wide->args[2], *wide, wide->dims)->elements, 64);
  const auto turned = FindOperator("matmul")->Instantiate(
      {{{3, 5, 7}}, DType::kFloat32, {{"transpose_a", true}, {"transpose_b", true}}});
  ASSERT_TRUE(turned) << turned.error().ToString();
  EXPECT_EQ(ShapeOf(turned->args[0], *turned, turned->dims)->extents, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(ShapeOf(turned->args[1], *turned, turned->dims)->extents, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(TaskOf("attention", {{1, 2, 8, 4}}), "flash_attention q k v y");
  EXPECT_EQ(TaskOf("attention", {{1, 4, 8, 4}, {1, 2, 8, 4}}, {{"window", int64_t{4}}}),
            "graph q k v y");
  std::vector<std::string> names;
  for (const Operator* each : AllOperators()) {
    EXPECT_EQ(FindOperator(each->info().name), each);
    names.push_back(each->info().name);
  }
  EXPECT_EQ(std::ranges::count(names, "softmax"), 1);
  EXPECT_EQ(std::ranges::count(names, "layer_norm"), 0);
}

TEST(Instantiate, TakesInfinityByItsName) {
  Instance largest = Make("norm", {{2, 3}}, {{"p", std::string("inf")}});
  largest.inputs[0] = {1, -4, 2, 0, 0.5, -0.25};
  ASSERT_TRUE(OracleOf(largest.spec)
                  ->Reference(largest.spec, largest.spec.dims, largest.inputs, largest.outputs));
  EXPECT_EQ(largest.outputs[0], (std::vector<double>{4, 0.5}));
}

TEST(Instantiate, SaysWhatIsWrong) {
  using std::string_literals::operator""s;
  const auto fail = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                       Attributes attributes = {}) {
    return FindOperator(name)
        ->Instantiate({std::move(shapes), DType::kFloat32, std::move(attributes)})
        .error()
        .ToString();
  };
  EXPECT_THAT(fail("softmax", {{8, 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(fail("softmax", {}), HasSubstr("one shape"));
  EXPECT_THAT(fail("softmax", {{int64_t{1} << 20, int64_t{1} << 20}}), HasSubstr("2^40"));
  EXPECT_THAT(fail("matmul", {{3, 4}}), HasSubstr("M,N,K"));
  EXPECT_THAT(fail("conv2d", {{1, 2, 2, 1}, {1, 5, 5}}), HasSubstr("larger"));
  EXPECT_THAT(fail("layernorm", {{8, 8}}, {{"epsilon", 1.0}}), HasSubstr("epsilon"));
  EXPECT_THAT(fail("layernorm", {{8, 8}}, {{"eps", -1.0}}), HasSubstr("positive"));
  EXPECT_THAT(fail("rms_norm", {{8, 8}}, {{"eps", "abc"s}}), HasSubstr("'abc' is no number"));
  EXPECT_THAT(fail("sum", {{8, 8}}, {{"keep", "no"s}}), HasSubstr("neither true nor false"));
  EXPECT_THAT(fail("sum", {{8, 8}}, {{"axis", "x"s}}), HasSubstr("or all"));
  EXPECT_THAT(fail("cumsum", {{8, 8}}, {{"axis", "all"s}}),
              HasSubstr("axis=all of a tensor of rank 2"));
  EXPECT_THAT(fail("max_pool", {{1, 1, 8, 8}}, {{"stride", 1.5}}),
              HasSubstr("'1.5' is no whole number"));
  EXPECT_EQ(FindOperator("sofmax"), nullptr);
  const std::string names[] = {"softmax", "matmul"};
  EXPECT_EQ(ClosestName("sofmax", names), "softmax");
  EXPECT_EQ(ClosestName("zzzz", names), "");
}

}  // namespace
}  // namespace atunner
