// multimem in all forms that the assembler takes, on a device that is alone: what it reads and
// writes is that device's memory. Not for a real GPU, where such addresses come from objects that
// several devices share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "atunner/base/random.h"
#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

constexpr size_t kLanes = 32;
constexpr size_t kRoom = 32;  // bytes of a lane

struct Form {
  std::string modifiers;  ///< "ld_reduce.add"
  std::string vector;     ///< "", "v2", …
  std::string type;

  size_t elements() const { return vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0'); }
  size_t bytes() const {
    const size_t digit = type.find_first_of("0123456789");
    if (type.starts_with("e")) return type.ends_with("x4") ? 4 : 2;
    return (type.ends_with("x2") ? 2 : 1) * std::stoul(type.substr(digit)) / 8;
  }
  std::string Text() const {
    return "multimem." + modifiers + (vector.empty() ? "" : "." + vector) + "." + type;
  }
};

std::string Registers(const Form& form) {
  const std::string name = form.bytes() == 2 ? "%h" : form.bytes() == 4 ? "%r" : "%d";
  std::string list;
  for (size_t i = 0; i < form.elements(); ++i)
    list += (i > 0 ? ", " : "") + name + std::to_string(i);
  return form.vector.empty() ? list : "{" + list + "}";
}

using Bytes = std::vector<std::byte>;

/// Runs the form on `at`, with the operands of `with` or with its results in their place.
void Execute(const Form& form, Bytes& at, Bytes& with) {
  SCOPED_TRACE(form.Text());
  const bool load = form.modifiers.starts_with("ld_reduce");
  const std::string name = form.bytes() == 2 ? "%h" : form.bytes() == 4 ? "%r" : "%d";
  const std::string suffix = ".b" + std::to_string(8 * form.bytes()) + " ";
  std::string loads;
  std::string stores;
  for (size_t i = 0; i < form.elements(); ++i) {
    const std::string reg = name + std::to_string(i);
    const std::string place = "[%w+" + std::to_string(i * form.bytes()) + "]";
    loads += "ld.global" + suffix + reg + ", " + place + ";\n";
    stores += "st.global" + suffix + place + ", " + reg + ";\n";
  }
  const std::string call = form.Text() + (load ? " " + Registers(form) + ", [%a];\n"
                                               : " [%a], " + Registers(form) + ";\n");
  const std::string ptx =
      ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 at, .param "
      ".u64 with)\n{\n"
      ".reg .b16 %h<8>;\n.reg .b32 %t, %r<8>;\n.reg .b64 %a, %w, %d<8>;\n"
      "ld.param.u64 %a, [at];\nld.param.u64 %w, [with];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %a, %t, "
      "32, %a;\n"
      "mad.wide.u32 %w, %t, 32, %w;\n" +
      (load ? call + stores : loads + call) + "ret;\n}\n";
  Memory memory(uint64_t{1} << 20);
  memory.Track();
  auto program = LoadProgram(ptx::Parse(ptx).value(), memory);
  ASSERT_TRUE(program) << program.error().ToString();
  std::vector<uint64_t> addresses;
  for (const Bytes* data : {&at, &with}) {
    addresses.push_back(memory.Allocate(data->size()).value());
    std::memcpy(reinterpret_cast<void*>(addresses.back()), data->data(), data->size());
    memory.MarkDefined(addresses.back(), data->size());
  }
  std::vector<std::byte> params(16);
  std::memcpy(params.data(), addresses.data(), 16);
  ExecOptions options;
  options.check_global = true;
  const auto result = (*program)->Run("k", {{1, 1, 1}, {kLanes, 1, 1}, {1, 1, 1}, 0}, params,
                                      options);
  EXPECT_EQ(result.outcome.message, "");
  std::memcpy(at.data(), reinterpret_cast<const void*>(addresses[0]), at.size());
  std::memcpy(with.data(), reinterpret_cast<const void*>(addresses[1]), with.size());
}

/// Forms of loads and stores by type: which vectors there are, and which operations.
struct Row {
  std::vector<std::string> types, vectors, operations;
};
const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {{"b32", "b64"}, {""}, {"and", "or", "xor"}},
      {{"u32", "u64", "s32"}, {""}, {"add", "min", "max"}},
      {{"s64"}, {""}, {"min", "max"}},
      {{"f16", "bf16"}, {"v2", "v4", "v8"}, {"add", "min", "max", "add.acc::f32"}},
      {{"f16x2", "bf16x2"}, {"", "v2", "v4"}, {"add", "min", "max", "add.acc::f32"}},
      {{"f32"}, {"", "v2", "v4"}, {"add"}},
      {{"f64"}, {""}, {"add"}},
      {{"e4m3x2", "e5m2x2"}, {"v2", "v4", "v8"}, {"add", "min", "max", "add.acc::f16"}},
      {{"e4m3x4", "e5m2x4"}, {"", "v2", "v4"}, {"add", "min", "max", "add.acc::f16"}}};
  return rows;
}

Bytes RandomBytes(uint64_t seed) {
  Random random(seed);
  Bytes bytes(kLanes * kRoom);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  return bytes;
}

