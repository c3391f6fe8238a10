// Cases for mma.m8n8k4: four products of 8×8×4, each by the lanes 4i … 4i+3 and 16+4i … 16+4i+3,
// laid out by the ISA.
#include <bit>
#include <cstring>

#include "atunner/base/random.h"
#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/conformance/wgmma_cases.h"

namespace atunner::vgpu {
namespace {

struct QuadCase {
  std::string a_layout, b_layout, d, c;
  std::string Mnemonic() const {
    return "mma.sync.aligned.m8n8k4." + a_layout + "." + b_layout + "." + d + ".f16.f16." + c;
  }
};

uint32_t Encode(const std::string& type, int value) {
  return type == "f32" ? std::bit_cast<uint32_t>(static_cast<float>(value))
                       : FloatToHalf(static_cast<float>(value));
}

/// Row and column of a lane's i-th accumulator.
std::pair<int, int> Place(int lane, int i, const std::string& type) {
  const int half = lane / 16 * 4;
  if (type == "f16") return {half + lane % 4, i};
  return {half + lane % 2 + i / 2 % 2 * 2, i / 4 * 4 + lane / 2 % 2 * 2 + i % 2};
}

/// Registers of eight accumulators.
std::vector<uint32_t> Registers(const std::string& type, const int (&values)[8]) {
  std::vector<uint32_t> registers;
  for (int i = 0; i < 8; ++i) {
    const uint32_t bits = Encode(type, values[i]);
    if (type == "f16" && i % 2 == 1)
      registers.back() |= bits << 16;
    else
      registers.push_back(bits);
  }
  return registers;
}

std::string List(const std::string& name, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? ", %" : "%") + name + std::to_string(i);
  return text + "}";
}

std::string KernelOf(const QuadCase& one) {
  const size_t of_c = one.c == "f32" ? 8 : 4;
  const size_t of_d = one.d == "f32" ? 8 : 4;
  std::string load, store;
  size_t at = 0;
  for (const auto& [name, count] :
       {std::pair("a", size_t{2}), std::pair("b", size_t{2}), std::pair("c", of_c)}) {
    for (size_t i = 0; i < count; ++i, at += 4)
      load += "  ld.global.b32 %" + std::string(name) + std::to_string(i) + ", [%in+" +
              std::to_string(at) + "];\n";
  }
  for (size_t i = 0; i < of_d; ++i)
    store += "  st.global.b32 [%to+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return ".version 8.4\n.target sm_75\n.address_size 64\n.visible .entry product(.param .u64 "
         "input, .param .u64 "
         "output)\n"
         "{\n  .reg .b32 %a<2>, %b<2>, %c<8>, %d<8>, %thread;\n  .reg .b64 %in, %to;\n  "
         "ld.param.u64 %in, [input];\n"
         "  ld.param.u64 %to, [output];\n  mov.u32 %thread, %tid.x;\n  mad.wide.u32 %in, "
         "%thread, " +
         std::to_string(at) + ", %in;\n  mad.wide.u32 %to, %thread, " + std::to_string(4 * of_d) +
         ", %to;\n" + load + "  " + one.Mnemonic() + " " + List("d", of_d) + ", " + List("a", 2) +
         ", " + List("b", 2) + ", " + List("c", of_c) + ";\n" + store + "  ret;\n}\n";
}

/// Operands of the four products, and what they are.
struct Quads {
  int a[4][8][4], b[4][4][8], c[4][8][8], d[4][8][8];
};

Quads RandomQuads(const QuadCase& one) {
  Random random(one.Mnemonic().size());
  Quads quads;
  const auto draw = [&](auto& matrices) {
    for (auto& matrix : matrices)
      for (auto& row : matrix)
        for (int& value : row) value = static_cast<int>(random.Below(15)) - 7;
  };
  draw(quads.a);
  draw(quads.b);
  draw(quads.c);
  std::memcpy(quads.d, quads.c, sizeof quads.d);
  for (int quad = 0; quad < 4; ++quad)
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j)
        for (int k = 0; k < 4; ++k)
          quads.d[quad][i][j] += quads.a[quad][i][k] * quads.b[quad][k][j];
  return quads;
}

/// Sums that show their order: large products that cancel, and a C that is lost when it comes
/// between. In even rows the first two cancel, in odd rows the second and the third.
Quads QuadsThatCancel(const QuadCase& one) {
  constexpr int kLarge = 1 << 14;
  Quads quads = {};
  for (int quad = 0; quad < 4; ++quad) {
    for (int i = 0; i < 8; ++i) {
      quads.a[quad][i][i % 2] = kLarge;
      quads.a[quad][i][i % 2 + 1] = -kLarge;
      for (int j = 0; j < 8; ++j) {
        quads.b[quad][i % 4][j] = kLarge;
        quads.c[quad][i][j] = 1;
        quads.d[quad][i][j] = i % 2 == 0 || one.d == "f32" ? 1 : 0;
      }
    }
  }
  return quads;
}

WgmmaData DataOf(const QuadCase& one, const Quads& quads) {
  WgmmaData data;
  data.threads = 32;
  data.ptx = KernelOf(one);
  for (int lane = 0; lane < 32; ++lane) {
    const int quad = lane % 16 / 4, half = lane / 16 * 4, t = lane % 4;
    uint32_t operands[4] = {};
    for (int i = 0; i < 4; ++i) {
      const int of_a = one.a_layout == "row" ? quads.a[quad][half + t][i]
                                             : quads.a[quad][half + i][t];
      const int of_b = one.b_layout == "col" ? quads.b[quad][i][half + t]
                                             : quads.b[quad][t][half + i];
      operands[i / 2] |= Encode("f16", of_a) << (i % 2 * 16);
      operands[2 + i / 2] |= Encode("f16", of_b) << (i % 2 * 16);
    }
    data.input.insert(data.input.end(), operands, operands + 4);
    int before[8], after[8];
    for (int i = 0; i < 8; ++i) {
      const auto [row, column] = Place(lane, i, one.c);
      before[i] = quads.c[quad][row][column];
      const auto [to_row, to_column] = Place(lane, i, one.d);
      after[i] = quads.d[quad][to_row][to_column];
    }
    for (const uint32_t word : Registers(one.c, before)) data.input.push_back(word);
    for (const uint32_t word : Registers(one.d, after)) data.expected.push_back(word);
  }
  return data;
}

}  // namespace

std::vector<std::string> CheckQuads(const WgmmaRunner& run) {
  std::vector<std::string> wrong;
  for (const char* a : {"row", "col"}) {
    for (const char* b : {"row", "col"}) {
      for (const auto& [d, c] :
           {std::pair("f16", "f16"), std::pair("f32", "f16"), std::pair("f32", "f32")}) {
        const QuadCase one{a, b, d, c};
        for (const Quads& quads : {RandomQuads(one), QuadsThatCancel(one)}) {
          const WgmmaData data = DataOf(one, quads);
          const auto got = run(data);
          if (!got)
            wrong.push_back(one.Mnemonic() + ": " + got.error().ToString());
          else if (*got != data.expected)
            wrong.push_back(one.Mnemonic() + ": the product differs");
        }
      }
    }
  }
  return wrong;
}

}  // namespace atunner::vgpu
