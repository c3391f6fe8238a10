// How each GPU spent the time: computing, communicating, copying, or idle and why.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "atunner/trace/analysis/event_index.h"
#include "atunner/trace/timeline/intervals.h"

namespace atunner::trace {

/// Why a GPU had nothing to do. For a gap between two pieces of work:
///
///     GPU     ████ work ████|·········· gap ··········|████ next ████
///     host      … DataLoader ──────┤ aten::mm ┤ launch ┤
///               └ data loading     └ host     └ launch
///
/// The thread that submitted the next work says what the host did during the gap. If that thread
/// was waiting for the GPU when the gap began, the queue was empty because of that wait, and the
/// host's work and launches until the next work belong to it.
enum class IdleCause : uint8_t {
  kDataLoading,      ///< the host waited for the next batch
  kCommunication,    ///< the host waited for other processes
  kAllocation,       ///< cudaMalloc, cudaFree and their like
  kModuleLoading,    ///< code was loaded or compiled
  kSynchronization,  ///< the host had waited for the GPU, and the GPU then waited for the host
  kLaunch,           ///< calls that submit, and the way from such a call to the GPU
  kHostWork,         ///< operators, Python and other code of the host
  kDependency,       ///< the next work was submitted in time, but waited for an event or a stream
  kUnknown,          ///< the trace does not say
};
inline constexpr size_t kIdleCauses = 9;

std::string_view Name(IdleCause cause);
/// "data loading", for people.
std::string_view Title(IdleCause cause);

/// All times in nanoseconds of the window. compute + exposed communication + exposed copies + idle
/// is the window.
struct DeviceTime {
  int32_t device = 0;
  int64_t window = 0;
  int64_t busy = 0;
  int64_t compute = 0;                ///< union of kernels that do not communicate
  int64_t communication = 0;          ///< union of kernels that communicate
  int64_t copies = 0;                 ///< union of copies and memory sets
  int64_t exposed_communication = 0;  ///< while nothing computes
  int64_t exposed_copies = 0;         ///< while nothing computes or communicates
  std::array<int64_t, kIdleCauses> idle{};
  int64_t Idle() const { return window - busy; }
  int64_t IdleFor(IdleCause cause) const { return idle[static_cast<size_t>(cause)]; }
};

struct StreamTime {
  uint32_t track = 0;
  int64_t busy = 0;
  uint64_t events = 0;
};

/// A time in which a GPU had nothing to do.
struct Gap {
  int32_t device = 0;
  Interval at;
  uint32_t next = kNoEvent;  ///< the work after it
  std::array<int64_t, kIdleCauses> causes{};
  IdleCause Main() const;
};

struct DeviceTimes {
  std::vector<DeviceTime> devices;
  std::vector<StreamTime> streams;
  std::vector<Gap> longest;  ///< at most `gaps`, longest first
};

DeviceTimes DeviceTimesOf(const EventIndex& index, Interval window, size_t gaps = 20);

}  // namespace atunner::trace
