// Indices along the axes of a tensor, as CUDA text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atunner::graph {

/// An index along one axis as a CUDA expression, for one element or for all lanes of a vector.
struct Coordinate {
  enum class Lanes : uint8_t {
    kSame,  ///< the same for all lanes
    kNext,  ///< `text` is the index of lane 0; lane i has the index text + i
    kAny,   ///< `text` is an expression over the variable `lane`
  };
  std::string text;
  Lanes lanes = Lanes::kSame;
  int64_t multiple = 1;  ///< kNext: the index of lane 0 is a multiple of this
  int depth = 0;         ///< the outermost scope in which `text` can be evaluated

  bool operator==(const Coordinate& other) const {
    return text == other.text && lanes == other.lanes;
  }
  std::string OfLane() const { return lanes == Lanes::kNext ? "(" + text + " + lane)" : text; }
};
using Coordinates = std::vector<Coordinate>;

}  // namespace atunner::graph
