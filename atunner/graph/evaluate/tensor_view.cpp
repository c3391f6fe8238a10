#include "atunner/graph/evaluate/tensor_view.h"

#include <algorithm>
#include <cstring>

namespace atunner::graph {

int64_t Product(std::span<const int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

Extents DenseStrides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

View View::Dense(std::vector<Cell> cells, Extents extents) {
  View view;
  view.cells = std::make_shared<const std::vector<Cell>>(std::move(cells));
  view.strides = DenseStrides(extents);
  view.extents = std::move(extents);
  return view;
}

bool View::dense() const {
  int64_t wanted = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != wanted) return false;
    wanted *= extents[i];
  }
  return true;
}

View View::Packed() const {
  if (dense()) return *this;
  std::vector<Cell> packed(static_cast<size_t>(size()));
  const Walk walk(extents, {strides});
  const int64_t step = walk.steps()[0];
  walk.Run([&](int64_t first, int64_t length, std::span<const int64_t> at) {
    const Cell* from = base() + at[0];
    Cell* to = packed.data() + first;
    for (int64_t i = 0; i < length; ++i) to[i] = from[i * step];
  });
  return Dense(std::move(packed), extents);
}

Extents View::StridesIn(const Extents& shape) const {
  Extents result(shape.size(), 0);
  const size_t lead = shape.size() - extents.size();
  for (size_t i = 0; i < extents.size(); ++i) result[lead + i] = extents[i] == 1 ? 0 : strides[i];
  return result;
}

namespace {

/// Merges neighbouring axes that are contiguous in all operands, and removes axes of extent 1.
std::pair<Extents, std::vector<Extents>> MergedAxes(const Extents& extents,
                                                    const std::vector<Extents>& strides) {
  Extents merged;
  std::vector<Extents> by(strides.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    bool even = !merged.empty();
    for (size_t k = 0; k < strides.size() && even; ++k)
      even = by[k].back() == strides[k][i] * extents[i];
    if (even) {
      merged.back() *= extents[i];
      for (size_t k = 0; k < strides.size(); ++k) by[k].back() = strides[k][i];
    } else {
      merged.push_back(extents[i]);
      for (size_t k = 0; k < strides.size(); ++k) by[k].push_back(strides[k][i]);
    }
  }
  return {std::move(merged), std::move(by)};
}

}  // namespace

Walk::Walk(Extents extents, std::vector<Extents> strides) {
  auto [merged, by] = MergedAxes(extents, strides);
  steps_.assign(strides.size(), 0);
  if (!merged.empty()) {
    length_ = merged.back();
    merged.pop_back();
    for (size_t k = 0; k < strides.size(); ++k) {
      steps_[k] = by[k].back();
      by[k].pop_back();
    }
  }
  outer_ = std::move(merged);
  outer_strides_ = std::move(by);
}

void Walk::Run(const Visit& visit) const {
  Extents place(outer_.size(), 0);
  Extents at(steps_.size(), 0);
  for (int64_t first = 0;; first += length_) {
    visit(first, length_, at);
    size_t axis = outer_.size();
    while (axis > 0) {
      --axis;
      const bool carry = ++place[axis] == outer_[axis];
      for (size_t k = 0; k < at.size(); ++k)
        at[k] += outer_strides_[k][axis] * (carry ? 1 - outer_[axis] : 1);
      if (!carry) break;
      place[axis] = 0;
      if (axis == 0) return;
    }
    if (outer_.empty()) return;
  }
}

}  // namespace atunner::graph
