// Operators of the library against loops written out by hand, and what holds for all of them.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>

#include "atunner/base/files.h"
#include "atunner/graph/library/library_support_test.h"

namespace atunner::graph {
namespace {

using testing::HasSubstr;

TEST(Library, IsWellFormed) {
  std::set<std::string> names;
  for (const LibraryOperator& op : Library()) {
    SCOPED_TRACE(op.name);
    EXPECT_TRUE(names.insert(op.name).second) << "twice";
    EXPECT_TRUE(op.signature.starts_with(op.name + "(")) << op.signature;
    EXPECT_FALSE(op.meaning.empty());
    EXPECT_FALSE(op.shape_help.empty());
    EXPECT_FALSE(op.example.empty());
    const DType dtype = op.name.starts_with("bitwise") ? DType::kInt32 : DType::kFloat32;
    const ValidGraph graph = Build({&op, false}, {dtype, op.example, {}}).value();
    size_t at = op.name.size();
    for (NodeId id : graph.inputs()) {  // as the signature says, in its order
      at = op.signature.find(graph.node(id).name, at + 1);
      ASSERT_NE(at, std::string::npos) << graph.node(id).name << " in " << op.signature;
    }
  }
  EXPECT_GT(names.size(), 220u);
}

TEST(Library, EveryOperatorBuildsInEveryFloatTypeAndItsTextIsItself) {
  for (const LibraryOperator& op : Library()) {
    if (op.name.starts_with("bitwise")) continue;
    for (DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (bool backward : {false, true}) {
        if (backward && !op.differentiable) continue;
        SCOPED_TRACE(op.name + " " + std::string(Name(dtype)));
        const auto graph = Build({&op, backward}, {dtype, op.example, {}});
        ASSERT_TRUE(graph.has_value()) << graph.error().ToString();
        const std::string text = Print(*graph);
        EXPECT_EQ(Print(MustParse(text)), text);
      }
    }
  }
}

/// The declared precision of an honest evaluation: close to the exact one, and not the same.
TEST(Library, DeclaredPrecisionIsNearExact) {
  for (const char* name : {"softmax", "layer_norm", "gelu", "batched_matmul", "conv",
                           "attention_gqa", "mse_loss", "cumsum"}) {
    SCOPED_TRACE(name);
    const Found found = *FindInLibrary(name);
    const ValidGraph graph = Build(found, {DType::kBFloat16, found.op->example, {}}).value();
    auto inputs = RandomInputs(graph, 23);
    for (Tensor& input : inputs) {
      for (Cell& cell : input.cells) cell = Rounded(input.dtype, cell);
    }
    const auto exact = RunGraph(graph, inputs).Reals();
    const auto declared = RunGraph(graph, inputs, Precision::kDeclared).Reals();
    double difference = 0;
    double norm = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += (exact[i] - declared[i]) * (exact[i] - declared[i]);
      norm += exact[i] * exact[i];
    }
    EXPECT_GT(difference, 0);
    EXPECT_LT(std::sqrt(difference / norm), 3 * UnitRoundoff(DType::kBFloat16));
  }
}

std::string WithoutBlanks(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

/// The rows in docs/how-to/add-an-operator.md are rows of the tables, and none has 15 lines.
TEST(Library, RowsInTheHowToAreRowsOfTheTables) {
  const std::string root = ATUNNER_SOURCE_DIR;
  std::string tables;
  for (const char* file : {"pointwise.def", "library_reductions.cpp", "library_losses.cpp"})
    tables += WithoutBlanks(ReadFile(root + "/atunner/graph/library/" + file).value());
  std::istringstream page(ReadFile(root + "/docs/how-to/add-an-operator.md").value());
  size_t rows = 0;
  size_t lines = 0;
  std::string row;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("    ")) {
      row += line;
      EXPECT_LT(++lines, 15u) << row;
      continue;
    }
    if (!row.empty()) {
      ++rows;
      EXPECT_NE(tables.find(WithoutBlanks(row)), std::string::npos) << row;
    }
    row.clear();
    lines = 0;
  }
  EXPECT_EQ(rows, 3u) << "pointwise, a reduction, an optimizer";
}

