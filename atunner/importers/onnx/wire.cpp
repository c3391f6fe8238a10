#include "atunner/importers/onnx/wire.h"

#include <bit>
#include <cstring>

namespace atunner::importers {
namespace {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

template <class T>
bool AppendPacked(std::string_view bytes, std::vector<double>& list) {
  if (bytes.size() % sizeof(T) != 0) return false;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    list.push_back(value);
  }
  return true;
}

/// Takes a varint from the front of `rest`; false if there is none.
bool TakeVarint(std::string_view& rest, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

}  // namespace

float WireField::Float() const { return std::bit_cast<float>(static_cast<uint32_t>(whole)); }

bool WireReader::ReadFixed(size_t bytes, uint64_t& value) {
  if (rest_.size() < bytes) return false;
  value = 0;
  std::memcpy(&value, rest_.data(), bytes);
  rest_.remove_prefix(bytes);
  return true;
}

bool WireReader::ReadBytes(std::string_view& bytes) {
  uint64_t size = 0;
  if (!TakeVarint(rest_, size) || size > rest_.size()) return false;
  bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool WireReader::Next(WireField& field) {
  if (damaged_ || rest_.empty()) return false;
  uint64_t tag = 0;
  damaged_ = !TakeVarint(rest_, tag);
  field = {static_cast<uint32_t>(tag >> 3), 0, {}};
  if (damaged_) return false;
  switch (tag & 7) {
    case kVarint:
      damaged_ = !TakeVarint(rest_, field.whole);
      break;
    case kFixed64:
      damaged_ = !ReadFixed(8, field.whole);
      break;
    case kLengthDelimited:
      damaged_ = !ReadBytes(field.bytes);
      break;
    case kFixed32:
      damaged_ = !ReadFixed(4, field.whole);
      break;
    default:
      damaged_ = true;
  }
  return !damaged_;
}

bool AppendWholes(const WireField& field, std::vector<int64_t>& list) {
  if (field.bytes.data() == nullptr) {
    list.push_back(field.Signed());
    return true;
  }
  std::string_view rest = field.bytes;
  while (!rest.empty()) {
    uint64_t value = 0;
    if (!TakeVarint(rest, value)) return false;
    list.push_back(static_cast<int64_t>(value));
  }
  return true;
}

bool AppendFloats(const WireField& field, std::vector<double>& list) {
  if (field.bytes.data() != nullptr) return AppendPacked<float>(field.bytes, list);
  list.push_back(field.Float());
  return true;
}

bool AppendDoubles(const WireField& field, std::vector<double>& list) {
  if (field.bytes.data() != nullptr) return AppendPacked<double>(field.bytes, list);
  list.push_back(std::bit_cast<double>(field.whole));
  return true;
}

}  // namespace atunner::importers
