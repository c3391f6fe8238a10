// Reads Python's pickle format without running anything. Only the opcodes that plain data needs are
// known: dictionaries, lists, tuples, texts, numbers, None and booleans. Opcodes that name classes
// or call functions (GLOBAL, REDUCE, BUILD, …) are refused.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::planning {

/// Values refer to each other by index, because pickled data may share and contain itself.
class Pickle {
 public:
  using Index = uint32_t;
  struct List {
    std::vector<Index> items;
  };
  struct Dict {
    std::vector<std::pair<Index, Index>> items;
  };
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string_view, List, Dict>;

  /// Texts refer to `bytes`, which must outlive the result. kInvalidInput with the position.
  static Result<Pickle> Parse(std::string_view bytes);

  Index root() const { return root_; }
  const Value& operator[](Index index) const { return values_[index]; }

  /// The entry of a dictionary; nullptr if `index` is none or has no such key.
  const Value* Find(Index index, std::string_view key) const;
  /// Empty if the value is neither a list nor a tuple.
  const std::vector<Index>& Items(const Value* value) const;
  int64_t Integer(const Value* value, int64_t otherwise) const;
  std::string_view Text(const Value* value) const;

 private:
  friend class PickleReader;
  std::vector<Value> values_;
  Index root_ = 0;
};

}  // namespace atunner::planning
