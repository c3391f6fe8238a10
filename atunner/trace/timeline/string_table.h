// Interned strings: equal texts have equal ids, so that events hold four bytes for a name.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace atunner::trace {

/// Ids count from 0 in the order of first use; id 0 is the empty text.
class StringTable {
 public:
  StringTable();

  uint32_t Intern(std::string_view text);
  std::string_view operator[](uint32_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  char* Reserve(size_t bytes);
  void Grow();

  static constexpr size_t kBlock = size_t{1} << 16;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t left_ = 0;  ///< free bytes of the last block
  char* next_ = nullptr;
  std::vector<std::string_view> texts_;
  std::vector<uint64_t> hashes_;  ///< of texts_
  std::vector<uint32_t> slots_;   ///< id + 1; 0 = free; size is a power of two
};

}  // namespace atunner::trace
