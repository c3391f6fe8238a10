// The pictures of the report as inline SVG. Colours are CSS classes, which the page defines for a
// light and a dark background.
#pragma once

#include <string>

#include "atunner/report/report.h"

namespace atunner {

/// The time of each trial over its number, and the best so far as a line. Empty if no trial was
/// correct.
std::string ConvergencePicture(const Report& report);
/// The roofline: attainable FLOP/s over FLOP per byte on logarithmic axes, with the baselines and
/// the best kernel. Empty if the task states no FLOP count or no traffic.
std::string RooflinePicture(const Report& report);

/// Makes text safe for HTML elements and attributes: & < > " ' become entities, and control
/// characters except line feed and tab are dropped.
std::string Escape(std::string_view text);

}  // namespace atunner
