// References by problem size and input instance. The values of as many as fit into a limit of
// device memory are kept; of the others budgets and statistics are kept.
//
// Every candidate needs the references in the same order. So those that came first stay: of eight
// references with room for three, two are found by each candidate. If the oldest were dropped, none
// would be.
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
  /// Drops the values that a reference of so many bytes will leave no room for, so that its
  /// computation does not need memory for both.
  void MakeRoom(uint64_t bytes);
  /// Keeps a new reference.
  Reference* Keep(const Dims& dims, const InputInstance& instance, Reference reference);
  /// Makes a kept reference, whose values were computed again, the newest one.
  void Renew(const Dims& dims, const InputInstance& instance);

 private:
  using Key = std::pair<Dims, InputInstance>;
  /// Drops the values of references, beginning with the newest but for `kept`, until with `bytes`
  /// more they are within the limit.
  void Drop(uint64_t bytes, size_t kept);

  uint64_t limit_bytes_;
  std::map<Key, Reference> references_;
  std::list<Key> order_;  ///< of those with values
};

}  // namespace atunner