TEST(Library, SaysWhatIsWrong) {
  const auto error = [](const char* name, Shapes shapes, Attributes attributes = {}) {
    return Build(*FindInLibrary(name), {DType::kFloat32, std::move(shapes), std::move(attributes)})
        .error()
        .ToString();
  };
  EXPECT_THAT(error("gelu", {}), HasSubstr("no shape given"));
  EXPECT_THAT(error("gelu", {{4, 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(error("gelu", {{4}, {4}}), HasSubstr("2 shapes are given, it takes 1"));
  EXPECT_THAT(error("add", {{4}, {3}}), HasSubstr("do not broadcast"));
  EXPECT_THAT(error("sum", {{4, 4}}, {{"axes", I(1)}}), HasSubstr("did you mean 'axis'?"));
  EXPECT_THAT(error("sum", {{4, 4}}, {{"axis", I(2)}}), HasSubstr("axis=2"));
  EXPECT_THAT(error("conv", {{1, 3, 5, 5}, {4, 2, 3, 3}}), HasSubstr("C / groups"));
  EXPECT_THAT(error("conv", {{1, 2, 2, 2}, {4, 2, 3, 3}}), HasSubstr("longer than the axis"));
  EXPECT_THAT(error("group_norm", {{1, 3, 4}}), HasSubstr("groups=2 of 3"));
  EXPECT_THAT(error("bitwise_and", {{4}}), HasSubstr("integers or bool"));
  EXPECT_THAT(error("attention_gqa", {{1, 4, 3, 8}}, {{"window", I(-3)}}), HasSubstr("window=-3"));
  EXPECT_FALSE(FindInLibrary("sofmax").has_value());
  EXPECT_FALSE(FindInLibrary("argmax_backward").has_value()) << "places have no derivative";
  EXPECT_TRUE(FindInLibrary("rms-norm-backward").has_value());
}

TEST(Norms, LayerRmsAndGroups) {
  const Case layer = Of("layer_norm", {{3, 7}}, {{"eps", 0.25}});
  const Case rms = Of("rms_norm", {{3, 7}}, {{"eps", 0.25}});
  std::vector<double> want_layer;
  std::vector<double> want_rms;
  for (size_t r = 0; r < 3; ++r) {
    double mean = 0;
    double squares = 0;
    for (size_t c = 0; c < 7; ++c) mean += layer.in(0, r * 7 + c) / 7;
    for (size_t c = 0; c < 7; ++c) squares += std::pow(layer.in(0, r * 7 + c) - mean, 2) / 7;
    double plain = 0;
    for (size_t c = 0; c < 7; ++c) plain += std::pow(rms.in(0, r * 7 + c), 2) / 7;
    for (size_t c = 0; c < 7; ++c) {
      want_layer.push_back((layer.in(0, r * 7 + c) - mean) / std::sqrt(squares + 0.25) *
                               layer.in(1, c) +
                           layer.in(2, c));
      want_rms.push_back(rms.in(0, r * 7 + c) / std::sqrt(plain + 0.25) * rms.in(1, c));
    }
  }
  ExpectNear(layer.outputs[0], want_layer);
  ExpectNear(rms.outputs[0], want_rms);

  // A group, an instance or a batch is a set of elements with moments of its own.
  const auto check = [](const char* name, auto set_of, Attributes attributes = {}) {
    SCOPED_TRACE(name);
    const Case c = Of(name, {{2, 4, 3}}, std::move(attributes));
    std::vector<double> want(24);
    for (size_t i = 0; i < 24; ++i) {
      double count = 0;
      double sum = 0;
      double squares = 0;
      for (size_t j = 0; j < 24; ++j) {
        if (set_of(j) != set_of(i)) continue;
        ++count;
        sum += c.in(0, j);
        squares += c.in(0, j) * c.in(0, j);
      }
      const double mean = sum / count;
      const size_t channel = i / 3 % 4;
      want[i] = (c.in(0, i) - mean) / std::sqrt(squares / count - mean * mean + 1e-5) *
                    c.in(1, channel) +
                c.in(2, channel);
    }
    ExpectNear(c.outputs[0], want, 1e-10);
  };
  check("group_norm", [](size_t i) { return i / 6; }, {{"groups", I(2)}});
  check("instance_norm", [](size_t i) { return i / 3; });
  check("batch_norm", [](size_t i) { return i / 3 % 4; });
}

TEST(Reductions, AlongAxesAndOverAll) {
  const Case std_all = Of("std", {{3, 5}}, {{"axis", std::string("all")}});
  double mean = 0;
  double squares = 0;
  for (size_t i = 0; i < 15; ++i) mean += std_all.in(0, i) / 15;
  for (size_t i = 0; i < 15; ++i) squares += std::pow(std_all.in(0, i) - mean, 2);
  ExpectNear(std_all.outputs[0], {std::sqrt(squares / 14)});
  const Case lse = Of("logsumexp", {{3, 5}}, {{"axis", I(0)}});
  const Case norm = Of("norm", {{3, 5}}, {{"axis", I(0)}, {"p", 3.0}});
  std::vector<double> want_lse(5, 0.0);
  std::vector<double> want_norm(5, 0.0);
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 5; ++c) {
      want_lse[c] += std::exp(lse.in(0, r * 5 + c));
      want_norm[c] += std::pow(std::fabs(norm.in(0, r * 5 + c)), 3);
    }
  for (double& v : want_lse) v = std::log(v);
  for (double& v : want_norm) v = std::cbrt(v);
  ExpectNear(lse.outputs[0], want_lse);
  ExpectNear(norm.outputs[0], want_norm);
  EXPECT_EQ(Of("sum", {{3, 5}}, {{"keep", true}}).outputs[0].shape, (std::vector<int64_t>{3, 1}));
}

TEST(Convolution, IsTheDirectSum) {
  const int64_t stride = 2;
  const int64_t padding = 1;
  const int64_t dilation = 2;
  const Case conv = Of("conv", {{2, 4, 7, 6}, {6, 2, 3, 2}},
                       {{"stride", I(2)}, {"padding", I(1)}, {"dilation", I(2)}, {"groups", I(2)}});
  ASSERT_EQ(conv.outputs[0].shape, (std::vector<int64_t>{2, 6, 3, 3}));
  std::vector<double> want;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t k = 0; k < 6; ++k)
      for (int64_t p = 0; p < 3; ++p)
        for (int64_t q = 0; q < 3; ++q) {
          double sum = 0;
          for (int64_t c = 0; c < 2; ++c)
            for (int64_t r = 0; r < 3; ++r)
              for (int64_t s = 0; s < 2; ++s) {
                const int64_t h = p * stride + r * dilation - padding;
                const int64_t w = q * stride + s * dilation - padding;
                if (h < 0 || h >= 7 || w < 0 || w >= 6) continue;
                const int64_t channel = k / 3 * 2 + c;
                sum += conv.in(0, ((n * 4 + channel) * 7 + h) * 6 + w) *
                       conv.in(1, ((k * 2 + c) * 3 + r) * 2 + s);
              }
          want.push_back(sum);
        }
  ExpectNear(conv.outputs[0], want);
}

TEST(Convolution, TransposedScattersWhatTheOtherGathers) {
  const Case up = Of("conv_transpose", {{1, 4, 3}, {4, 2, 4}},
                     {{"stride", I(2)}, {"padding", I(1)}, {"groups", I(2)}});
  ASSERT_EQ(up.outputs[0].shape, (std::vector<int64_t>{1, 4, 6}));
  std::vector<double> want(4 * 6, 0.0);
  for (int64_t c = 0; c < 4; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t k = 0; k < 2; ++k)
        for (int64_t r = 0; r < 4; ++r) {
          const int64_t place = i * 2 + r - 1;
          if (place < 0 || place >= 6) continue;
          want[(c / 2 * 2 + k) * 6 + place] += up.in(0, c * 3 + i) * up.in(1, (c * 2 + k) * 4 + r);
        }
  ExpectNear(up.outputs[0], want);
}

TEST(Pooling, MaxIgnoresPaddingAndMeanCountsIt) {
  const Attributes attributes = {{"size", I(3)}, {"stride", I(2)}, {"padding", I(1)}};
  const Case top = Of("max_pool", {{1, 2, 5}}, attributes);
  const Case mean = Of("avg_pool", {{1, 2, 5}}, attributes);
  std::vector<double> want_top;
  std::vector<double> want_mean;
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t p = 0; p < 3; ++p) {
      double largest = -INFINITY;
      double sum = 0;
      for (int64_t i = p * 2 - 1; i < p * 2 + 2; ++i) {
        if (i < 0 || i >= 5) continue;
        largest = std::max(largest, top.in(0, c * 5 + i));
        sum += mean.in(0, c * 5 + i);
      }
      want_top.push_back(largest);
      want_mean.push_back(sum / 3);
    }
  ExpectNear(top.outputs[0], want_top);
  ExpectNear(mean.outputs[0], want_mean);
  // A window of nothing but padding has no largest element.
  for (const char* name : {"max_pool", "avg_pool"})
    EXPECT_THAT(Build(*FindInLibrary(name),
                      {DType::kFloat32, {{1, 2, 9}}, {{"size", I(3)}, {"padding", I(2)}}})
                    .error()
                    .ToString(),
                testing::HasSubstr("half a window"));
  const Case whole = Of("adaptive_avg_pool", {{1, 2, 3, 2}}, {{"output", I(1)}});
  EXPECT_EQ(whole.outputs[0].shape, (std::vector<int64_t>{1, 2, 1, 1}));
  const Case cells = Of("adaptive_avg_pool", {{1, 1, 6}}, {{"output", I(2)}});
  ExpectNear(cells.outputs[0], {(cells.in(0, 0) + cells.in(0, 1) + cells.in(0, 2)) / 3,
                                (cells.in(0, 3) + cells.in(0, 4) + cells.in(0, 5)) / 3});
}

TEST(Products, WithTransposesAndTriangles) {
  const Case product = Of("batched_matmul", {{2, 3, 4}, {2, 5, 3}},
                          {{"transpose_a", true}, {"transpose_b", true}});
  std::vector<double> want;
  for (size_t b = 0; b < 2; ++b)
    for (size_t m = 0; m < 4; ++m)
      for (size_t n = 0; n < 5; ++n) {
        double sum = 0;
        for (size_t k = 0; k < 3; ++k)
          sum += product.in(0, (b * 3 + k) * 4 + m) * product.in(1, (b * 5 + n) * 3 + k);
        want.push_back(sum);
      }
  ExpectNear(product.outputs[0], want);
  const Case triangle = Of("triangular_matmul", {{3, 3}, {3, 2}});
  std::vector<double> lower;
  for (size_t m = 0; m < 3; ++m)
    for (size_t n = 0; n < 2; ++n) {
      double sum = 0;
      for (size_t k = 0; k <= m; ++k) sum += triangle.in(0, m * 3 + k) * triangle.in(1, k * 2 + n);
      lower.push_back(sum);
    }
  ExpectNear(triangle.outputs[0], lower);
  const Case quantised = Of("quantized_linear", {{2, 3}, {4, 3}});
  std::vector<double> scaled;
  for (size_t m = 0; m < 2; ++m)
    for (size_t n = 0; n < 4; ++n) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += quantised.in(0, m * 3 + k) * quantised.in(1, n * 3 + k);
      scaled.push_back(sum * quantised.in(2, n));
    }
  ExpectNear(quantised.outputs[0], scaled);
}

