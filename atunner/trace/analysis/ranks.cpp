#include "atunner/trace/analysis/ranks.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner::trace {
namespace {

constexpr int64_t kNoise = 5000;  // ns: differences below the launch latency say nothing

RankRow RowOf(const Analysis& analysis, int position) {
  const DeviceTime total = analysis.Total();
  RankRow row;
  row.rank = analysis.timeline->rank >= 0 ? analysis.timeline->rank : position;
  row.source = analysis.timeline->source;
  row.window = analysis.window.length();
  row.compute = total.compute;
  row.communication = total.communication;
  row.exposed_communication = total.exposed_communication;
  row.idle = total.Idle();
  return row;
}

void CompareOne(const std::vector<RankInput>& ranks, size_t collective, RankComparison& result) {
  size_t last = 0;
  int64_t longest = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const int64_t duration = ranks[rank].collectives[collective].duration;
    longest = std::max(longest, duration);
    if (duration < ranks[last].collectives[collective].duration) last = rank;
  }
  const int64_t wait = longest - ranks[last].collectives[collective].duration;
  if (wait < kNoise) return;
  ++result.ranks[last].last_arrivals;
  result.ranks[last].caused_wait += wait;
}

int StragglerOf(const RankComparison& result) {
  int straggler = -1;
  for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
    const RankRow& row = result.ranks[rank];
    const bool often = row.last_arrivals * 2 > result.collectives;
    const bool costly = row.caused_wait * 50 > row.window;
    if (often && costly) straggler = static_cast<int>(rank);
  }
  return straggler;
}

}  // namespace

std::vector<Collective> CollectivesOf(const Timeline& timeline) {
  const EventIndex index(timeline);
  std::vector<Collective> collectives;
  for (const auto& [device, events] : index.work()) {
    for (const uint32_t event : events) {
      if (!index.IsCommunication(event)) continue;
      const KernelDetail* detail = timeline.KernelOf(event);
      collectives.push_back(
          {timeline.name[event], detail == nullptr ? 0 : detail->group, timeline.duration[event]});
    }
  }
  return collectives;
}

double RankComparison::Imbalance() const {
  double sum = 0, longest = 0;
  for (const RankRow& row : ranks) {
    sum += static_cast<double>(row.compute);
    longest = std::max(longest, static_cast<double>(row.compute));
  }
  return sum > 0 ? longest * static_cast<double>(ranks.size()) / sum : 1;
}

RankComparison CompareRanks(const std::vector<RankInput>& ranks) {
  RankComparison result;
  size_t common = ranks.empty() ? 0 : ranks[0].collectives.size();
  bool uneven = false;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    result.ranks.push_back(RowOf(*ranks[rank].analysis, static_cast<int>(rank)));
    uneven |= ranks[rank].collectives.size() != common && rank > 0;
    common = std::min(common, ranks[rank].collectives.size());
  }
  if (uneven)
    result.notes.push_back(fmt::format(
        "the ranks recorded different numbers of collectives; the first {} are compared", common));
  result.collectives = ranks.size() > 1 ? common : 0;
  for (size_t i = 0; i < result.collectives; ++i) CompareOne(ranks, i, result);
  result.straggler = StragglerOf(result);
  std::ranges::stable_sort(result.ranks, {}, &RankRow::rank);
  if (result.straggler >= 0)  // the order may have changed
    result.straggler = StragglerOf(result);
  return result;
}

}  // namespace atunner::trace