TEST(Multicast, ASumOfOneDeviceIsWhatItHolds) {
  for (const Row& row : Rows()) {
    for (const std::string& type : row.types) {
      for (const std::string& vector : row.vectors) {
        for (const std::string& operation : row.operations) {
          for (const char* order : {"", ".weak", ".relaxed.gpu", ".acquire.sys"}) {
            const Form form{std::string("ld_reduce") + order + ".global." + operation, vector,
                            type};
            const Bytes before = RandomBytes(1);
            Bytes at = before;
            Bytes got(at.size());
            Execute(form, at, got);
            EXPECT_EQ(at, before);
            const size_t width = form.bytes() * form.elements();
            for (size_t l = 0; l < kLanes; ++l)
              ASSERT_EQ(std::memcmp(&got[l * kRoom], &at[l * kRoom], width), 0) << form.Text();
          }
        }
      }
    }
  }
}

TEST(Multicast, StoresAreThatDevices) {
  for (const Row& row : Rows()) {
    for (const std::string& type : row.types) {
      for (const std::string& vector : row.vectors) {
        for (const char* order : {"", ".weak", ".relaxed.cta", ".release.gpu"}) {
          const Form form{std::string("st") + order + ".global", vector, type};
          Bytes at = RandomBytes(2);
          Bytes expected = at;
          Bytes with = RandomBytes(3);
          const size_t width = form.bytes() * form.elements();
          for (size_t l = 0; l < kLanes; ++l)
            std::memcpy(&expected[l * kRoom], &with[l * kRoom], width);
          Execute(form, at, with);
          EXPECT_EQ(at, expected) << form.Text();
        }
      }
    }
  }
}

/// Elements of a type as numbers. Those of the tests are small and whole, so that sums are exact.
struct Numbers {
  std::string type;
  size_t bytes = 0;  ///< of a single one: two to a pair

  explicit Numbers(const std::string& of) : type(of) {
    if (type.ends_with("x2")) type.resize(type.size() - 2);
    bytes = std::stoul(type.substr(type.find_first_of("0123456789"))) / 8;
  }
  void Put(std::byte* at, int64_t value) const {
    const auto number = static_cast<double>(value);
    const auto single = static_cast<float>(value);
    uint64_t bits = static_cast<uint64_t>(value);
    if (type == "f16") bits = FloatToHalf(single);
    if (type == "bf16") bits = FloatToBFloat16(single);
    if (type == "f32") bits = std::bit_cast<uint32_t>(single);
    if (type == "f64") bits = std::bit_cast<uint64_t>(number);
    std::memcpy(at, &bits, bytes);
  }
};

int64_t Combined(const std::string& operation, bool is_unsigned, int64_t a, int64_t b) {
  const bool less = is_unsigned ? static_cast<uint64_t>(b) < static_cast<uint64_t>(a) : b < a;
  if (operation == "add") return a + b;
  if (operation == "and") return a & b;
  if (operation == "or") return a | b;
  if (operation == "xor") return a ^ b;
  return (operation == "min") == less ? b : a;
}

TEST(Multicast, ReductionsAddToIt) {
  const std::vector<Row> rows = {{{"b32", "b64"}, {""}, {"and", "or", "xor"}},
                                 {{"u32", "u64", "s32"}, {""}, {"add", "min", "max"}},
                                 {{"s64"}, {""}, {"min", "max"}},
                                 {{"f16", "bf16"}, {"v2", "v4", "v8"}, {"add", "min", "max"}},
                                 {{"f16x2", "bf16x2"}, {"v2", "v4"}, {"add", "min", "max"}},
                                 {{"f16x2", "bf16x2"}, {""}, {"add"}},
                                 {{"f32"}, {"", "v2", "v4"}, {"add"}},
                                 {{"f64"}, {""}, {"add"}}};
  Random random(4);
  for (const Row& row : rows) {
    for (const std::string& type : row.types) {
      for (const std::string& vector : row.vectors) {
        for (const std::string& operation : row.operations) {
          for (const char* order : {"", ".relaxed.gpu", ".release.sys"}) {
            const Form form{std::string("red") + order + ".global." + operation, vector, type};
            const Numbers numbers(type);
            Bytes at(kLanes * kRoom);
            Bytes with = at;
            Bytes expected = at;
            for (size_t l = 0; l < kLanes; ++l) {
              for (size_t place = 0; place < form.bytes() * form.elements();
                   place += numbers.bytes) {
                const auto a = static_cast<int64_t>(random.Below(101)) - 50;
                const auto b = static_cast<int64_t>(random.Below(101)) - 50;
                numbers.Put(&at[l * kRoom + place], a);
                numbers.Put(&with[l * kRoom + place], b);
                numbers.Put(&expected[l * kRoom + place],
                            Combined(operation, type.starts_with("u"), a, b));
              }
            }
            Execute(form, at, with);
            EXPECT_EQ(at, expected) << form.Text();
          }
        }
      }
    }
  }
}

TEST(Multicast, ItsMemoryIsCheckedLikeAnyOther) {
  Memory memory(uint64_t{1} << 20);
  memory.Track();
  const std::string ptx =
      ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 at)\n{\n.reg "
      ".b32 %r;\n"
      ".reg .b64 %a;\nld.param.u64 %a, [at];\nmultimem.ld_reduce.global.add.u32 %r, [%a+64];\n"
      "st.global.u32 [%a], %r;\nret;\n}\n";
  const auto program = LoadProgram(ptx::Parse(ptx).value(), memory).value();
  const uint64_t at = memory.Allocate(64).value();
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &at, 8);
  const auto result = program->Run("k", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0}, params, {});
  EXPECT_THAT(result.outcome.message, testing::HasSubstr("0 bytes after the end"));
}

}  // namespace
}  // namespace atunner::vgpu
