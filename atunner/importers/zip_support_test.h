// Archives for tests, written by the format's description, with the damage that a test asks for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace atunner::importers {

inline void Append(std::string& bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
}

inline uint32_t ChecksumOf(const std::string& bytes) {
  uint32_t sum = 0xffffffff;
  for (const char c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320U : 0);
  }
  return ~sum;
}

struct TestEntry {
  std::string name;
  std::string content;
  uint16_t method = 0;
  bool zip64 = false;      ///< sizes and offset stand in the field of zip64
  int64_t shift = 0;       ///< added to the offset of the entry
  int64_t more_bytes = 0;  ///< added to the size that the directory states
  uint32_t checksum_xor = 0;
};

/// A zip archive with stored entries.
inline std::string ZipOf(const std::vector<TestEntry>& entries) {
  std::string bytes;
  std::string directory;
  for (const TestEntry& entry : entries) {
    const uint64_t offset = bytes.size() + static_cast<uint64_t>(entry.shift);
    const uint64_t size = entry.content.size() + static_cast<uint64_t>(entry.more_bytes);
    const uint32_t checksum = ChecksumOf(entry.content) ^ entry.checksum_xor;
    const auto common = [&](std::string& to, bool in_directory) {
      Append(to, 20, 2);  // version
      Append(to, 0, 2);
      Append(to, entry.method, 2);
      Append(to, 0, 4);  // time
      Append(to, checksum, 4);
      const bool wide = in_directory && entry.zip64;
      Append(to, wide ? 0xffffffff : size, 4);
      Append(to, wide ? 0xffffffff : size, 4);
      Append(to, entry.name.size(), 2);
      Append(to, wide ? 28 : 0, 2);
    };
    Append(bytes, 0x04034b50, 4);
    common(bytes, false);
    bytes += entry.name + entry.content;
    Append(directory, 0x02014b50, 4);
    Append(directory, 20, 2);
    common(directory, true);
    Append(directory, 0, 2);  // comment
    Append(directory, 0, 2);  // disk
    Append(directory, 0, 6);  // attributes
    Append(directory, entry.zip64 ? 0xffffffff : offset, 4);
    directory += entry.name;
    if (!entry.zip64) continue;
    Append(directory, 1, 2);
    Append(directory, 24, 2);
    for (const uint64_t value : {size, size, offset}) Append(directory, value, 8);
  }
  const uint64_t at = bytes.size();
  bytes += directory;
  Append(bytes, 0x06054b50, 4);
  Append(bytes, 0, 4);
  Append(bytes, entries.size(), 2);
  Append(bytes, entries.size(), 2);
  Append(bytes, directory.size(), 4);
  Append(bytes, at, 4);
  Append(bytes, 0, 2);
  return bytes;
}

/// The JSON of a program: y = relu(x + w) of float32[2, 3].
inline std::string SmallProgram(int schema = 8, const std::string& target = "aten.relu.default") {
  const std::string meta =
      R"({"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "later": {"unknown": []}})";
  return R"({"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [
    {"target": "torch.ops.aten.add.Tensor", "inputs": [
       {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
       {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
     "outputs": [{"as_tensor": {"name": "add"}}], "metadata": {}},
    {"target": "torch.ops.)" +
         target + R"(", "inputs": [
       {"name": "self", "arg": {"as_tensor": {"name": "add"}}}],
     "outputs": [{"as_tensor": {"name": "relu"}}], "metadata": {}}],
    "tensor_values": {"x": )" +
         meta + R"(, "p_w": )" + meta + R"(, "add": )" + meta + R"(, "relu": )" + meta + R"(}},
   "signature": {"input_specs": [
      {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
      {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
    "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "relu"}}}}]}},
   "opset_version": {"aten": 10}, "schema_version": {"major": )" +
         std::to_string(schema) + R"(, "minor": 20}})";
}

/// The list of the small program's weights.
inline std::string SmallConfig(const std::string& path = "weight_0", bool pickle = false) {
  return R"({"config": {"w": {"path_name": ")" + path + R"(", "is_param": true, "use_pickle": )" +
         (pickle ? "true" : "false") +
         R"(, "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}],
      "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0}}}}})";
}

/// The entries of a small archive of PyTorch 2.8 and later.
inline std::vector<TestEntry> SmallArchive(
    const std::string& config_name = "model_weights_config.json") {
  return {{"small/archive_format", "pt2"},
          {"small/archive_version", "0"},
          {"small/byteorder", "little"},
          {"small/models/model.json", SmallProgram()},
          {"small/data/weights/" + config_name, SmallConfig()},
          {"small/data/weights/weight_0", std::string(24, '\0')},
          {"small/data/sample_inputs/model.pt", "ignored"}};
}

}  // namespace atunner::importers
