// Places in tensors as text of a kernel: coordinates from the row-major number of an element, and
// that number from them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "atunner/cuda_text/element_text.h"

namespace atunner::graph {

/// Elements between neighbours along `axis`.
std::string StrideOf(const Shape& shape, size_t axis);
/// c0, c1, … along the axes of a shape, 0 along those of extent 1.
Coordinates AxisCoordinates(const Shape& shape);
/// Lines that compute c0, c1, … (of another `prefix`) along those axes of a shape that `takes`,
/// from the row-major number of what these axes alone have. Axes of extent 1 have none.
std::string CoordinateLines(const Shape& shape, const std::function<bool(size_t)>& takes,
                            std::string_view prefix, const std::string& number,
                            const std::string& type, std::string_view indent);
/// The number of an element of a shape by its coordinates.
std::string NumberText(const Shape& shape, const Coordinates& at);

}  // namespace atunner::graph
