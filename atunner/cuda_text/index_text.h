// Index arithmetic as CUDA text: coordinates from the row-major index of an element, and back.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "atunner/cuda_text/coordinate.h"
#include "atunner/graph/tensor_type.h"

namespace atunner::graph {

/// The row-major stride along `axis` in elements, as an expression.
std::string StrideOf(const Shape& shape, size_t axis);
/// The coordinates c0, c1, … of a shape, with 0 along axes of extent 1.
Coordinates AxisCoordinates(const Shape& shape);
/// Lines that compute the coordinates `prefix`0, `prefix`1, … along the axes for which `takes`
/// returns true, from `number`, the row-major index over these axes alone. Axes of extent 1 get no
/// line.
std::string CoordinateLines(const Shape& shape, const std::function<bool(size_t)>& takes,
                            std::string_view prefix, const std::string& number,
                            const std::string& type, std::string_view indent);
/// The row-major index of the element at these coordinates.
std::string NumberText(const Shape& shape, const Coordinates& at);

}  // namespace atunner::graph
