#include "atunner/search/space_index.h"

#include <algorithm>
#include <cmath>

#include "atunner/search/space_builder.h"

namespace atunner {
namespace {

Status CheckValueCounts(const ParameterSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    if (parameter.values.size() > 65535)
      return Invalid("parameter '" + parameter.name + "' has more than 65535 values");
  }
  return {};
}

}  // namespace

Result<SpaceIndex> SpaceIndex::Build(const ParameterSpace& space, const Dims& dims) {
  ATUNNER_RETURN_IF_ERROR(space.Validate(dims));
  ATUNNER_RETURN_IF_ERROR(CheckValueCounts(space));
  ATUNNER_TRY(DecisionDiagram diagram, BuildDiagram(space, dims));
  return SpaceIndex(space, std::move(diagram));
}

Result<SpaceIndex> SpaceIndex::FromList(const ParameterSpace& space, std::span<const uint16_t> rows) {
  ParameterSpace unconstrained = space;
  unconstrained.constraints.clear();
  ATUNNER_RETURN_IF_ERROR(unconstrained.Validate({}));
  ATUNNER_RETURN_IF_ERROR(CheckValueCounts(space));
  const size_t width = space.parameters.size();
  if (width == 0 || rows.empty() || rows.size() % width != 0) return Invalid("the list of configurations is empty");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= space.parameters[i % width].values.size())
      return Invalid("parameter '" + space.parameters[i % width].name + "' has no value number " +
                     std::to_string(rows[i]));
  }
  return SpaceIndex(std::move(unconstrained), DecisionDiagram::FromRows(rows, width));
}

Configuration SpaceIndex::At(uint64_t index) const {
  const std::vector<uint16_t> positions = PositionsAt(index);
  Configuration configuration;
  configuration.values.reserve(positions.size());
  for (size_t i = 0; i < positions.size(); ++i)
    configuration.values.push_back(space_.parameters[i].values[positions[i]]);
  return configuration;
}

std::vector<uint16_t> SpaceIndex::PositionsAt(uint64_t index) const {
  std::vector<uint16_t> positions(parameters());
  diagram_.PositionsAt(index, positions);
  return positions;
}

uint64_t SpaceIndex::IndexOf(const Configuration& configuration) const {
  if (configuration.values.size() != parameters()) return size();
  std::vector<uint16_t> wanted;
  for (size_t i = 0; i < parameters(); ++i) {
    const auto& values = space_.parameters[i].values;
    const auto at = std::ranges::find(values, configuration.values[i]);
    if (at == values.end()) return size();
    wanted.push_back(static_cast<uint16_t>(at - values.begin()));
  }
  return IndexOfPositions(wanted);
}

std::vector<uint64_t> SpaceIndex::Neighbours(uint64_t index, Neighbourhood kind) const {
  const std::vector<uint16_t> centre = PositionsAt(index);
  std::vector<uint64_t> neighbours;
  size_t parameter = parameters();
  int below = 0;  // position of the neighbour kept last, of this parameter
  diagram_.VisitHamming(centre, [&](size_t p, uint16_t value, uint64_t at) {
    const int here = centre[p];
    if (kind == Neighbourhood::kStrictlyAdjacent && std::abs(here - value) > 1) return;
    // Values come in ascending order: of those below the last one counts, of those above the first one.
    const bool same_side = parameter == p && (below < here) == (value < here);
    if (kind == Neighbourhood::kAdjacent && same_side) {
      if (value > here) return;
      neighbours.pop_back();
    }
    parameter = p;
    below = value;
    neighbours.push_back(at);
  });
  return neighbours;
}

}  // namespace atunner
