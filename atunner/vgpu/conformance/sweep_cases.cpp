#include "atunner/vgpu/conformance/sweep_cases.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "atunner/base/random.h"

namespace atunner::vgpu {
namespace {

constexpr std::array<uint32_t, 16> kSpecials = {
    0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff,
    1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7e800000, 0x7f000000};

uint32_t WithExponent(uint32_t bits, uint32_t exponent) {
  return (bits & 0x807fffffu) | exponent << 23;
}

/// The operand with a number, as the runner takes it.
uint64_t Operand(const std::string& type, uint32_t number) {
  if (type == "f64") return uint64_t{number} << 32;
  if (type.ends_with("x2")) return number | uint64_t{number} << 16;
  return number;
}

/// The bits of a result that are hashed.
uint64_t Hashed(const std::string& type, uint64_t result) {
  if (type == "f64") return (result >> 32) | (static_cast<uint32_t>(result) != 0 ? 1 : 0);
  return result & (type == "f16" || type == "bf16" ? 0xffffu : 0xffffffffu);
}

std::vector<uint64_t> OperandsOf(const ConformanceForm& form, uint32_t first) {
  std::vector<uint64_t> inputs;
  for (uint32_t i = 0; i < kSweptBlock; ++i) {
    if (form.inputs.size() == 1) {
      inputs.push_back(Operand(form.inputs[0], first + i));
    } else {
      const auto [a, b] = Operands(first + i);
      inputs.insert(inputs.end(), {a, b});
    }
  }
  return inputs;
}

}  // namespace

std::pair<uint32_t, uint32_t> Operands(uint32_t number) {
  const uint64_t bits = Mix64(number);
  const uint64_t draws = Mix64(bits);
  const auto a = static_cast<uint32_t>(bits);
  const auto b = static_cast<uint32_t>(bits >> 32);
  const auto u = static_cast<uint32_t>(draws);
  const auto v = static_cast<uint32_t>(draws >> 32);
  switch (number >> 16 & 7u) {
    case 1:
      return {WithExponent(a, 100 + u % 55), WithExponent(b, 100 + v % 55)};
    case 2:
      return {WithExponent(a, 0) & ~(0x7fffffu << u % 24 & 0x7fffffu), WithExponent(b, v % 255)};
    case 3:
      return {a, WithExponent(b, 245 + v % 11)};
    case 4:
      return {a, WithExponent(b, v % 4)};
    case 5:
      return {WithExponent(a, 1 + u % 60), WithExponent(b, 100 + v % 50)};
    case 6:
      return {(u & 16u) != 0 ? kSpecials[u & 15u] : a, (v & 16u) != 0 ? kSpecials[v & 15u] : b};
    case 7:
      return {0x3f800000u + (a & 0x7fffffu), 0x3f800000u + (b & 0x7fffffu)};
    default:
      return {a, b};
  }
}

Result<std::vector<ConformanceSweep>> ReadSweeps(const std::string& text) {
  std::vector<ConformanceSweep> sweeps;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string where = "line " + std::to_string(++number);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("sweep ")) {
      // A form without its tolerance and its architecture.
      ATUNNER_TRY(auto forms, ReadConformance("form " + line.substr(6) + " | exact | 90\n"));
      sweeps.push_back({std::move(forms.front()), {}});
      continue;
    }
    std::istringstream words(line);
    uint32_t block = 0;
    uint32_t hash = 0;
    if (!(words >> std::hex >> block >> hash) || sweeps.empty() || block > 0xffff)
      return Invalid("a block is its number and its hash, in hexadecimal, below a sweep", where);
    sweeps.back().blocks.emplace_back(block, hash);
  }
  return sweeps;
}

std::vector<std::string> CheckSweeps(const std::vector<ConformanceSweep>& sweeps,
                                     const ConformanceRunner& run, size_t& operands) {
  std::vector<std::string> wrong;
  for (const ConformanceSweep& sweep : sweeps) {
    const std::string ptx = ConformanceModule({sweep.form}, 90);
    for (const auto& [block, hash] : sweep.blocks) {
      const uint32_t first = block * kSweptBlock;
      const auto results = run(ptx, "form0", OperandsOf(sweep.form, first), kSweptBlock, 1);
      if (!results) {
        wrong.push_back(sweep.form.ptx + ": " + results.error().ToString());
        break;
      }
      uint64_t sum = 0;
      for (uint32_t i = 0; i < kSweptBlock; ++i)
        sum += Mix64((first + i) | Hashed(sweep.form.outputs[0], (*results)[i]) << 32);
      operands += kSweptBlock;
      if (static_cast<uint32_t>(sum) == hash) continue;
      wrong.push_back(fmt::format("{}: block {:04x} has hash {:08x}, recorded was {:08x}",
                                  sweep.form.ptx, block, static_cast<uint32_t>(sum), hash));
    }
  }
  return wrong;
}

}  // namespace atunner::vgpu
