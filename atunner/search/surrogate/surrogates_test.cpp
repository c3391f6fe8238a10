#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "atunner/search/space/coordinates.h"
#include "atunner/search/surrogate/gaussian_process.h"
#include "atunner/search/surrogate/length_scales.h"
#include "atunner/search/surrogate/regression_forest.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

std::vector<float> Point(Random& random, size_t width) {
  std::vector<float> point;
  for (size_t i = 0; i < width; ++i) point.push_back(static_cast<float>(random.Uniform()));
  return point;
}

double Matern(const std::vector<float>& a, const std::vector<float>& b,
              const Eigen::VectorXf& scales) {
  double squared = 0;
  for (size_t i = 0; i < a.size(); ++i)
    squared += std::pow((a[i] - b[i]) * scales[static_cast<Eigen::Index>(i)], 2);
  const double d = std::sqrt(5 * squared);
  return (1 + d + d * d / 3) * std::exp(-d);
}

/// Candidates that come before, between and after the observations, and values corrected
/// afterwards, against the closed form.
TEST(GaussianProcess, GrownPosteriorEqualsTheClosedForm) {
  Random random(2);
  const Eigen::VectorXf scales = Eigen::Vector3f(0.7f, 1.5f, 2.0f);
  constexpr double kNoise = 0.01;
  GaussianProcess process(scales, kNoise);
  std::vector<std::vector<float>> observed;
  std::vector<std::vector<float>> candidates;
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) {
    candidates.push_back(Point(random, 3));
    process.AddCandidate(candidates.back());
    observed.push_back(Point(random, 3));
    values.push_back(random.Normal());
    ASSERT_EQ(process.Observe(observed.back(), i % 3 ? values.back() : 0.0),
              static_cast<size_t>(i));
  }
  for (size_t i = 0; i < values.size(); ++i) process.Correct(i, values[i]);
  process.Settle();
  const auto n = static_cast<Eigen::Index>(observed.size());
  Eigen::MatrixXd covariance(n, n);
  for (size_t i = 0; i < observed.size(); ++i) {
    for (size_t j = 0; j < observed.size(); ++j)
      covariance(static_cast<Eigen::Index>(i),
                 static_cast<Eigen::Index>(j)) = Matern(observed[i], observed[j], scales) +
                                                 (i == j ? kNoise : 0);
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  const Eigen::VectorXd weights = factor.solve(Eigen::Map<Eigen::VectorXd>(values.data(), n));
  for (size_t c = 0; c < candidates.size(); ++c) {
    Eigen::VectorXd k(n);
    for (size_t i = 0; i < observed.size(); ++i)
      k[static_cast<Eigen::Index>(i)] = Matern(candidates[c], observed[i], scales);
    EXPECT_NEAR(process.mean(c), k.dot(weights), 2e-3);
    EXPECT_NEAR(process.deviation(c), std::sqrt(1 - k.dot(factor.solve(k))), 2e-3);
  }
}

TEST(LengthScales, FindTheCoordinateThatMatters) {
  Random random(3);
  Eigen::MatrixXf x(60, 3);
  Eigen::VectorXd z(60);
  for (Eigen::Index i = 0; i < 60; ++i) {
    const auto point = Point(random, 3);
    x.row(i) = Eigen::Map<const Eigen::RowVector3f>(point.data());
    z[i] = 1.4 * std::sin(9 * point[1]);
  }
  LengthScales scales({0, 1, 2});
  for (int i = 0; i < 6; ++i) scales.Improve(x, z, Eigen::VectorXd::Zero(z.size()));
  const Eigen::VectorXf found = scales.PerCoordinate();
  EXPECT_GT(found[1], 3 * found[0]);
  EXPECT_GT(found[1], 3 * found[2]);
  EXPECT_LT(scales.noise(), 0.01);
}

TEST(RegressionForest, LearnsAProductFromItsSumOfLogarithms) {
  Random random(4);
  const auto truth = [](const std::vector<float>& p) { return std::fabs(p[0] + p[3] - 1.0); };
  std::vector<float> x;
  std::vector<double> y;
  for (int i = 0; i < 400; ++i) {
    const auto point = Point(random, 5);
    x.insert(x.end(), point.begin(), point.end());
    y.push_back(truth(point));
  }
  RegressionForest forest;
  EXPECT_TRUE(forest.empty());
  forest.Fit(x, 5, y, 50, random);
  double error = 0;
  double variance = 0;
  for (int i = 0; i < 300; ++i) {
    const auto point = Point(random, 5);
    error += std::pow(forest.Predict(point).mean - truth(point), 2);
    variance += std::pow(1.0 / 3 - truth(point), 2);
  }
  EXPECT_LT(error, 0.15 * variance);
}

TEST(Coordinates, ScaleNumbersSeparateTextsAndCountTwos) {
  ParameterSpace space;
  space.parameters = {{"powers", {int64_t{1}, int64_t{4}, int64_t{16}}, ""},
                      {"mode", {std::string("x"), std::string("y")}, ""},
                      {"fixed", {int64_t{7}}, ""},
                      {"width", {int64_t{8}, int64_t{12}, int64_t{16}}, ""}};
  const SpaceIndex index = SpaceIndex::Build(space, {}).value();
  const Coordinates coordinates(index);
  EXPECT_THAT(coordinates.groups(), ElementsAre(0u, 1u, 1u, 2u, 3u));
  EXPECT_THAT(
      coordinates.Of(index.IndexOf({{int64_t{4}, std::string("y"), int64_t{7}, int64_t{12}}})),
      ElementsAre(FloatNear(0.5f, 1e-6f), 0.0f, 0.7f, 0.5f, 0.0f));
  EXPECT_THAT(
      coordinates.Of(index.IndexOf({{int64_t{16}, std::string("x"), int64_t{7}, int64_t{16}}})),
      ElementsAre(1.0f, 0.7f, 0.0f, 1.0f, 1.0f));
}

}  // namespace
}  // namespace atunner
