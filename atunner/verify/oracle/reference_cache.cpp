#include "atunner/verify/oracle/reference_cache.h"

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
  DropOldest();
}

void ReferenceCache::DropOldest() {
  uint64_t total = 0;
  for (const Key& key : order_) total += references_[key].bytes;
  while (total > limit_bytes_ && order_.size() > 1) {  // the newest is about to be used
    Reference& oldest = references_[order_.front()];
    total -= oldest.bytes;
    oldest.DropValues();
    order_.pop_front();
  }
}

}  // namespace atunner