TEST(Attention, GroupsMasksAndWindows) {
  const Case a = Of("attention_gqa", {{1, 4, 3, 2}, {1, 2, 5, 2}},
                    {{"causal", true}, {"window", I(3)}, {"scale", 0.7}});
  std::vector<double> want;
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t s = 0; s < 3; ++s) {
      const int64_t last = s + 2;  // queries stand at the end of five keys
      double total = 0;
      double mixed[2] = {0, 0};
      for (int64_t t = std::max<int64_t>(0, last - 2); t <= last; ++t) {
        double score = 0;
        for (int64_t d = 0; d < 2; ++d)
          score += a.in(0, (h * 3 + s) * 2 + d) * a.in(1, (h / 2 * 5 + t) * 2 + d);
        const double weight = std::exp(score * 0.7);
        total += weight;
        for (int64_t d = 0; d < 2; ++d) mixed[d] += weight * a.in(2, (h / 2 * 5 + t) * 2 + d);
      }
      want.push_back(mixed[0] / total);
      want.push_back(mixed[1] / total);
    }
  ExpectNear(a.outputs[0], want);
}

TEST(Rope, TurnsPairs) {
  const Case rope = Of("rope", {{2, 3, 4}}, {{"base", 100.0}});
  std::vector<double> want(24);
  for (size_t b = 0; b < 2; ++b)
    for (size_t s = 0; s < 3; ++s)
      for (size_t i = 0; i < 2; ++i) {
        const double angle = static_cast<double>(s) *
                             std::pow(100.0, -2.0 * static_cast<double>(i) / 4);
        const double x = rope.in(0, (b * 3 + s) * 4 + i);
        const double y = rope.in(0, (b * 3 + s) * 4 + i + 2);
        want[(b * 3 + s) * 4 + i] = x * std::cos(angle) - y * std::sin(angle);
        want[(b * 3 + s) * 4 + i + 2] = y * std::cos(angle) + x * std::sin(angle);
      }
  ExpectNear(rope.outputs[0], want);
}

