// The valid configurations of a space, numbered.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/base/result.h"
#include "atunner/model/parameter_space.h"

namespace atunner {

class SpaceIndex {
 public:
  /// Enumerates by backtracking: a constraint is tested as soon as its names are bound. kInvalidInput names the
  /// constraint that leaves nothing, or says that there are more than `limit` valid configurations.
  static Result<SpaceIndex> Build(const ParameterSpace& space, const Dims& dims, uint64_t limit = 20'000'000);

  const ParameterSpace& space() const { return space_; }
  uint64_t size() const { return count_; }
  Configuration At(uint64_t index) const;
  /// Index of a configuration, or size() when it is not valid.
  uint64_t IndexOf(const Configuration& configuration) const;
  uint64_t Draw(Random& random) const { return random.Below(count_); }
  /// Valid configurations that differ in one parameter: all its values, or only the adjacent ones.
  std::vector<uint64_t> Neighbours(uint64_t index, bool adjacent_only) const;
  /// Coordinates in [0, 1] per feature: numbers by rank on a log scale where that is natural, texts one-hot.
  std::vector<double> Features(uint64_t index) const;

 private:
  /// Positions of the values, one byte or two per parameter, flat: count × parameters.
  std::vector<uint16_t> positions_;
  ParameterSpace space_;
  uint64_t count_ = 0;
};

}  // namespace atunner
