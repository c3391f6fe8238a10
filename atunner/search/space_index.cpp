#include "atunner/search/space_index.h"

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

/// Enumerates valid position tuples in lexicographic order.
class Enumerator {
 public:
  Enumerator(const ParameterSpace& space, const Dims& dims, uint64_t limit)
      : space_(space), dims_(dims), limit_(limit) {
    names_ = space.Names();
    values_.resize(names_.size());
    ready_.resize(names_.size() + 1);
    for (size_t c = 0; c < space.constraints.size(); ++c) {
      size_t depth = 0;
      for (const std::string& name : space.constraints[c].condition.Names()) {
        const int at = space.Find(name);
        if (at >= 0) depth = std::max(depth, static_cast<size_t>(at) + 1);
      }
      ready_[depth].push_back(c);
    }
    rejected_.resize(space.constraints.size());
  }

  Result<std::vector<uint16_t>> Run() {
    chosen_.resize(names_.size());
    ATUNNER_TRY(const bool possible, Holds(0));
    if (possible) ATUNNER_RETURN_IF_ERROR(Descend(0));
    return std::move(found_);
  }

  /// The constraint that rejected most.
  std::string Culprit() const {
    const auto worst = std::ranges::max_element(rejected_);
    if (worst == rejected_.end() || *worst == 0) return "";
    return space_.constraints[static_cast<size_t>(worst - rejected_.begin())].condition.text();
  }

 private:
  Result<bool> Holds(size_t depth) {
    if (ready_[depth].empty()) return true;
    Bindings bindings;
    bindings.Add(std::span(names_).first(depth), std::span(values_).first(depth)).Add(dims_);
    for (size_t c : ready_[depth]) {
      ATUNNER_TRY(const bool holds, space_.constraints[c].condition.EvaluateBool(bindings));
      if (!holds) {
        ++rejected_[c];
        return false;
      }
    }
    return true;
  }

  Status Descend(size_t depth) {
    if (depth == names_.size()) {
      if (found_.size() / std::max<size_t>(names_.size(), 1) >= limit_)
        return Invalid("the space has more than " + std::to_string(limit_) + " valid configurations", "",
                       "add constraints or remove values");
      found_.insert(found_.end(), chosen_.begin(), chosen_.end());
      return {};
    }
    const std::vector<Value>& values = space_.parameters[depth].values;
    for (size_t i = 0; i < values.size(); ++i) {
      values_[depth] = values[i];
      chosen_[depth] = static_cast<uint16_t>(i);
      ATUNNER_TRY(const bool holds, Holds(depth + 1));
      if (holds) ATUNNER_RETURN_IF_ERROR(Descend(depth + 1));
    }
    return {};
  }

  const ParameterSpace& space_;
  const Dims& dims_;
  uint64_t limit_;
  std::vector<std::string> names_;
  std::vector<Value> values_;
  std::vector<std::vector<size_t>> ready_;
  std::vector<uint16_t> chosen_;
  std::vector<uint16_t> found_;
  std::vector<uint64_t> rejected_;
};

}  // namespace

Result<SpaceIndex> SpaceIndex::Build(const ParameterSpace& space, const Dims& dims, uint64_t limit) {
  ATUNNER_RETURN_IF_ERROR(space.Validate(dims));
  for (const Parameter& parameter : space.parameters) {
    if (parameter.values.size() > 65535)
      return Invalid("parameter '" + parameter.name + "' has more than 65535 values");
  }
  Enumerator enumerator(space, dims, limit);
  SpaceIndex index;
  ATUNNER_TRY(index.positions_, enumerator.Run());
  index.space_ = space;
  index.count_ = space.parameters.empty() ? 1 : index.positions_.size() / space.parameters.size();
  if (index.count_ == 0) {
    return Invalid("no configuration satisfies all constraints", "constraint '" + enumerator.Culprit() + "'",
                   "this one rejects most; widen it or the values it uses");
  }
  return index;
}

Configuration SpaceIndex::At(uint64_t index) const {
  Configuration configuration;
  const size_t n = space_.parameters.size();
  for (size_t i = 0; i < n; ++i) configuration.values.push_back(space_.parameters[i].values[positions_[index * n + i]]);
  return configuration;
}

uint64_t SpaceIndex::IndexOf(const Configuration& configuration) const {
  const size_t n = space_.parameters.size();
  if (configuration.values.size() != n) return count_;
  std::vector<uint16_t> wanted;
  for (size_t i = 0; i < n; ++i) {
    const auto& values = space_.parameters[i].values;
    const auto at = std::ranges::find(values, configuration.values[i]);
    if (at == values.end()) return count_;
    wanted.push_back(static_cast<uint16_t>(at - values.begin()));
  }
  uint64_t low = 0;  // enumeration is in lexicographic order
  uint64_t high = count_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    const uint16_t* row = positions_.data() + middle * n;
    if (std::lexicographical_compare(row, row + n, wanted.begin(), wanted.end()))
      low = middle + 1;
    else
      high = middle;
  }
  return low < count_ && std::equal(wanted.begin(), wanted.end(), positions_.begin() + static_cast<long>(low * n))
             ? low
             : count_;
}

std::vector<uint64_t> SpaceIndex::Neighbours(uint64_t index, bool adjacent_only) const {
  const Configuration centre = At(index);
  std::vector<uint64_t> neighbours;
  for (size_t i = 0; i < centre.values.size(); ++i) {
    const auto& values = space_.parameters[i].values;
    const auto at = static_cast<int64_t>(positions_[index * centre.values.size() + i]);
    for (int64_t v = 0; v < static_cast<int64_t>(values.size()); ++v) {
      if (v == at || (adjacent_only && std::abs(v - at) > 1)) continue;
      Configuration moved = centre;
      moved.values[i] = values[static_cast<size_t>(v)];
      if (const uint64_t found = IndexOf(moved); found < count_) neighbours.push_back(found);
    }
  }
  return neighbours;
}

std::vector<double> SpaceIndex::Features(uint64_t index) const {
  std::vector<double> features;
  const size_t n = space_.parameters.size();
  for (size_t i = 0; i < n; ++i) {
    const auto& values = space_.parameters[i].values;
    const uint16_t at = positions_[index * n + i];
    if (values.size() < 2) continue;
    if (std::holds_alternative<std::string>(values[0])) {
      for (size_t v = 0; v < values.size(); ++v) features.push_back(v == at ? 0.7 : 0.0);
      continue;
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (const Value& value : values) {
      low = std::min(low, ToDouble(value));
      high = std::max(high, ToDouble(value));
    }
    const auto scale = [&](double v) { return low > 0 && high / low >= 4 ? std::log2(v) : v; };
    features.push_back((scale(ToDouble(values[at])) - scale(low)) / (scale(high) - scale(low)));
  }
  return features;
}

}  // namespace atunner