TEST(Losses, AgreeWithTheirDefinitions) {
  const auto check = [](const char* name, double (*each)(double a, double b), double scale = 1) {
    SCOPED_TRACE(name);
    const Case loss = Of(name, {{3, 5}});
    double sum = 0;
    for (size_t i = 0; i < 15; ++i) sum += each(loss.in(0, i), loss.in(1, i));
    ExpectNear(loss.outputs[0], {sum / 15 * scale}, 1e-11);
  };
  check("mse_loss", [](double a, double b) { return std::pow(a - b, 2); });
  check("l1_loss", [](double a, double b) { return std::fabs(a - b); });
  check("huber_loss", [](double a, double b) {
    return std::fabs(a - b) < 1 ? std::pow(a - b, 2) / 2 : std::fabs(a - b) - 0.5;
  });
  check("smooth_l1_loss", [](double a, double b) {
    return std::fabs(a - b) < 1 ? std::pow(a - b, 2) / 2 : std::fabs(a - b) - 0.5;
  });
  check("hinge_loss", [](double a, double b) { return std::fmax(0, 1 - a * b); });
  check("squared_hinge_loss",
        [](double a, double b) { return std::pow(std::fmax(0, 1 - a * b), 2); });
  check("hinge_embedding_loss", [](double a, double b) { return b > 0 ? a : std::fmax(0, 1 - a); });
  check("log_cosh_loss", [](double a, double b) { return std::log(std::cosh(a - b)); });
  check("focal_loss", [](double a, double b) {
    const double p = 1 / (1 + std::exp(b > 0 ? -a : a));  // of what is right
    return -std::pow(1 - p, 2) * std::log(p);
  });
  check("soft_margin_loss", [](double a, double b) { return std::log(1 + std::exp(-a * b)); });
  check("bce_with_logits", [](double a, double b) {
    const double p = 1 / (1 + std::exp(-a));
    return -b * std::log(p) - (1 - b) * std::log(1 - p);
  });
  check("kl_div", [](double a, double b) { return std::exp(b) * (b - a); });
  check("poisson_nll_loss", [](double a, double b) { return std::exp(a) - b * a; });
  const Case entropy = Of("cross_entropy", {{3, 5}});
  double sum = 0;
  for (size_t r = 0; r < 3; ++r) {
    double total = 0;
    for (size_t c = 0; c < 5; ++c) total += std::exp(entropy.in(0, r * 5 + c));
    sum -= std::log(std::exp(entropy.in(0, r * 5 + static_cast<size_t>(entropy.in(1, r)))) /
                    total) /
           3;
  }
  ExpectNear(entropy.outputs[0], {sum});
  const Case triplet = Of("triplet_loss", {{2, 3}});
  double hinge = 0;
  for (size_t r = 0; r < 2; ++r) {
    double near = 0;
    double far = 0;
    for (size_t i = r * 3; i < r * 3 + 3; ++i) {
      near += std::pow(triplet.in(0, i) - triplet.in(1, i), 2);
      far += std::pow(triplet.in(0, i) - triplet.in(2, i), 2);
    }
    hinge += std::fmax(0, std::sqrt(near) - std::sqrt(far) + 1) / 2;
  }
  ExpectNear(triplet.outputs[0], {hinge}, 1e-5);
}

