// Recent references, by problem size and input instance, within a limit of device memory.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "atunner/verify/input_family.h"
#include "atunner/verify/reference.h"

namespace atunner {

class ReferenceCache {
 public:
  explicit ReferenceCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// nullptr if it was never kept or was evicted.
  Reference* Find(const Dims& dims, const InputInstance& instance);
  const Reference* Find(const Dims& dims, const InputInstance& instance) const;
  /// Keeps a new reference and evicts the oldest ones beyond the limit, never the new one.
  Reference* Keep(const Dims& dims, const InputInstance& instance, Reference reference);

 private:
  using Key = std::pair<Dims, InputInstance>;
  void Evict();

  uint64_t limit_bytes_;
  std::map<Key, Reference> references_;
  std::list<Key> order_;
};

}  // namespace atunner
