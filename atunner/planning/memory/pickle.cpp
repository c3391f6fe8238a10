#include "atunner/planning/memory/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace atunner::planning {

/// A stack machine: opcodes push values, and collect those above a mark into containers.
class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  Result<Pickle> Read() {
    while (!done_) {
      const size_t start = at_;
      const uint8_t opcode = static_cast<uint8_t>(Little(1));
      if (!good_) return Invalid("the pickle ends early");
      if (!Step(opcode))
        return Invalid(fmt::format("opcode 0x{:02x} of the pickle is not plain data", opcode),
                       fmt::format("byte {}", start),
                       "a snapshot is what torch.cuda.memory._dump_snapshot writes; files that "
                       "contain classes or calls are not read");
      if (!good_) return Invalid("the pickle is damaged", fmt::format("byte {}", start));
    }
    if (stack_.empty() || stack_.back() == kMark) return Invalid("the pickle has no value");
    pickle_.root_ = stack_.back();
    return std::move(pickle_);
  }

 private:
  using Index = Pickle::Index;
  static constexpr Index kMark = std::numeric_limits<Index>::max();

  /// False: an unknown opcode.
  bool Step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        Little(1);
        return true;
      case 0x95:  // FRAME
        Little(8);
        return true;
      case '(':  // MARK
        stack_.push_back(kMark);
        return true;
      case '.':  // STOP
        done_ = true;
        return true;
      case '0':  // POP
        Pop();
        return true;
      case 0x94:  // MEMOIZE
        memo_[static_cast<uint32_t>(memo_.size())] = Top();
        return true;
      case 'q':  // BINPUT
        memo_[static_cast<uint32_t>(Little(1))] = Top();
        return true;
      case 'r':  // LONG_BINPUT
        memo_[static_cast<uint32_t>(Little(4))] = Top();
        return true;
      case 'h':  // BINGET
        Get(static_cast<uint32_t>(Little(1)));
        return true;
      case 'j':  // LONG_BINGET
        Get(static_cast<uint32_t>(Little(4)));
        return true;
      default:
        return Scalar(opcode) || Container(opcode);
    }
  }

  bool Scalar(uint8_t opcode) {
    switch (opcode) {
      case 'N':  // NONE
        Push(std::monostate());
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        Push(opcode == 0x88);
        return true;
      case 'K':  // BININT1
        Push(static_cast<int64_t>(Little(1)));
        return true;
      case 'M':  // BININT2
        Push(static_cast<int64_t>(Little(2)));
        return true;
      case 'J':  // BININT
        Push(int64_t{static_cast<int32_t>(Little(4))});
        return true;
      case 0x8a:  // LONG1
        PushLong(Little(1));
        return true;
      case 'G':  // BINFLOAT, big-endian
        Push(std::bit_cast<double>(__builtin_bswap64(Little(8))));
        return true;
      case 0x8c:  // SHORT_BINUNICODE
        Push(Bytes(Little(1)));
        return true;
      case 'X':  // BINUNICODE
        Push(Bytes(Little(4)));
        return true;
      default:
        return false;
    }
  }

  bool Container(uint8_t opcode) {
    switch (opcode) {
      case '}':  // EMPTY_DICT
        Push(Pickle::Dict());
        return true;
      case ']':  // EMPTY_LIST
      case ')':  // EMPTY_TUPLE
        Push(Pickle::List());
        return true;
      case 'a':  // APPEND
        Append(Take(1));
        return true;
      case 'e':  // APPENDS
        Append(TakeToMark());
        return true;
      case 's':  // SETITEM
        SetItems(Take(2));
        return true;
      case 'u':  // SETITEMS
        SetItems(TakeToMark());
        return true;
      case 't':  // TUPLE
        Push(Pickle::List{TakeToMark()});
        return true;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        Push(Pickle::List{Take(opcode - 0x84u)});
        return true;
      default:
        return false;
    }
  }

  uint64_t Little(size_t bytes) {
    uint64_t value = 0;
    const std::string_view text = Bytes(bytes);
    for (size_t i = 0; i < text.size(); ++i)
      value |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
    return value;
  }
  std::string_view Bytes(size_t count) {
    if (count > bytes_.size() - at_) {
      good_ = false;
      return {};
    }
    const std::string_view text = bytes_.substr(at_, count);
    at_ += count;
    return text;
  }
  /// Two's complement, least byte first; larger numbers than 64 bits keep their lowest.
  void PushLong(size_t count) {
    const std::string_view text = Bytes(count);
    uint64_t value = 0;
    for (size_t i = 0; i < std::min<size_t>(8, text.size()); ++i)
      value |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
    const bool negative = !text.empty() && (text.back() & 0x80) != 0;
    if (negative && text.size() < 8) value |= ~uint64_t{0} << (8 * text.size());
    Push(static_cast<int64_t>(value));
  }

  void Push(Pickle::Value value) {
    pickle_.values_.push_back(std::move(value));
    stack_.push_back(static_cast<Index>(pickle_.values_.size() - 1));
  }
  void Pop() {
    good_ &= !stack_.empty();
    if (!stack_.empty()) stack_.pop_back();
  }
  Index Top() {
    good_ &= !stack_.empty() && stack_.back() != kMark;
    return good_ ? stack_.back() : 0;
  }
  void Get(uint32_t key) {
    const auto found = memo_.find(key);
    good_ &= found != memo_.end();
    if (good_) stack_.push_back(found->second);
  }

  std::vector<Index> Take(size_t count) {
    if (stack_.size() < count) {
      good_ = false;
      return {};
    }
    std::vector<Index> taken(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    good_ &= std::ranges::find(taken, kMark) == taken.end();
    return taken;
  }
  std::vector<Index> TakeToMark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), kMark);
    if (mark == stack_.rend()) {
      good_ = false;
      return {};
    }
    std::vector<Index> taken = Take(static_cast<size_t>(mark - stack_.rbegin()));
    stack_.pop_back();
    return taken;
  }

  template <class T>
  T* TopAs() {
    const Index top = Top();
    T* const value = good_ ? std::get_if<T>(&pickle_.values_[top]) : nullptr;
    good_ &= value != nullptr;
    return value;
  }
  void Append(const std::vector<Index>& items) {
    if (auto* list = good_ ? TopAs<Pickle::List>() : nullptr)
      list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void SetItems(const std::vector<Index>& items) {
    good_ &= items.size() % 2 == 0;
    auto* dict = good_ ? TopAs<Pickle::Dict>() : nullptr;
    if (dict == nullptr) return;
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool good_ = true, done_ = false;
  std::vector<Index> stack_;
  std::unordered_map<uint32_t, Index> memo_;
  Pickle pickle_;
};

Result<Pickle> Pickle::Parse(std::string_view bytes) { return PickleReader(bytes).Read(); }

const Pickle::Value* Pickle::Find(Index index, std::string_view key) const {
  const Dict* dict = std::get_if<Dict>(&values_[index]);
  if (dict == nullptr) return nullptr;
  for (const auto& [name, value] : dict->items) {
    const auto* text = std::get_if<std::string_view>(&values_[name]);
    if (text != nullptr && *text == key) return &values_[value];
  }
  return nullptr;
}

const std::vector<Pickle::Index>& Pickle::Items(const Value* value) const {
  static const std::vector<Index> kNone;
  const List* list = value == nullptr ? nullptr : std::get_if<List>(value);
  return list == nullptr ? kNone : list->items;
}

int64_t Pickle::Integer(const Value* value, int64_t otherwise) const {
  const int64_t* number = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return number == nullptr ? otherwise : *number;
}

std::string_view Pickle::Text(const Value* value) const {
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  return text == nullptr ? std::string_view() : *text;
}

}  // namespace atunner::planning