TEST(Optimizers, TakeTheStepsOfTheirPapers) {
  const Case adam = Of("adamw", {{6}},
                       {{"lr", 0.1}, {"step", I(3)}, {"weight_decay", 0.2}, {"eps", 1e-3}});
  const Case sgd = Of("sgd", {{6}}, {{"lr", 0.1}, {"momentum", 0.8}, {"weight_decay", 0.2}});
  std::vector<double> p_adam;
  std::vector<double> p_sgd;
  for (size_t i = 0; i < 6; ++i) {
    const double m = 0.9 * adam.in(2, i) + 0.1 * adam.in(1, i);
    const double v = 0.999 * std::fabs(adam.in(3, i)) + 0.001 * std::pow(adam.in(1, i), 2);
    const double m_hat = m / (1 - std::pow(0.9, 3));
    const double v_hat = v / (1 - std::pow(0.999, 3));
    p_adam.push_back(adam.in(0, i) * (1 - 0.1 * 0.2) - 0.1 * m_hat / (std::sqrt(v_hat) + 1e-3));
    p_sgd.push_back(sgd.in(0, i) - 0.1 * (0.8 * sgd.in(2, i) + sgd.in(1, i) + 0.2 * sgd.in(0, i)));
  }
  ExpectNear(adam.outputs[0], p_adam, 1e-11);
  ExpectNear(sgd.outputs[0], p_sgd);
}

