// Which nodes of a graph share a kernel: groups, and what lies between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/fusion/roundings.h"
#include "atunner/fusion/traffic.h"
#include "atunner/graph/graph.h"
#include "atunner/model/value/device_profile.h"
#include "atunner/model/value/value.h"

namespace atunner::fusion {

/// What is known of one input of the graph.
struct InputFact {
  bool weight = false;  ///< the same in every call: a parameter, a buffer or a constant
};

struct PlanRequest {
  /// Roundings to 16 bits that stay (`--eager-exact-casts`: all of them)
  Roundings roundings = Roundings::kWhereExact;
  /// One for each input of the graph; empty: no input is a weight
  std::vector<InputFact> inputs;
  Dims sizes;
};

/// Nodes that the kernels of one family compute.
struct FusedGroup {
  std::string family;                ///< "convolution"; "plain kernels" where none schedules them
  std::vector<graph::NodeId> nodes;  ///< of FusionPlan::graph, views included
  std::vector<std::string> inputs, outputs;  ///< names of stored values
  double bytes = 0;                          ///< read and written in one run
  double flops = 0;
  size_t launches = 0;  ///< of the default configuration
  /// Predicted: the family's estimate for its default configuration, and at least the bytes at the
  /// device's bandwidth, with kLaunchNs for each launch
  double ns = 0;
  /// It depends on weights alone, and can be computed once before the first run
  bool once = false;
};

/// From one kernel's end to the next one's first instruction, in a stream that is full.
inline constexpr double kLaunchNs = 2000;

enum class BoundaryReason {
  kSeveralUsers,    ///< groups besides the next one need the value, so that it is stored anyway
  kAnchors,         ///< two products, scans, sorts or scatters
  kNoFamily,        ///< no family computes both groups together
  kSmallReduction,  ///< a reduction would be repeated for each element
  kCostsMore,       ///< a kernel of both costs more than two
  kBetween,         ///< the next group needs a third one that needs this one
};
std::string_view Name(BoundaryReason reason);

/// A value that one group writes and another one reads.
struct Boundary {
  size_t from = 0, to = 0;  ///< numbers of groups
  std::string value;
  graph::TensorType type;
  double bytes = 0;  ///< of the value
  BoundaryReason reason = BoundaryReason::kNoFamily;
  std::string explanation;  ///< the reason as a sentence
};

struct FusionPlan {
  std::string name;
  graph::ValidGraph graph;  ///< as it is divided (codegen/stages.h)
  std::vector<FusedGroup> groups;
  std::vector<Boundary> boundaries;
  std::vector<std::string> roundings;  ///< values whose rounding is kept, with the reason
  Traffic before;  ///< each node of the given graph as a kernel of its own (traffic.h)
  Traffic after;   ///< the groups of one run; groups that are computed once are left out
  double flops = 0;
  double ns = 0;  ///< predicted, of the groups of one run one after the other
};

/// The plan for one device. kUnsupported if no kernels compute the graph there; kInvalidInput if
/// symbols of the graph have no size.
Result<FusionPlan> PlanFusion(const graph::ValidGraph& graph, const PlanRequest& request,
                              const DeviceProfile& profile);

}  // namespace atunner::fusion
