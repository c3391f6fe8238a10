// What every strategy keeps: which configurations were asked or told.
#pragma once

#include <unordered_set>

#include "atunner/search/searcher.h"

namespace atunner {

class AskedSet {
 public:
  explicit AskedSet(std::shared_ptr<const SpaceIndex> index, const SearchOptions& options) : index_(std::move(index)) {
    if (options.first) {
      const uint64_t first = index_->IndexOf(*options.first);
      if (first < index_->size()) first_ = first;
    }
  }
  const SpaceIndex& index() const { return *index_; }
  bool Contains(uint64_t at) const { return asked_.contains(at); }
  bool Exhausted() const { return asked_.size() >= index_->size(); }
  bool Add(uint64_t at) { return asked_.insert(at).second; }
  /// The first configuration, once.
  std::optional<uint64_t> TakeFirst() {
    if (!first_ || Contains(*first_)) return std::nullopt;
    return first_;
  }
  /// A uniform draw among those not asked; nullopt when all are.
  std::optional<uint64_t> Draw(Random& random) const {
    if (Exhausted()) return std::nullopt;
    for (int tries = 0; tries < 64; ++tries) {
      const uint64_t at = index_->Draw(random);
      if (!Contains(at)) return at;
    }
    // Nearly exhausted: the next free one behind a random place.
    uint64_t at = index_->Draw(random);
    while (Contains(at)) at = (at + 1) % index_->size();
    return at;
  }

 private:
  std::shared_ptr<const SpaceIndex> index_;
  std::unordered_set<uint64_t> asked_;
  std::optional<uint64_t> first_;
};

}  // namespace atunner
