// A divided schedule whose parts have been tuned: what is left to choose is which of a part's best
// configurations the whole takes, a parameter for each part.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/schedule/divided_schedule.h"
#include "atunner/model/trial/trial.h"
#include "atunner/tune/tune_session.h"

namespace atunner {

class PartChoices : public ScheduleTemplate {
 public:
  /// `whole` and `divided` are one object, which must outlive this one. `choices`: at least one for
  /// each part, the best first.
  PartChoices(const ScheduleTemplate& whole, const DividedSchedule& divided,
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
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    return divided_.FreeSizesOf(Chosen(configuration), spec().dims);
  }

 private:
  /// The parts' configurations.
  std::vector<Configuration> Chosen(const Configuration& configuration) const;

  const ScheduleTemplate& whole_;
  const DividedSchedule& divided_;
  std::vector<std::vector<Configuration>> choices_;
  ParameterSpace space_;
};

/// How much of a whole's budget each part gets, and what is left for choosing among what they
/// found: by the least time that the device takes for it.
struct PartBudgets {
  std::vector<Budget> parts;
  Budget whole;
};
PartBudgets DivideBudget(const Budget& budget, const std::vector<double>& least_ns);

/// Of what a part's session found, what the whole may take: the winner, and who was close to it in
/// time.
std::vector<Configuration> BestOf(const TuneResult& result);

}  // namespace atunner
