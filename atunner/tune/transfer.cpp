#include "atunner/tune/transfer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

constexpr int kRunsLookedAt = 200;
constexpr size_t kMostPriorRuns = 3;
constexpr int64_t kFewestTrials = 20;
constexpr double kMostSizeFactor = 8;

bool AreArgumentsAlike(const KernelSpec& a, const KernelSpec& b) {
  return std::ranges::equal(a.args, b.args, [](const ArgSpec& x, const ArgSpec& y) {
    return x.name == y.name && x.dtype == y.dtype && x.role == y.role;
  });
}

/// The largest factor between sizes of one name, as a logarithm; nullopt when the names differ.
std::optional<double> SizeDistance(const Dims& a, const Dims& b) {
  double distance = 0;
  if (a.size() != b.size()) return std::nullopt;
  for (const auto& [name, extent] : a) {
    const auto other = b.find(name);
    if (other == b.end() || extent < 1 || other->second < 1) return std::nullopt;
    distance = std::max(distance, std::fabs(std::log(static_cast<double>(extent) /
                                                     static_cast<double>(other->second))));
  }
  return distance;
}

bool AreParametersAlike(const ParameterSpace& past, const ParameterSpace& present) {
  if (past.parameters.size() != present.parameters.size()) return false;
  return std::ranges::all_of(present.parameters, [&](const Parameter& parameter) {
    const int at = past.Find(parameter.name);
    if (at < 0) return false;
    const auto& known = past.parameters[static_cast<size_t>(at)].values;
    const auto listed = std::ranges::count_if(parameter.values, [&](const Value& v) {
      return std::ranges::find(known, v) != known.end();
    });
    return 2 * static_cast<size_t>(listed) >= parameter.values.size();
  });
}

struct SimilarRun {
  std::pair<bool, double> rank;  ///< true for another device; distance of the sizes
  RunRecord run;
  ParameterSpace space;
};

/// nullopt when the runs are not alike, or when `past` cannot be read: another version wrote it.
std::optional<SimilarRun> Compare(const RunRecord& past, const RunRecord& run,
                                  const KernelSpec& spec, const ParameterSpace& space) {
  if (past.id == run.id || past.evidence != run.evidence) return std::nullopt;
  const auto spec_json = ParseJson(past.spec);
  const auto space_json = ParseJson(past.space);
  if (!spec_json || !space_json) return std::nullopt;
  const auto past_spec = FromJson<KernelSpec>(*spec_json);
  auto past_space = FromJson<ParameterSpace>(*space_json);
  if (!past_spec || !past_space) return std::nullopt;
  if (past_spec->name != spec.name || past_spec->attributes != spec.attributes) return std::nullopt;
  if (!AreArgumentsAlike(*past_spec, spec) || !AreParametersAlike(*past_space, space))
    return std::nullopt;
  const auto distance = SizeDistance(past_spec->dims, spec.dims);
  if (!distance || *distance > std::log(kMostSizeFactor) + 1e-9) return std::nullopt;
  return SimilarRun{{past.device != run.device, *distance}, past, *std::move(past_space)};
}

/// The configurations among the trials; whole kernels have no place in another space.
Result<PriorRun> ReadTrials(Store& store, SimilarRun& run) {
  ATUNNER_TRY(const std::vector<Trial> trials, store.Trials(run.run.id));
  PriorRun prior{run.run.id, {std::move(run.space), {}}};
  for (const Trial& trial : trials) {
    if (const Configuration* configuration = trial.candidate.configuration())
      prior.past.trials.push_back({*configuration, trial.ObjectiveNs()});
  }
  return prior;
}

}  // namespace

Result<std::vector<PriorRun>> PriorRunsFor(Store& store, const RunRecord& run,
                                           const KernelSpec& spec, const ParameterSpace& space) {
  ATUNNER_TRY(const std::vector<RunRecord> runs, store.Runs(kRunsLookedAt));
  std::vector<SimilarRun> similar;
  for (const RunRecord& past : runs) {
    if (auto found = Compare(past, run, spec, space)) similar.push_back(*std::move(found));
  }
  std::ranges::stable_sort(similar, {}, &SimilarRun::rank);
  std::vector<PriorRun> chosen;
  for (SimilarRun& past : similar) {
    if (chosen.size() == kMostPriorRuns) break;
    ATUNNER_TRY(PriorRun prior, ReadTrials(store, past));
    const auto correct = std::ranges::count_if(
        prior.past.trials, [](const Observation& one) { return one.objective_ns.has_value(); });
    if (correct >= kFewestTrials) chosen.push_back(std::move(prior));
  }
  return chosen;
}

}  // namespace atunner
