// Protocol buffers' wire format: the fields of a message, one after the other, without copies.
//
// ONNX files are read with it instead of a protobuf library, because weights are used where the
// file is mapped: a library copies them, and reads no message above 2 GiB.
// Format: https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace atunner::importers {

/// A field of a message.
struct WireField {
  uint32_t number = 0;
  uint64_t whole = 0;      ///< of a varint, and the bits of a number of fixed size
  std::string_view bytes;  ///< of text, bytes, a message, or packed numbers

  int64_t Signed() const { return static_cast<int64_t>(whole); }
  float Float() const;
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// Reads the next field; false at the end, and where the message is damaged.
  bool Next(WireField& field);
  bool damaged() const { return damaged_; }

 private:
  bool ReadFixed(size_t bytes, uint64_t& value);
  bool ReadBytes(std::string_view& bytes);

  std::string_view rest_;
  bool damaged_ = false;
};

/// A repeated field of integers: one varint, or a packed list of them. False if it is damaged.
bool AppendWholes(const WireField& field, std::vector<int64_t>& list);
/// A repeated field of 4-byte floats, single or packed.
bool AppendFloats(const WireField& field, std::vector<double>& list);
/// A repeated field of 8-byte floats, single or packed.
bool AppendDoubles(const WireField& field, std::vector<double>& list);

}  // namespace atunner::importers
