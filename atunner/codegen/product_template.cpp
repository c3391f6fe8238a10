#include "atunner/codegen/product_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

// Fitted to 1400 configurations of 63 products on an H200.
/// ns of a launch with its first copies and its last stores.
constexpr double kLaunchNs = 5900;
/// ns that one more kernel in the stream costs; that blocks of a cluster need to meet, and for a byte of their sums.
constexpr double kSecondStepNs = 2700;
constexpr double kExchangeNs = 1400;
constexpr double kExchangeNsPerByte = 0.09;
/// Of a share's element, as if through DRAM: written, read, and neither at DRAM's full rate.
constexpr double kShareBytes = 10;
/// Of DRAM's and L2's rates as the profile states them, what products reach.
constexpr double kDramShare = 0.82;
constexpr double kL2Share = 2.0;
/// Of what lies in L2, as if written back where an operand drives it out.
constexpr double kDrivenOut = 0.25;
/// What waits for one another hides behind the longest, but not all of it: the power of a mean.
constexpr double kOverlap = 10;
/// Of the multiprocessors, those on which clusters of more than two blocks find a place: not all of an H200's 132.
constexpr double kClustered = 0.88;

}  // namespace

void ProductTemplate::AddOrderAndSplit() {
  space_.parameters.push_back({"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"});
  space_.parameters.push_back({"split_k", Integers({1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128}),
                               "blocks that share one tile of the result, each with its part of the depth"});
  Add(fmt::format("split_k == 1 or {} >= 4 * tile_k * split_k", extents_.k), "too little depth to split");
  Add(fmt::format("split_k == 1 or ceil_div({}, tile_m) * ceil_div({}, tile_n) * {} * split_k <= {}", extents_.m,
                  extents_.n, extents_.batch, 4 * profile_.sms),
      "enough blocks without a split");
}

Configuration ProductTemplate::Default() const {
  Configuration best;
  double least = INFINITY;
  for (const std::vector<int64_t>& start : Starts()) {
    // The start, one order of blocks, and whatever is best of the rest.
    Choices choices = AllValues();
    for (size_t i = 0; i < start.size(); ++i) choices[i] = {start[i]};
    choices[start.size()] = {int64_t{8}};
    const Configuration one = CheapestOf(choices);
    if (one.values.empty()) continue;
    const double cost = Cost(one, profile_).value_or(INFINITY);
    if (cost < least) {
      least = cost;
      best = one;
    }
  }
  return best;
}

LaunchStep ProductTemplate::ProductStep(const Configuration& configuration, const char* entry, const std::string& m,
                                        const std::string& n, const std::string& batch) const {
  LaunchStep step = Step(entry, fmt::format("ceil_div({}, tile_m) * ceil_div({}, tile_n) * ({})", m, n, batch),
                         Expr(Threads(configuration)));
  step.grid[1] = Expr::MustParse("split_k");
  step.shared_bytes = Expr(SharedBytes(configuration));
  return step;
}

ArgBinding ProductTemplate::Destination(const Configuration& configuration, const std::string& output) const {
  return Split(configuration) ? ArgBinding::Workspace("shares") : ArgBinding::Tensor(output);
}

void ProductTemplate::FinishSplit(const Configuration& configuration, LaunchPlan& plan, const std::string& output,
                                  const std::string& m, const std::string& n) const {
  if (!Split(configuration)) return;
  const std::string elements = fmt::format("({}) * ({})", m, n);
  plan.workspaces.push_back({"shares", Expr::MustParse(elements + " * 4 * split_k")});
  const int64_t at_once = Integer(configuration, "split_k") < 16 ? 1024 : 128;  // elements of a block (split.cuh)
  LaunchStep step = Step("add_shares", fmt::format("min(ceil_div({}, {}), 4096)", elements, at_once), 256,
                         {"@shares", output, "i64:" + elements});
  AddArguments(step, FinishArguments());
  plan.steps.push_back(step);
}

