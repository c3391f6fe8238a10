#include "atunner/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "atunner/replay/gunzip.h"

namespace atunner {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

/// A space with two parameters of 16 values and one minimum; the configurations of one corner fail.
std::string Cache() {
  std::string values;
  for (int v = 0; v < 16; ++v) values += (v ? ", " : "") + std::to_string(v);
  std::string entries;
  for (int x = 0; x < 16; ++x) {
    for (int y = 0; y < 16; ++y) {
      if ((x + y) % 7 == 6) continue;  // not valid
      const std::string time = x > 12 && y > 12 ? "\"RuntimeFailedConfig\""
                                                : std::to_string(5.0 + (x - 4) * (x - 4) +
                                                                 2 * (y - 9) * (y - 9));
      entries += (entries.empty() ? "" : ", ") +
                 ("\"" + std::to_string(x) + "," + std::to_string(y)) + R"(": {"x": )" +
                 std::to_string(x) + R"(, "y": )" + std::to_string(y) +
                 R"(, "compile_time": 100, "time": )" + time + "}";
    }
  }
  return R"({"device_name": "paper", "tune_params": {"x": [)" + values + R"(], "y": [)" + values +
         R"(]}, "cache": {)" + entries + "}}";
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gunzip, UnpacksAndRefusesDamage) {
  const std::string text(100000, 'x');
  const std::string packed = Gzip(text);
  EXPECT_EQ(Gunzip(packed).value(), text);
  EXPECT_THAT(Gunzip(packed.substr(0, packed.size() / 2)).error().ToString(), HasSubstr("cut off"));
  EXPECT_FALSE(Gunzip("\x1f\x8bnot gzip").has_value());
  EXPECT_THAT(Gunzip(packed, 1000).error().ToString(), HasSubstr("more than"));
}

TEST(RecordedSpace, ReadsAFolderPackedAndPlain) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "one.json", Cache()).has_value());
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "two.json.gz", Gzip(Cache())).has_value());
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "index.json", "{}").has_value());
  const auto spaces = ReadRecordedSpaces(folder.path()).value();
  ASSERT_EQ(spaces.size(), 2u);
  EXPECT_EQ(spaces[1].name, "two");
  EXPECT_EQ(spaces[0].index->size(), 220u);
  EXPECT_EQ(spaces[0].ok, 213u);
  EXPECT_EQ(spaces[0].time_ms, spaces[1].time_ms);
  const uint64_t at = spaces[0].index->IndexOf({{int64_t{4}, int64_t{8}}});
  EXPECT_EQ(spaces[0].time_ms.at(at), 7.0);
  EXPECT_EQ(spaces[0].spent_ms.at(at), 100.0);
}

TEST(RecordedSpace, ReadsWhatAnInterruptedRunLeftOpen) {
  const std::string whole = Cache();
  const auto space = ParseRecordedSpace(whole.substr(0, whole.size() - 2) + ",\n", "open");
  ASSERT_TRUE(space.has_value()) << space.error().ToString();
  EXPECT_EQ(space->index->size(), 220u);
}

TEST(RecordedSpace, SaysWhatIsWrong) {
  EXPECT_THAT(ParseRecordedSpace("{}", "f").error().ToString(), HasSubstr("tune_params"));
  EXPECT_THAT(ParseRecordedSpace(R"({"tune_params": {"x": [1]}, "cache": {"2": {"x": 2}}})", "f")
                  .error()
                  .ToString(),
              HasSubstr("'x' is 2"));
  EXPECT_THAT(
      ParseRecordedSpace(R"({"tune_params": {"x": [1]}, "cache": {}})", "f").error().ToString(),
      HasSubstr("empty"));
}

TEST(Baseline, ExpectedBestAgreesWithSimulation) {
  std::vector<std::optional<double>> times;
  Random random(7);
  for (int i = 0; i < 60; ++i) times.emplace_back(std::exp(random.Normal()));
  times.emplace_back(std::nullopt);
  const SearchBaseline baseline = BaselineOf(times).value();
  times.pop_back();
  std::vector<double> sums(baseline.budget, 0.0);
  constexpr int kRuns = 40000;
  for (int run = 0; run < kRuns; ++run) {
    double best = INFINITY;
    for (size_t i = 0; i < baseline.budget; ++i) {
      std::swap(times[i], times[i + random.Below(times.size() - i)]);
      best = std::min(best, *times[i]);
      sums[i] += best;
    }
  }
  for (size_t i = 0; i < baseline.budget; ++i)
    EXPECT_THAT(baseline.random[i], DoubleNear(sums[i] / kRuns, 0.03)) << i;
}

