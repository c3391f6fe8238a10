#include "atunner/verify/oracle/reference_cache.h"

#include <iterator>

namespace atunner {

Reference* ReferenceCache::Find(const Dims& dims, const InputInstance& instance) {
  const auto found = references_.find({dims, instance});
  return found == references_.end() ? nullptr : &found->second;
}

const Reference* ReferenceCache::Find(const Dims& dims, const InputInstance& instance) const {
  const auto found = references_.find({dims, instance});
  return found == references_.end() ? nullptr : &found->second;
}

Reference* ReferenceCache::Keep(const Dims& dims, const InputInstance& instance,
                                Reference reference) {
  Reference* kept = &(references_[Key(dims, instance)] = std::move(reference));
  Renew(dims, instance);
  return kept;
}

void ReferenceCache::Renew(const Dims& dims, const InputInstance& instance) {
  const Key key(dims, instance);
  order_.remove(key);
  order_.push_back(key);
  DropBeforeNewest();
}

void ReferenceCache::DropBeforeNewest() {
  uint64_t total = 0;
  for (const Key& key : order_) total += references_[key].bytes;
  while (total > limit_bytes_ && order_.size() > 1) {  // the newest is about to be used
    const auto victim = std::prev(order_.end(), 2);
    Reference& dropped = references_[*victim];
    total -= dropped.bytes;
    dropped.DropValues();
    order_.erase(victim);
  }
}

}  // namespace atunner
