// The valid configurations of a space, numbered from 0. space_builder.h explains the data
// structure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/base/result.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/search/space/decision_diagram.h"

namespace atunner {

/// Which configurations are neighbours. All differ in exactly one parameter. Orders of items differ
/// in one swap; for the adjacent kinds, of two items side by side.
enum class Neighbourhood {
  /// Any other value. Parameters that the change switches on or off change too.
  kHamming,
  kAdjacent,         ///< the nearest valid value in either direction
  kStrictlyAdjacent  ///< the next value in either direction, if it is valid
};

/// Memory and time to build grow with the states of the constraints, not with the product of the
/// values: spaces of 10^12 combinations are fine. Every operation on one configuration costs a step
/// per parameter.
class SpaceIndex {
 public:
  /// kInvalidInput names the constraints that contradict each other (see space_builder.h for the
  /// rest).
  static Result<SpaceIndex> Build(const ParameterSpace& space, const Dims& dims);
  /// Exactly the listed configurations, given as positions of values: `rows` holds one per
  /// parameter, row after row. The space's constraints are not looked at. kInvalidInput when the
  /// list is empty or a position is out of range.
  static Result<SpaceIndex> FromList(const ParameterSpace& space, std::span<const uint16_t> rows);

  const ParameterSpace& space() const { return space_; }
  const DecisionDiagram& diagram() const { return diagram_; }
  uint64_t size() const { return diagram_.size(); }
  size_t parameters() const { return space_.parameters.size(); }
  Configuration At(uint64_t index) const;
  /// Index of a configuration, or size() when it is not valid.
  uint64_t IndexOf(const Configuration& configuration) const;
  /// Configurations as positions within Parameter::values in place of values.
  void PositionsAt(uint64_t index, std::span<uint16_t> positions) const {
    diagram_.PositionsAt(index, positions);
  }
  std::vector<uint16_t> PositionsAt(uint64_t index) const;
  uint64_t IndexOfPositions(std::span<const uint16_t> positions) const {
    return diagram_.IndexOf(positions);
  }
  /// A valid configuration near these positions, which need be neither whole nor valid.
  uint64_t Near(std::span<const double> positions) const { return diagram_.Near(positions); }
  uint64_t Draw(Random& random) const { return random.Below(size()); }
  std::vector<uint64_t> Neighbours(uint64_t index, Neighbourhood kind) const;

 private:
  SpaceIndex(ParameterSpace space, DecisionDiagram diagram, Dims dims);

  void AddSwitched(const std::vector<uint16_t>& centre, std::vector<uint64_t>& neighbours) const;
  void DeactivateWhatIsOff(std::vector<uint16_t>& positions) const;

  ParameterSpace space_;
  DecisionDiagram diagram_;
  Dims dims_;
  std::vector<size_t> switches_;     ///< parameters that conditions name
  std::vector<size_t> conditional_;  ///< parameters with a condition
};

}  // namespace atunner
