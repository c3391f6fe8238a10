#include "atunner/verify/reference_cache.h"

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
  const Key key(dims, instance);
  order_.push_back(key);
  Reference* kept = &(references_[key] = std::move(reference));
  Evict();
  return kept;
}

void ReferenceCache::Evict() {
  uint64_t total = 0;
  for (const auto& [key, reference] : references_) total += reference.bytes;
  while (total > limit_bytes_ && order_.size() > 1) {  // the newest is about to be used
    total -= references_[order_.front()].bytes;
    references_.erase(order_.front());
    order_.pop_front();
  }
}

}  // namespace atunner