int64_t ProductTemplate::RowsFetched(const Configuration& configuration) const {
  return std::min(Integer(configuration, "tile_m"), (extents_.m + 7) / 8 * 8);
}

int64_t ProductTemplate::Tiles(const Configuration& configuration) const {
  return CeilDiv(extents_.m, Integer(configuration, "tile_m")) * CeilDiv(extents_.n, Integer(configuration, "tile_n")) *
         extents_.batch;
}

int64_t ProductTemplate::BlocksPerSm(const Configuration& configuration) const {
  const int64_t tiles = Tiles(configuration);
  const int64_t split = Integer(configuration, "split_k");
  if (!InCluster(configuration)) return CeilDiv(tiles * split, profile_.sms);
  const double places = Real(profile_.sms / split) * (split > 2 ? kClustered : 1.0);
  return CeilDiv(tiles, std::max<int64_t>(1, static_cast<int64_t>(places)));
}

double ProductTemplate::ReadAgain(const Configuration& configuration, const Pace& pace) const {
  const int64_t rows = CeilDiv(extents_.m, Integer(configuration, "tile_m"));
  const int64_t group = std::min(rows, Integer(configuration, "group_m"));
  const int64_t blocks =
      rows * CeilDiv(extents_.n, Integer(configuration, "tile_n")) * Integer(configuration, "split_k");
  const double b = Real(extents_.n * extents_.k) * Real(SizeOf(operands_));
  if (b <= Real(profile_.l2_bytes)) return 0;
  // What leaves L2 first is gone unless the next block reads it.
  const int64_t times = group == 1 && Streams(configuration)
                            ? rows
                            : std::min(CeilDiv(rows, group), CeilDiv(blocks, profile_.sms * pace.resident));
  return b * Real(times - 1);
}

double ProductTemplate::Time(const Configuration& configuration, const Pace& pace) const {
  const int64_t tile_m = Integer(configuration, "tile_m");
  const int64_t tile_n = Integer(configuration, "tile_n");
  const double split = Real(Integer(configuration, "split_k"));
  const int64_t per_sm = BlocksPerSm(configuration);
  const double depth = Real(extents_.k) * extents_.reached / split;
  const double size = Real(SizeOf(operands_));
  const double products = 2.0 * Real(per_sm * tile_m * tile_n) * depth / pace.flops * 1e9;
  const double copies = Real(per_sm * (RowsFetched(configuration) + tile_n)) * depth * size / pace.copied;
  const double elements =
      Real(extents_.k) * extents_.reached *
      Real(extents_.batch * (extents_.m * CeilDiv(extents_.n, tile_n) + extents_.n * CeilDiv(extents_.m, tile_m)));
  const double traffic = elements * size / (kL2Share * profile_.l2_gbps);
  // What comes into L2 drives out what others wrote, which then goes to DRAM.
  const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
  const auto l2 = Real(profile_.l2_bytes);
  const double driven_out = Streams(configuration) ? 0 : kDrivenOut * std::min(bytes, l2);
  const double dram = (bytes + driven_out + ReadAgain(configuration, pace)) / (kDramShare * profile_.dram_gbps);
  const double turns = pace.turn_ns * Real(CeilDiv(per_sm, pace.resident) - 1);
  double meetings = 0;
  if (InCluster(configuration))
    meetings += kExchangeNs + kExchangeNsPerByte * 4.0 * Real(std::min(tile_m, extents_.m) * tile_n);
  if (Split(configuration))
    meetings +=
        kSecondStepNs + Real(extents_.batch * extents_.m * extents_.n) * split * kShareBytes / profile_.dram_gbps;
  const double longest = std::max({products, copies, traffic, dram});
  double powers = 0;
  for (const double each : {products, copies, traffic, dram}) powers += std::pow(each / longest, kOverlap);
  return longest * std::pow(powers, 1 / kOverlap) + kLaunchNs + turns + meetings;
}

}  // namespace atunner
