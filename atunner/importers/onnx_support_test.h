// Writes ONNX models for tests: messages in the wire format of protocol buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace atunner::importers {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string WholeField(uint32_t number, int64_t value) {
  return Varint(number << 3) + Varint(static_cast<uint64_t>(value));
}
inline std::string BytesField(uint32_t number, std::string_view bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}
inline std::string FloatField(uint32_t number, float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return Varint(number << 3 | 5) + bytes;
}

constexpr int64_t kOnnxFloat = 1;
constexpr int64_t kOnnxInt64 = 7;
constexpr int64_t kOnnxBool = 9;

/// A ValueInfoProto. A size below 0 is an open axis, called "n".
inline std::string OnnxInfo(std::string_view name, const std::vector<int64_t>& sizes,
                            int64_t type = kOnnxFloat) {
  std::string shape;
  for (const int64_t size : sizes)
    shape += BytesField(1, size < 0 ? BytesField(2, "n") : WholeField(1, size));
  const std::string tensor = WholeField(1, type) + BytesField(2, shape);
  return BytesField(1, name) + BytesField(2, BytesField(1, tensor));
}

/// A TensorProto with raw_data.
template <class T>
std::string OnnxRaw(std::string_view name, const std::vector<int64_t>& sizes, int64_t type,
                    const std::vector<T>& elements) {
  std::string message;
  for (const int64_t size : sizes) message += WholeField(1, size);
  const std::string_view raw(reinterpret_cast<const char*>(elements.data()),
                             elements.size() * sizeof(T));
  return message + WholeField(2, type) + BytesField(8, name) + BytesField(9, raw);
}

/// A NodeProto. `attributes` are messages of OnnxAttribute….
inline std::string OnnxNodeOf(std::string_view op, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs,
                              const std::vector<std::string>& attributes = {},
                              std::string_view domain = "") {
  std::string message;
  for (const std::string& input : inputs) message += BytesField(1, input);
  for (const std::string& output : outputs) message += BytesField(2, output);
  message += BytesField(4, op);
  for (const std::string& attribute : attributes) message += BytesField(5, attribute);
  return domain.empty() ? message : message + BytesField(7, domain);
}
inline std::string WholeAttribute(std::string_view name, int64_t value) {
  return BytesField(1, name) + WholeField(3, value) + WholeField(20, 2);
}
inline std::string FloatAttribute(std::string_view name, float value) {
  return BytesField(1, name) + FloatField(2, value) + WholeField(20, 1);
}
inline std::string GraphAttribute(std::string_view name, std::string_view graph) {
  return BytesField(1, name) + BytesField(6, graph) + WholeField(20, 5);
}

struct OnnxParts {
  std::vector<std::string> nodes, initializers, inputs, outputs;
};
inline std::string OnnxGraphOf(const OnnxParts& parts) {
  std::string message;
  for (const std::string& node : parts.nodes) message += BytesField(1, node);
  for (const std::string& tensor : parts.initializers) message += BytesField(5, tensor);
  for (const std::string& input : parts.inputs) message += BytesField(11, input);
  for (const std::string& output : parts.outputs) message += BytesField(12, output);
  return message;
}
inline std::string OnnxModelOf(const OnnxParts& parts, const std::string& functions = {},
                               int64_t opset = 17) {
  return WholeField(1, 8) + BytesField(7, OnnxGraphOf(parts)) +
         BytesField(8, WholeField(2, opset)) + functions;
}

}  // namespace atunner::importers
