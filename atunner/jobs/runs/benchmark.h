// Compares an operator's kernel with the plain kernel and the vendor's library.
#pragma once

#include <stop_token>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// One row for each size: the request's, or usual ones of its operator.
Result<BenchmarkResult> Benchmark(const BenchmarkRequest& request, Services& services,
                                  const EventSink& events, std::stop_token stop);

}  // namespace atunner::jobs
