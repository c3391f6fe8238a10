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
  if (kept->parts == nullptr) Renew(dims, instance);  // else there are no values to drop
  return kept;
}

void ReferenceCache::MakeRoom(uint64_t bytes) { Drop(bytes, 0); }

void ReferenceCache::Renew(const Dims& dims, const InputInstance& instance) {
  const Key key(dims, instance);
  order_.remove(key);
  order_.push_back(key);
  Drop(0, 1);  // the newest is about to be used
}

void ReferenceCache::Drop(uint64_t bytes, size_t kept) {
  uint64_t total = bytes;
  for (const Key& key : order_) total += references_[key].bytes;
  while (total > limit_bytes_ && order_.size() > kept) {
    const auto victim = std::prev(order_.end(), static_cast<std::ptrdiff_t>(kept) + 1);
    Reference& dropped = references_[*victim];
    total -= dropped.bytes;
    dropped.DropValues();
    order_.erase(victim);
  }
}

}  // namespace atunner
