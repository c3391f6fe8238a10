// The report's pictures as inline SVG. Colours are CSS classes, so that the page decides on light
// and dark.
#pragma once

#include <string>

#include "atunner/report/report.h"

namespace atunner {

/// All trials' times over their numbers, and the best so far as a line. Empty when nothing was
/// correct.
std::string ConvergencePicture(const Report& report);
/// Attainable FLOP/s over FLOP per byte, log-log, with the roof of the device, the baselines and
/// the best kernel. Empty when the task states no arithmetic or no traffic.
std::string RooflinePicture(const Report& report);

/// Text for HTML and attributes: & < > " ' escaped, other control characters dropped.
std::string Escape(std::string_view text);

}  // namespace atunner
