// The names of room capture that this library uses: the orders of `capture` and `apply`, which
// arrive through the environment, and the report of `apply`.
#pragma once

#include "atunner/capture/applied.h"
#include "atunner/capture/reachable.h"
#include "atunner/capture/record_order.h"

namespace atunner::recorder {

using capture::AppliedLaunch;
using capture::AppliedReport;
using capture::ApplyOrder;
using capture::Comparison;
using capture::Element;
using capture::kApplyVariable;
using capture::kRecordVariable;
using capture::Reachable;
using capture::ReadAppliedReport;
using capture::ReadApplyOrder;
using capture::ReadRecordOrder;
using capture::RecordOrder;
using capture::Verdict;

}  // namespace atunner::recorder
