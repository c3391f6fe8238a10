#include "atunner/trace/timeline/string_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace atunner::trace {

StringTable::StringTable() : slots_(1024, 0) { Intern(""); }

uint32_t StringTable::Intern(std::string_view text) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const uint32_t id = slots_[slot] - 1;
    if (hashes_[id] == hash && texts_[id] == text) return id;
  }
  char* copy = Reserve(text.size());
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  texts_.emplace_back(copy, text.size());
  hashes_.push_back(hash);
  slots_[slot] = static_cast<uint32_t>(texts_.size());
  if (texts_.size() * 2 > slots_.size()) Grow();
  return static_cast<uint32_t>(texts_.size() - 1);
}

char* StringTable::Reserve(size_t bytes) {
  if (bytes > left_) {
    left_ = std::max(bytes, kBlock);
    blocks_.push_back(std::make_unique<char[]>(left_));
    next_ = blocks_.back().get();
  }
  char* const place = next_;
  next_ += bytes;
  left_ -= bytes;
  return place;
}

void StringTable::Grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (size_t id = 0; id < hashes_.size(); ++id) {
    size_t slot = hashes_[id] & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(id + 1);
  }
}

}  // namespace atunner::trace