TEST(Baseline, BudgetIsWhatRandomSearchNeeds) {
  std::vector<std::optional<double>> times;
  for (int i = 0; i < 1000; ++i) times.emplace_back(100.0 + i);
  const SearchBaseline baseline = BaselineOf(times).value();
  EXPECT_DOUBLE_EQ(baseline.median, 599.5);
  EXPECT_EQ(baseline.budget, 1001u / 26u);  // 25 are within 5 % of the way to the median
  EXPECT_FALSE(BaselineOf(std::vector<std::optional<double>>{1.0, std::nullopt}).has_value());
}

TEST(Score, IsZeroForRandomAndOneForTheBestAtOnce) {
  std::vector<std::optional<double>> times;
  for (int i = 0; i < 1000; ++i) times.emplace_back(100.0 + i);
  const SearchBaseline baseline = BaselineOf(times).value();
  EXPECT_NEAR(ScoreOf(baseline, baseline.random), 0.0, 1e-12);
  EXPECT_NEAR(ScoreOf(baseline, std::vector<double>(baseline.budget, baseline.best)), 1.0, 1e-12);
}

TEST(Replay, RandomScoresNearZeroAndIsRepeatable) {
  const RecordedSpace space = ParseRecordedSpace(Cache(), "valley").value();
  const ReplayOptions options{.strategy = "random", .repeats = 400};
  const ReplayScore score = Replay(space, options, SystemClock()).value();
  EXPECT_NEAR(score.mean_score, 0.0, 0.12);
  EXPECT_EQ(score.mean_curve, Replay(space, options, SystemClock())->mean_curve);
  EXPECT_FALSE(score.asked_twice);
  EXPECT_FALSE(score.stopped_early);
  // Random search meets the target after its mean number of evaluations in 1 − 1/e of the runs.
  EXPECT_THAT(score.reach_rate, DoubleNear(0.63, 0.1));
}

TEST(Replay, KnownAnswersOfExhaustiveSearch) {
  const RecordedSpace space = ParseRecordedSpace(Cache(), "valley").value();
  const ReplayScore score = Replay(space, {.strategy = "exhaustive", .repeats = 2}, SystemClock())
                                .value();
  double best = INFINITY;
  for (uint64_t i = 0; i < score.baseline.budget; ++i) {
    if (space.time_ms[i]) best = std::min(best, *space.time_ms[i]);
    EXPECT_DOUBLE_EQ(score.mean_curve[i], best);
  }
  EXPECT_FALSE(Replay(space, {.strategy = "nonsense"}, SystemClock()).has_value());
  const ReplayOptions tenth{.strategy = "random", .repeats = 2, .budget = 24};
  EXPECT_EQ(Replay(space, tenth, SystemClock())->mean_curve.size(), 24);
  const ReplayOptions more{.strategy = "random", .repeats = 1, .budget = 100000};
  EXPECT_EQ(Replay(space, more, SystemClock())->mean_curve.size(), space.index->size())
      << "no more than there are";
}

