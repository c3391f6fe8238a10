#include "atunner/search/space/coordinates.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "atunner/model/space/permutation.h"

namespace atunner {
namespace {

constexpr int kMostTwos = 8;  // no unit of a GPU needs a larger power of two than 256
constexpr double kLogSpan = 4;

bool HasText(const Parameter& parameter) {
  return std::ranges::any_of(parameter.values,
                             [](const Value& v) { return std::holds_alternative<std::string>(v); });
}

void AddOneHot(std::vector<std::vector<float>>& table) {
  for (size_t v = 0; v < table.size(); ++v) {
    // two texts: a distance of 1
    for (size_t w = 0; w < table.size(); ++w) table[v].push_back(v == w ? 0.7f : 0.0f);
  }
}

void AddPairs(size_t items, std::vector<std::vector<float>>& table) {
  const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(items * (items - 1) / 2)));
  for (size_t rank = 0; rank < table.size(); ++rank) {
    const std::vector<size_t> order = OrderAt(rank, items);
    std::vector<size_t> place(items);
    for (size_t i = 0; i < items; ++i) place[order[i]] = i;
    for (size_t a = 0; a < items; ++a) {
      for (size_t b = a + 1; b < items; ++b)
        table[rank].push_back(place[a] < place[b] ? unit : 0.0f);
    }
  }
}

/// Maps onto [0, 1]; nothing when all are equal.
bool AddScaled(const std::vector<double>& raw, std::vector<std::vector<float>>& table) {
  const auto [low, high] = std::ranges::minmax(raw);
  if (!(high > low)) return false;
  for (size_t v = 0; v < raw.size(); ++v)
    table[v].push_back(static_cast<float>((raw[v] - low) / (high - low)));
  return true;
}

std::vector<double> Sizes(const Parameter& parameter) {
  std::vector<double> raw;
  raw.reserve(parameter.values.size());
  for (const Value& value : parameter.values) raw.push_back(ToDouble(value));
  const auto [low, high] = std::ranges::minmax(raw);
  if (low > 0 && high / low >= kLogSpan) {
    for (double& v : raw) v = std::log2(v);
  }
  return raw;
}

/// The number of factors of two of each value; empty when it adds nothing to the value itself.
std::vector<double> Twos(const Parameter& parameter) {
  std::vector<double> twos;
  bool powers = true;
  for (const Value& value : parameter.values) {
    const auto* whole = std::get_if<int64_t>(&value);
    if (whole == nullptr || *whole <= 0) return {};
    const auto bits = static_cast<uint64_t>(*whole);
    powers = powers && std::has_single_bit(bits);
    twos.push_back(std::min(kMostTwos, std::countr_zero(bits)));
  }
  if (powers) return {};
  return twos;
}

}  // namespace

Coordinates::Coordinates(const SpaceIndex& index) : index_(&index) {
  size_t group = 0;
  for (const Parameter& parameter : index.space().parameters) {
    auto& table = table_.emplace_back(parameter.values.size());
    if (parameter.values.size() < 2) continue;
    if (HasText(parameter)) {
      if (parameter.items.empty())
        AddOneHot(table);
      else
        AddPairs(parameter.items.size(), table);
      group_.insert(group_.end(), table[0].size(), group++);
      continue;
    }
    if (AddScaled(Sizes(parameter), table)) group_.push_back(group++);
    const std::vector<double> twos = Twos(parameter);
    if (!twos.empty() && AddScaled(twos, table)) group_.push_back(group++);
  }
}

std::vector<float> Coordinates::OfPositions(std::span<const uint16_t> positions) const {
  std::vector<float> point;
  point.reserve(size());
  for (size_t p = 0; p < positions.size(); ++p) {
    const auto& own = table_[p][positions[p]];
    point.insert(point.end(), own.begin(), own.end());
  }
  return point;
}

std::vector<float> Coordinates::Of(uint64_t index) const {
  return OfPositions(index_->PositionsAt(index));
}

double SquaredDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return sum;
}

}  // namespace atunner
