#include "atunner/trace/analysis/iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace atunner::trace {
namespace {

constexpr size_t kFewest = 3;

/// "step 12" is "step "; "" if there is no number at the end.
std::string_view Stem(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  return end == name.size() || end == 0 ? std::string_view() : name.substr(0, end);
}

bool LooksLikeStep(std::string_view stem) {
  std::string lower(stem);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower.find("norm") != std::string::npos) return false;  // BatchNorm2d_1 is a module
  return lower.find("step") != std::string::npos || lower.find("iter") != std::string::npos ||
         lower.find("batch") != std::string::npos;
}

Iterations FromAnnotations(const EventIndex& index) {
  const Timeline& timeline = index.timeline();
  std::map<std::string_view, std::vector<Interval>> stems;
  for (size_t event = 0; event < timeline.size(); ++event) {
    const EventKind kind = timeline.kind[event];
    if (kind != EventKind::kAnnotation && kind != EventKind::kOperator) continue;
    const std::string_view stem = Stem(timeline.NameOf(event));
    if (stem == "ProfilerStep#" || LooksLikeStep(stem))
      stems[stem].push_back({timeline.start[event], timeline.End(event)});
  }
  const auto profiler = stems.find("ProfilerStep#");
  if (profiler != stems.end()) return {"annotation ProfilerStep#", profiler->second};
  Iterations best;
  for (const auto& [stem, at] : stems) {
    if (at.size() < kFewest || at.size() <= best.at.size()) continue;
    best = {fmt::format("annotation {}", stem), at};
  }
  return best;
}

/// Names of the kernels of the busiest device in the order of time.
std::vector<uint32_t> KernelsOfBusiest(const EventIndex& index) {
  std::vector<uint32_t> most;
  for (const auto& [device, events] : index.work()) {
    std::vector<uint32_t> kernels;
    for (const uint32_t event : events)
      if (index.timeline().kind[event] == EventKind::kKernel) kernels.push_back(event);
    if (kernels.size() > most.size()) most = std::move(kernels);
  }
  return most;
}

/// Share of the names that are equal to the name a period later.
double Agreement(const Timeline& timeline, const std::vector<uint32_t>& kernels, size_t period) {
  size_t equal = 0;
  for (size_t i = period; i < kernels.size(); ++i)
    equal += timeline.name[kernels[i]] == timeline.name[kernels[i - period]] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(kernels.size() - period);
}

/// Distances between occurrences of one name, of the names that occur least first: a kernel that
/// occurs once in each iteration gives the period.
std::vector<size_t> Candidates(const Timeline& timeline, const std::vector<uint32_t>& kernels) {
  std::map<uint32_t, std::vector<size_t>> places;
  for (size_t i = 0; i < kernels.size(); ++i) places[timeline.name[kernels[i]]].push_back(i);
  std::vector<std::pair<size_t, size_t>> found;  // occurrences, distance
  for (const auto& [name, at] : places) {
    if (at.size() < kFewest) continue;
    std::vector<size_t> distances;
    for (size_t i = 1; i < at.size(); ++i) distances.push_back(at[i] - at[i - 1]);
    std::ranges::nth_element(distances, distances.begin() + distances.size() / 2);
    found.emplace_back(at.size(), distances[distances.size() / 2]);
  }
  std::ranges::sort(found);
  std::vector<size_t> periods;
  for (const auto& [count, distance] : found)
    if (std::ranges::find(periods, distance) == periods.end()) periods.push_back(distance);
  constexpr size_t kTried = 16;
  periods.resize(std::min(periods.size(), kTried));
  return periods;
}

Iterations FromRepetition(const EventIndex& index) {
  const Timeline& timeline = index.timeline();
  const std::vector<uint32_t> kernels = KernelsOfBusiest(index);
  size_t period = 0;
  double best = 0.9;
  for (const size_t candidate : Candidates(timeline, kernels)) {
    if (candidate < 2 || candidate * kFewest > kernels.size()) continue;
    const double agreement = Agreement(timeline, kernels, candidate);
    if (agreement <= best) continue;
    best = agreement;
    period = candidate;
  }
  if (period == 0) return {};
  Iterations iterations{fmt::format("repetition of {} kernels", period), {}};
  for (size_t i = 0; i + period <= kernels.size(); i += period) {
    const int64_t end = i + period < kernels.size() ? timeline.start[kernels[i + period]]
                                                    : timeline.End(kernels.back());
    iterations.at.push_back({timeline.start[kernels[i]], end});
  }
  return iterations;
}

}  // namespace

int64_t Iterations::Median() const {
  if (at.empty()) return 0;
  std::vector<int64_t> lengths;
  for (const Interval& one : at) lengths.push_back(one.length());
  std::ranges::nth_element(lengths, lengths.begin() + lengths.size() / 2);
  return lengths[lengths.size() / 2];
}

int64_t Iterations::Longest() const {
  int64_t longest = 0;
  for (const Interval& one : at) longest = std::max(longest, one.length());
  return longest;
}

Iterations FindIterations(const EventIndex& index) {
  Iterations annotated = FromAnnotations(index);
  return annotated.at.empty() ? FromRepetition(index) : annotated;
}

}  // namespace atunner::trace