/// Resembles a tiled kernel: threads in multiples of 32, a best amount of work per thread, a mode
/// that interacts with both, noise, and failures if a thread needs too much. `speed` is the ratio
/// of computing to memory speed: it moves the best amount of work.
RecordedSpace Tiled(double speed) {
  RecordedSpace recorded;
  recorded.name = "tiled";
  ParameterSpace space;
  space.parameters = {
      {"threads_x", {}, ""},
      {"threads_y", {}, ""},
      {"work_x", {}, ""},
      {"work_y", {}, ""},
      {"mode", {std::string("global"), std::string("shared"), std::string("texture")}, ""}};
  for (int64_t v = 16; v <= 256; v += 16) space.parameters[0].values.emplace_back(v);
  for (int64_t v = 1; v <= 16; v *= 2) space.parameters[1].values.emplace_back(v);
  for (int64_t v = 1; v <= 6; ++v) space.parameters[2].values.emplace_back(v);
  for (int64_t v = 1; v <= 6; ++v) space.parameters[3].values.emplace_back(v);
  space.constraints = {{Expr::MustParse("32 <= threads_x * threads_y <= 1024"), ""}};
  recorded.index = std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
  Random noise(1);
  for (uint64_t i = 0; i < recorded.index->size(); ++i) {
    const Configuration one = recorded.index->At(i);
    const double x = ToDouble(one.values[0]);
    const double threads = x * ToDouble(one.values[1]);
    const double work = ToDouble(one.values[2]) * ToDouble(one.values[3]);
    const bool shared = ToString(one.values[4]) == "shared";
    double time = 4 + 2 * std::pow(std::log2(threads / 256), 2) +
                  std::pow(std::log2(work / (speed * (shared ? 8 : 4))), 2);
    time *= (std::fmod(x, 64) == 0   ? 1.0
             : std::fmod(x, 32) == 0 ? 1.15
                                     : 1.6) *
            (shared ? 0.8 : 1.0);
    const bool fails = work * threads > 12000;
    recorded.time_ms.push_back(fails ? std::nullopt
                                     : std::optional(time * std::exp(0.02 * noise.Normal())));
    recorded.spent_ms.push_back(100);
  }
  recorded.ok = static_cast<uint64_t>(
      std::ranges::count_if(recorded.time_ms, [](const auto& t) { return t.has_value(); }));
  return recorded;
}

TEST(Replay, AutoFindsTheBestLongBeforeRandomAlsoInBatches) {
  const RecordedSpace space = Tiled(1);
  EXPECT_LT(space.ok, space.index->size());
  for (const size_t batch : {size_t{1}, size_t{4}}) {
    const ReplayScore score =
        Replay(space, {.strategy = "auto", .repeats = 10, .batch = batch}, SystemClock()).value();
    EXPECT_GT(score.mean_score, 0.8) << batch;
    EXPECT_GE(score.reach_rate, 0.9) << batch;
    EXPECT_FALSE(score.asked_twice);
    EXPECT_FALSE(score.stopped_early);
  }
}

TEST(Replay, AutoIsNotLedAstrayByManyThatAreUnderWay) {
  const RecordedSpace space = Tiled(1);
  const ReplayOptions options{.strategy = "auto", .repeats = 10, .ahead = 15, .noise = 0.03};
  const ReplayScore score = Replay(space, options, SystemClock()).value();
  EXPECT_GT(score.mean_score, 0.65);
  EXPECT_GE(score.reach_rate, 0.9);
  EXPECT_FALSE(score.asked_twice);
  EXPECT_FALSE(score.stopped_early);
}

TEST(Replay, AnEarlierRunOfTheSameKernelHelpsAndAMisleadingOneHarmsLittle) {
  const RecordedSpace space = Tiled(1);
  const RecordedSpace other = Tiled(1.5);
  const auto score = [&](bool with, bool reversed) {
    ReplayOptions options{.repeats = 12};
    if (with) {
      const std::vector<PastRun> runs = {PastRunOn(other, 150, 3, reversed).value()};
      options.prior = Prior::Make(space.index, runs, 1);
      EXPECT_NE(options.prior, nullptr);
    }
    return Replay(space, options, SystemClock())->mean_score;
  };
  const double without = score(false, false);
  EXPECT_GT(score(true, false), without + 0.02);
  EXPECT_GT(score(true, true), without - 0.08);
}

TEST(Replay, WithNoiseTheFinalistsAreMeasuredAgainBeforeOneWins) {
  const RecordedSpace space = Tiled(1);
  const NoisyRegret noisy = ReplayWithNoise(space, {.repeats = 20, .noise = 0.1}).value();
  EXPECT_LT(noisy.finalists, 0.8 * noisy.lowest);
  EXPECT_GT(noisy.finalist_count, 4);
  const NoisyRegret exact = ReplayWithNoise(space, {.repeats = 5}).value();
  EXPECT_EQ(exact.finalists, exact.lowest);
  EXPECT_EQ(exact.finalist_count, 3);
  EXPECT_FALSE(ReplayWithNoise(space, {.noise = -1}).has_value());
  EXPECT_FALSE(ReplayWithNoise(space, {.samples = 0}).has_value());
}

}  // namespace
}  // namespace atunner
