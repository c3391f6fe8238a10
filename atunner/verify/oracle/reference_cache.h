// References by problem size and input instance. The values of the recent ones are kept within a
// limit of device memory; of the others budgets and statistics are kept.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "atunner/verify/budget/reference.h"
#include "atunner/verify/inputs/input_family.h"

namespace atunner {

class ReferenceCache {
 public:
  explicit ReferenceCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// nullptr if it was never kept. Its values may have been dropped.
  Reference* Find(const Dims& dims, const InputInstance& instance);
  const Reference* Find(const Dims& dims, const InputInstance& instance) const;
  /// Keeps a new reference.
  Reference* Keep(const Dims& dims, const InputInstance& instance, Reference reference);
  /// Makes a kept reference, whose values were computed again, the newest one.
  void Renew(const Dims& dims, const InputInstance& instance);

 private:
  using Key = std::pair<Dims, InputInstance>;
  /// Drops the values of the oldest references beyond the limit, never those of the newest.
  void DropOldest();

  uint64_t limit_bytes_;
  std::map<Key, Reference> references_;
  std::list<Key> order_;  ///< of those with values
};

}  // namespace atunner
