// Learning from earlier runs: which runs of the store another run can use.
//
// A kernel that was tuned at one size, or on one GPU, has nearly the same good configurations at
// another size or on another GPU. What transfers is the order of the configurations, not their
// times. Three places work together:
//
//   store ──► PriorRunsFor ──► Prior (search/surrogate/prior.h) ──► the strategies
//             which runs        what they predict                    how far to trust it
//
// 1. PriorRunsFor, here, chooses at most three runs. A run is similar when all of these hold:
//      - the same evidence: measured with measured, predicted with predicted;
//      - the same kernel name, attributes, and names and types of arguments;
//      - the same names of parameters, and at least half of this run's values in each;
//      - every size differs by a factor of 8 at most;
//      - at least 20 trials that did not fail.
//    Runs on the same device come first, then those of the nearest sizes. The distance of two runs
//    is the largest factor between sizes of one name.
// 2. Prior translates the trials into this run's space: a number that this space does not list
//    becomes the nearest one that it does. It standardises the times of each run: the logarithm,
//    minus the median, in units of the distance from the median to the best. So runs of
//    microseconds and runs of seconds can be combined. A regression forest over them predicts every
//    configuration of the space.
// 3. A strategy proposes the runs' best configurations early, in turns with its own proposals. A
//    leader that turns out to be slow here ends that (Strategy::WarmStart). The model of a strategy
//    has the prediction as its mean, multiplied by a slope that is estimated from this run's
//    results (Trend). When the earlier runs mislead, the slope becomes 0 and they are ignored.
//
// Example: softmax with 4096 columns was tuned on an A100, 60 trials. Now softmax with 8192 columns
// is tuned on an H200. The run is similar: the factor between the sizes is 2, and the parameters
// are the same. The new run proposes its default configuration, then the A100's best, then one of
// its own, then the A100's second best. If "threads = 1024" was 10 % slower than "threads = 256"
// there, it is expected to be slower here too, until results of this run say otherwise.
//
// Nothing but proposals comes from earlier runs. Each candidate is compiled, verified and timed
// anew.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/search/surrogate/prior.h"
#include "atunner/store/store.h"

namespace atunner {

/// A run to learn from.
struct PriorRun {
  std::string run;  ///< its id
  PastRun past;
};

/// Similar runs, at most three, the most similar first. Looks at the newest 200 runs of the store.
Result<std::vector<PriorRun>> PriorRunsFor(Store& store, const RunRecord& run,
                                           const KernelSpec& spec, const ParameterSpace& space);

}  // namespace atunner
