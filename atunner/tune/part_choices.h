// A partitioned schedule whose parts have been tuned. Its parameters choose, for each part, one of
// the best configurations that were found for it.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/model/trial/trial.h"
#include "atunner/tune/tune_session.h"

namespace atunner {

class PartChoices : public ScheduleTemplate {
 public:
  /// `whole` and `divided` are one object, which must outlive this one. `choices`: at least one for
  /// each part, the best first.
  PartChoices(const ScheduleTemplate& whole, const PartitionedSchedule& divided,
              std::vector<std::vector<Configuration>> choices);

  const KernelSpec& spec() const override { return whole_.spec(); }
  const ParameterSpace& space() const override { return space_; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override;
  /// The best of each part.
  Configuration Default() const override;
  std::optional<RenderedKernel> Naive() const override { return whole_.Naive(); }
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return divided_.CheckDimsOf(Chosen(configuration), spec().dims);
  }
  ValidSizes FreeSizes(const Configuration& configuration) const override {
    return divided_.FreeSizesOf(Chosen(configuration), spec().dims);
  }

 private:
  /// The configurations of the parts.
  std::vector<Configuration> Chosen(const Configuration& configuration) const;

  const ScheduleTemplate& whole_;
  const PartitionedSchedule& divided_;
  std::vector<std::vector<Configuration>> choices_;
  ParameterSpace space_;
};

/// The budget of each part, in proportion to the square root of its roofline time (`least_ns`), and
/// the rest of the budget for choosing among their results.
struct PartBudgets {
  std::vector<Budget> parts;
  Budget whole;
};
PartBudgets DivideBudget(const Budget& budget, const std::vector<double>& least_ns);

/// The configurations of a part's session that the whole may choose from: the winner, and others
/// that are nearly as fast.
std::vector<Configuration> BestOf(const TuneResult& result);

}  // namespace atunner
