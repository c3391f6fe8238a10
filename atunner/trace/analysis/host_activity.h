// The sort of thing that a host event does, told from its name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

enum class HostActivity : uint8_t {
  kOther,          ///< an operator, an annotation, Python
  kLaunch,         ///< a call that submits a kernel, a copy or a graph
  kGraphLaunch,    ///< a call that submits a graph
  kBlockingCopy,   ///< cudaMemcpy and its like without Async; the call also submits
  kSynchronize,    ///< a call that waits for the GPU
  kAllocate,       ///< memory of the GPU or pinned memory: most of these calls wait, too
  kLoadModule,     ///< code of kernels
  kDataLoading,    ///< the next batch
  kCommunication,  ///< a wait for other processes on the host
};

HostActivity ActivityOf(EventKind kind, std::string_view name);

/// True for calls that submit work to a GPU.
bool Submits(HostActivity activity);

/// By event; events on the GPU are kOther. Each name is examined once.
std::vector<HostActivity> HostActivities(const Timeline& timeline);

}  // namespace atunner::trace
