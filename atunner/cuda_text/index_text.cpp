#include "atunner/cuda_text/index_text.h"

#include <fmt/format.h>

namespace atunner::graph {

std::string StrideOf(const Shape& shape, size_t axis) {
  return CountText({shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()});
}

Coordinates AxisCoordinates(const Shape& shape) {
  Coordinates at;
  for (const Extent& extent : shape)
    at.push_back({.text = extent.one() ? "0" : fmt::format("c{}", at.size())});
  return at;
}

std::string CoordinateLines(const Shape& shape, const std::function<bool(size_t)>& takes,
                            std::string_view prefix, const std::string& number,
                            const std::string& type, std::string_view indent) {
  const std::string cast = type == "int" ? "(unsigned)" : "";
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].one() && takes(axis)) axes.push_back(axis);
  }
  std::string text;
  Extent stride(1);
  for (size_t i = axes.size(); i-- > 0; stride = stride * shape[axes[i]]) {
    const std::string divided = stride.one() ? ""
                                             : fmt::format(" / {}({})", cast, stride.ToString());
    const std::string rest = i == 0 ? ""
                                    : fmt::format(" % {}({})", cast, shape[axes[i]].ToString());
    const std::string place = fmt::format("{}({}){}{}", cast, number, divided, rest);
    text = fmt::format("{}const {} {}{} = {};\n", indent, type, prefix, axes[i], place) + text;
  }
  return text;
}

std::string NumberText(const Shape& shape, const Coordinates& at) {
  std::string text;
  Extent stride(1);
  for (size_t axis = shape.size(); axis-- > 0; stride = stride * shape[axis]) {
    if (shape[axis].one() || at[axis].text == "0") continue;
    const std::string times = stride.one() ? "" : " * " + stride.ToString();
    text = at[axis].text + times + (text.empty() ? "" : " + ") + text;
  }
  return text.empty() ? "0" : text;
}

}  // namespace atunner::graph