TEST(Moves, EmbeddingTopKUpsampleTriangle) {
  const Case embedding = Of("embedding", {{5, 3}, {2, 2}});
  std::vector<double> rows;
  for (size_t i = 0; i < 4; ++i)
    for (size_t d = 0; d < 3; ++d)
      rows.push_back(embedding.in(1, static_cast<size_t>(embedding.in(0, i)) * 3 + d));
  ExpectNear(embedding.outputs[0], rows, 0);
  const Case top = Of("topk", {{2, 5}}, {{"k", I(3)}});
  for (size_t r = 0; r < 2; ++r) {
    std::vector<double> row(5);
    for (size_t i = 0; i < 5; ++i) row[i] = top.in(0, r * 5 + i);
    std::ranges::sort(row, std::greater<>());
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(top.outputs[0].cells[r * 3 + k].real, row[k]);
      EXPECT_EQ(top.in(0, r * 5 + static_cast<size_t>(top.outputs[1].cells[r * 3 + k].whole)),
                row[k]);
    }
  }
  const Case up = Of("upsample_nearest", {{1, 1, 2, 2}});
  std::vector<double> wide;
  for (size_t h = 0; h < 4; ++h)
    for (size_t w = 0; w < 4; ++w) wide.push_back(up.in(0, h / 2 * 2 + w / 2));
  ExpectNear(up.outputs[0], wide, 0);
  const Case lower = Of("triangle", {{3, 3}});
  std::vector<double> kept;
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 3; ++c) kept.push_back(c <= r ? lower.in(0, r * 3 + c) : 0);
  ExpectNear(lower.outputs[0], kept, 0);
}

TEST(Dropout, KeepsTheShareItShouldAndScales) {
  const Case dropout = Of("dropout", {{100, 100}}, {{"p", 0.3}});
  size_t kept = 0;
  for (size_t i = 0; i < 10000; ++i) {
    const double y = dropout.outputs[0].cells[i].real;
    if (y == 0) continue;
    ++kept;
    EXPECT_NEAR(y, dropout.in(0, i) / 0.7, 1e-12);
  }
  EXPECT_NEAR(static_cast<double>(kept) / 10000, 0.7, 0.02);
}

}  // namespace
}  // namespace atunner::graph
