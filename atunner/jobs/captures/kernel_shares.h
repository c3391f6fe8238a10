// Which kernels of a captured program cost the most time.
#pragma once

#include <stop_token>

#include "atunner/capture/capture.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// One kernel of a captured program.
struct KernelShare {
  size_t kernel = 0;      ///< Capture::kernels
  uint64_t launches = 0;  ///< of the program
  size_t configurations = 0;
  double seconds = 0;  ///< of all launches; 0 = unknown
  double share = 0;    ///< of all kernels' seconds; 0 = unknown
  Evidence evidence = Evidence::kPredicted;
  const capture::CapturedLaunch* launch = nullptr;  ///< the one to tune for; nullptr: none
  std::string obstacle;                             ///< why it cannot be tuned; "" if it can
};

/// The kernels, most expensive first. Times that were not measured are predicted for `target` on
/// the virtual GPU, if `predict`.
Result<std::vector<KernelShare>> SharesOf(const capture::Capture& capture, const Path& folder,
                                          const Target& target, bool predict, Services& services,
                                          const EventSink& events, const std::stop_token& stop);

}  // namespace atunner::jobs
