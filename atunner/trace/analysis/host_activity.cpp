#include "atunner/trace/analysis/host_activity.h"

#include <algorithm>
#include <initializer_list>

namespace atunner::trace {
namespace {

bool Has(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

HostActivity ActivityOfCall(std::string_view name) {
  if (Has(name, {"GraphLaunch"})) return HostActivity::kGraphLaunch;
  if (Has(name, {"LaunchKernel", "LaunchCooperative", "cuLaunch"})) return HostActivity::kLaunch;
  if (Has(name, {"Synchronize", "EventQuery"}))
    return Has(name, {"EventQuery"}) ? HostActivity::kOther : HostActivity::kSynchronize;
  if (Has(name, {"Memcpy", "Memset"}))
    return Has(name, {"Async"}) ? HostActivity::kLaunch : HostActivity::kBlockingCopy;
  if (Has(name, {"ModuleLoad", "ModuleGetFunction", "LibraryLoad", "LinkComplete"}))
    return HostActivity::kLoadModule;
  if (Has(name, {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cuMemAlloc",
                 "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess"}))
    return Has(name, {"Async"}) ? HostActivity::kOther : HostActivity::kAllocate;
  return HostActivity::kOther;
}

}  // namespace

HostActivity ActivityOf(EventKind kind, std::string_view name) {
  if (kind == EventKind::kCall) return ActivityOfCall(name);
  if (IsOnGpu(kind)) return HostActivity::kOther;
  if (Has(name, {"DataLoader", "data_loading", "dataloader", "data loading"}))
    return HostActivity::kDataLoading;
  if (Has(name, {"gloo:", "mpi:", "c10d::barrier", "ProcessGroupGloo", "store->wait"}))
    return HostActivity::kCommunication;
  return HostActivity::kOther;
}

bool Submits(HostActivity activity) {
  return activity == HostActivity::kLaunch || activity == HostActivity::kGraphLaunch ||
         activity == HostActivity::kBlockingCopy;
}

std::vector<HostActivity> HostActivities(const Timeline& timeline) {
  constexpr uint8_t kNotLooked = 0xff;
  // Names of calls and of other events may be equal, so each has a table.
  std::vector<uint8_t> known[2];
  known[0].assign(timeline.strings.size(), kNotLooked);
  known[1] = known[0];
  std::vector<HostActivity> activities(timeline.size(), HostActivity::kOther);
  for (size_t event = 0; event < timeline.size(); ++event) {
    const EventKind kind = timeline.kind[event];
    if (IsOnGpu(kind)) continue;
    uint8_t& activity = known[kind == EventKind::kCall ? 1 : 0][timeline.name[event]];
    if (activity == kNotLooked)
      activity = static_cast<uint8_t>(ActivityOf(kind, timeline.NameOf(event)));
    activities[event] = static_cast<HostActivity>(activity);
  }
  return activities;
}

}  // namespace atunner::trace
