#include "atunner/search/space/space_index.h"

#include <algorithm>
#include <cmath>

#include "atunner/model/space/permutation.h"
#include "atunner/search/space/space_builder.h"

namespace atunner {
namespace {

Status CheckValueCounts(const ParameterSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    if (parameter.values.size() > 65535)
      return Invalid("parameter '" + parameter.name + "' has more than 65535 values");
  }
  return {};
}

uint16_t PositionOf(const Parameter& parameter, const Value& value) {
  return static_cast<uint16_t>(std::ranges::find(parameter.values, value) -
                               parameter.values.begin());
}

/// Ranks of the orders that differ in one swap, ascending.
std::vector<size_t> Swapped(size_t rank, size_t items, bool side_by_side) {
  std::vector<size_t> order = OrderAt(rank, items);
  std::vector<size_t> ranks;
  for (size_t i = 0; i < items; ++i) {
    for (size_t j = i + 1; j < (side_by_side ? std::min(i + 2, items) : items); ++j) {
      std::swap(order[i], order[j]);
      ranks.push_back(RankOf(order));
      std::swap(order[i], order[j]);
    }
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace

SpaceIndex::SpaceIndex(ParameterSpace space, DecisionDiagram diagram, Dims dims)
    : space_(std::move(space)), diagram_(std::move(diagram)), dims_(std::move(dims)) {
  std::vector<bool> named(parameters(), false);
  for (size_t p = 0; p < parameters(); ++p) {
    if (!space_.parameters[p].only_if) continue;
    conditional_.push_back(p);
    for (const std::string& name : space_.parameters[p].only_if->Names()) {
      if (const int at = space_.Find(name); at >= 0) named[static_cast<size_t>(at)] = true;
    }
  }
  for (size_t p = 0; p < parameters(); ++p) {
    if (named[p]) switches_.push_back(p);
  }
}

Result<SpaceIndex> SpaceIndex::Build(const ParameterSpace& space, const Dims& dims) {
  ATUNNER_RETURN_IF_ERROR(space.Validate(dims));
  ATUNNER_RETURN_IF_ERROR(CheckValueCounts(space));
  ATUNNER_TRY(DecisionDiagram diagram, BuildDiagram(space, dims));
  return SpaceIndex(space, std::move(diagram), dims);
}

Result<SpaceIndex> SpaceIndex::FromList(const ParameterSpace& space,
                                        std::span<const uint16_t> rows) {
  ParameterSpace unconstrained = space;
  unconstrained.constraints.clear();
  for (Parameter& parameter : unconstrained.parameters) parameter.only_if.reset();
  ATUNNER_RETURN_IF_ERROR(unconstrained.Validate({}));
  ATUNNER_RETURN_IF_ERROR(CheckValueCounts(space));
  const size_t width = space.parameters.size();
  if (width == 0 || rows.empty() || rows.size() % width != 0)
    return Invalid("the list of configurations is empty");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= space.parameters[i % width].values.size())
      return Invalid("parameter '" + space.parameters[i % width].name + "' has no value number " +
                     std::to_string(rows[i]));
  }
  return SpaceIndex(std::move(unconstrained), DecisionDiagram::FromRows(rows, width), {});
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
  std::vector<std::vector<size_t>> swapped(parameters());
  for (size_t p = 0; p < parameters(); ++p) {
    const size_t items = space_.parameters[p].items.size();
    if (items > 0) swapped[p] = Swapped(centre[p], items, kind != Neighbourhood::kHamming);
  }
  std::vector<uint64_t> neighbours;
  size_t parameter = parameters();
  int below = 0;  // position of the neighbour kept last, of this parameter
  diagram_.VisitHamming(centre, [&](size_t p, uint16_t value, uint64_t at) {
    const int here = centre[p];
    if (!space_.parameters[p].items.empty()) {
      if (std::ranges::binary_search(swapped[p], value)) neighbours.push_back(at);
      return;
    }
    if (kind == Neighbourhood::kStrictlyAdjacent && std::abs(here - value) > 1) return;
    // Values come in ascending order: the last one below and the first one above count.
    const bool same_side = parameter == p && (below < here) == (value < here);
    if (kind == Neighbourhood::kAdjacent && same_side) {
      if (value > here) return;
      neighbours.pop_back();
    }
    parameter = p;
    below = value;
    neighbours.push_back(at);
  });
  if (kind == Neighbourhood::kHamming) AddSwitched(centre, neighbours);
  return neighbours;
}

void SpaceIndex::DeactivateWhatIsOff(std::vector<uint16_t>& positions) const {
  const std::vector<std::string> names = space_.Names();
  for (size_t pass = 0; pass < conditional_.size(); ++pass) {  // one may switch another
    bool settled = true;
    for (size_t p : conditional_) {
      const Parameter& parameter = space_.parameters[p];
      std::vector<Value> values;
      for (size_t q = 0; q < positions.size(); ++q)
        values.push_back(space_.parameters[q].values[positions[q]]);
      const auto on = parameter.only_if->EvaluateBool(Bindings(dims_).Add(names, values));
      const uint16_t inactive = PositionOf(parameter, parameter.Inactive());
      if (!on || *on || positions[p] == inactive) continue;
      positions[p] = inactive;
      settled = false;
    }
    if (settled) return;
  }
}

/// A parameter that switches others can seldom change alone. Parameters that it switches off get
/// their inactive value; those that it switches on get the nearest valid value.
void SpaceIndex::AddSwitched(const std::vector<uint16_t>& centre,
                             std::vector<uint64_t>& neighbours) const {
  for (size_t p : switches_) {
    for (size_t v = 0; v < space_.parameters[p].values.size(); ++v) {
      if (v == centre[p]) continue;
      std::vector<uint16_t> changed = centre;
      changed[p] = static_cast<uint16_t>(v);
      DeactivateWhatIsOff(changed);
      uint64_t at = IndexOfPositions(changed);
      if (at == size()) {
        at = Near(std::vector<double>(changed.begin(), changed.end()));
        const std::vector<uint16_t> nearest = PositionsAt(at);
        const auto follows = [&](size_t q) {
          return nearest[q] == changed[q] || (q != p && space_.parameters[q].only_if.has_value());
        };
        bool only_switched = true;
        for (size_t q = 0; q < parameters(); ++q) only_switched &= follows(q);
        if (!only_switched) continue;
        changed = nearest;
      }
      size_t differences = 0;
      for (size_t q = 0; q < parameters(); ++q) differences += changed[q] != centre[q];
      if (differences > 1) neighbours.push_back(at);
    }
  }
}

}  // namespace atunner
