#include "atunner/measure/collective_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace atunner {
namespace {

using planning::CommChoice;
using planning::CommRow;
using planning::CommStage;
using planning::MedianUs;

constexpr double kSampleUs =
    2000;  ///< so long lasts a sample, unless a single collective is longer
constexpr int kMostInSample = 100;
constexpr double kHopeless = 1.5;  ///< times the best: one sample is enough

/// One collective and size.
class Point {
 public:
  Point(const CollectiveSweep& sweep, CollectiveRunner& runner, Clock& clock, CommRow key,
        double until)
      : sweep_(sweep), runner_(runner), clock_(clock), key_(std::move(key)), until_(until) {}

  Result<std::vector<CommRow>> Measure() {
    ATUNNER_TRY(auto own, Screen(std::nullopt));
    if (!own)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("NCCL cannot run {}", Name(key_.collective)));
    best_us_ = MedianUs(*own);
    std::vector<CommRow> rows = {*std::move(own)};
    for (const CommChoice& choice : Choices()) {
      if (clock_.Now() > until_) break;
      ATUNNER_TRY(auto row, Screen(choice));
      if (!row) continue;
      best_us_ = std::min(best_us_, MedianUs(*row));
      rows.push_back(*std::move(row));
    }
    ATUNNER_TRY(std::vector<CommRow> finals, Final(rows));
    rows.insert(rows.end(), finals.begin(), finals.end());
    return rows;
  }

 private:
  std::vector<CommChoice> Choices() const {
    std::vector<CommChoice> choices;
    // With few channels first: the number that NCCL itself takes comes before the others.
    for (const int channels : sweep_.channels)
      for (const auto algorithm : sweep_.algorithms)
        for (const auto protocol :
             {planning::Protocol::kLl, planning::Protocol::kLl128, planning::Protocol::kSimple})
          choices.push_back({algorithm, protocol, channels});
    return choices;
  }

  CommRow RowOf(const std::optional<CommChoice>& choice, CommStage stage) const {
    CommRow row = key_;
    row.choice = choice;
    row.stage = stage;
    return row;
  }

  int Count(double us) const {
    return std::clamp(static_cast<int>(kSampleUs / std::max(us, 1.0)), 1, kMostInSample);
  }

  /// Empty if NCCL cannot run the choice.
  Result<std::optional<CommRow>> Screen(const std::optional<CommChoice>& choice) {
    CommRow row = RowOf(choice, CommStage::kScreen);
    ATUNNER_TRY(const auto first, runner_.Run(row.collective, row.bytes, choice, 3));
    if (!first) return std::nullopt;
    row.us = {*first};
    if (best_us_ > 0 && *first > kHopeless * best_us_) return row;
    row.us.clear();
    for (int i = 0; i < sweep_.screen_samples; ++i) {
      ATUNNER_TRY(const auto us, runner_.Run(row.collective, row.bytes, choice, Count(*first)));
      row.us.push_back(us.value_or(*first));
    }
    return row;
  }

  /// NCCL's own choice and the fastest of `screened`, in turns.
  Result<std::vector<CommRow>> Final(std::vector<CommRow> screened) {
    std::vector<CommRow> rows = {RowOf(std::nullopt, CommStage::kFinal)};
    const int count = Count(MedianUs(screened[0]));
    screened.erase(screened.begin());
    std::ranges::stable_sort(screened, {}, [](const CommRow& row) { return MedianUs(row); });
    for (size_t i = 0; i < screened.size() && rows.size() <= Contenders(); ++i)
      rows.push_back(RowOf(screened[i].choice, CommStage::kFinal));
    for (int turn = 0; turn < sweep_.turns; ++turn) {
      for (size_t i = 0; i < rows.size(); ++i) {
        CommRow& row = rows[(i + static_cast<size_t>(turn)) % rows.size()];
        ATUNNER_TRY(const auto us, runner_.Run(row.collective, row.bytes, row.choice, count));
        if (!us)
          return Fail(ErrorCode::kInternal, "NCCL runs a choice at one time and not at another");
        row.us.push_back(*us);
      }
    }
    return rows;
  }

  size_t Contenders() const { return static_cast<size_t>(sweep_.contenders); }

  const CollectiveSweep& sweep_;
  CollectiveRunner& runner_;
  Clock& clock_;
  CommRow key_;
  double until_;
  double best_us_ = 0;
};

Status Check(const CollectiveSweep& sweep) {
  if (sweep.smallest < 1024 || sweep.largest < sweep.smallest)
    return Invalid("must go from 1024 bytes or more to no less than that", "sweep.sizes");
  if (sweep.collectives.empty()) return Invalid("must name a collective", "sweep.collectives");
  if (sweep.turns < 1 || sweep.screen_samples < 1 || sweep.contenders < 1)
    return Invalid("must be above 0", "sweep.turns");
  return {};
}

}  // namespace

Status SweepCollectives(const CollectiveSweep& sweep, CollectiveRunner& runner, Clock& clock,
                        const SweepProgress& progress, planning::CommTable& table) {
  ATUNNER_RETURN_IF_ERROR(Check(sweep));
  std::vector<CommRow> points;
  for (int64_t bytes = sweep.smallest; bytes <= sweep.largest; bytes *= 2)
    for (const auto collective : sweep.collectives)
      points.push_back({.collective = collective, .bytes = bytes});
  const double begin = clock.Now();
  for (size_t i = 0; i < points.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(points.size());
    if (clock.Now() - begin > sweep.seconds) {
      table.notes.push_back(
          fmt::format("{} sizes from {} bytes on were left out: {:.0f} s are over",
                      points.size() - i, points[i].bytes, sweep.seconds));
      break;
    }
    Point point(sweep, runner, clock, points[i], begin + share * sweep.seconds);
    ATUNNER_TRY(const std::vector<CommRow> rows, point.Measure());
    table.rows.insert(table.rows.end(), rows.begin(), rows.end());
    if (progress) progress(rows.front(), share);
  }
  return {};
}

}  // namespace atunner
