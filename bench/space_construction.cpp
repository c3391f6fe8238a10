// Times the construction of parameter spaces shaped like those of well-known tuning problems.
// Build with -DATUNNER_BENCH=ON, run build/…/bench/space_construction; prints one line per space,
// times in milliseconds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "atunner/search/space/space_index.h"

namespace atunner {
namespace {

struct Case {
  std::string name;
  ParameterSpace space;
};

std::vector<Value> Range(int64_t first, int64_t last, int64_t step = 1) {
  std::vector<Value> values;
  for (int64_t v = first; v <= last; v += step) values.emplace_back(v);
  return values;
}

std::vector<Value> Powers(int64_t first, int64_t last) {
  std::vector<Value> values;
  for (int64_t v = first; v <= last; v *= 2) values.emplace_back(v);
  return values;
}

void Add(ParameterSpace& space, const std::string& name, std::vector<Value> values) {
  space.parameters.push_back({name, std::move(values), ""});
}

void Require(ParameterSpace& space, const char* text) {
  space.constraints.push_back({Expr::MustParse(text), ""});
}

/// A stencil with temporal tiling: the space of Rodinia's hotspot kernel.
Case Hotspot() {
  Case one{"hotspot-like", {}};
  ParameterSpace& s = one.space;
  std::vector<Value> widths = Powers(1, 16);
  for (const Value& v : Range(32, 1024, 32)) widths.push_back(v);
  Add(s, "block_size_x", widths);
  Add(s, "block_size_y", Powers(1, 32));
  Add(s, "tile_size_x", Range(1, 10));
  Add(s, "tile_size_y", Range(1, 10));
  Add(s, "temporal_tiling_factor", Range(1, 10));
  Add(s, "loop_unroll_factor_t", Range(1, 10));
  Add(s, "sh_power", Range(0, 1));
  Add(s, "blocks_per_sm", Range(0, 4));
  Require(s, "32 <= block_size_x * block_size_y <= 1024");
  Require(s, "temporal_tiling_factor % loop_unroll_factor_t == 0");
  Require(s,
          "(block_size_x*tile_size_x + temporal_tiling_factor * 2) * (block_size_y*tile_size_y + "
          "temporal_tiling_factor * 2) * (2+sh_power) * 4 <= 49152");
  Require(s,
          "blocks_per_sm == 0 or (((block_size_x*tile_size_x + temporal_tiling_factor * 2) * "
          "(block_size_y*tile_size_y "
          "+ temporal_tiling_factor * 2) * (2+sh_power) * 4) * blocks_per_sm <= 102400)");
  return one;
}

/// The space of CLBlast's matrix product.
Case Gemm() {
  Case one{"gemm_milo-like", {}};
  ParameterSpace& s = one.space;
  for (const char* name : {"MWG", "NWG"}) Add(s, name, Powers(16, 128));
  Add(s, "KWG", Powers(16, 32));
  for (const char* name : {"MDIMC", "NDIMC", "MDIMA", "NDIMB"}) Add(s, name, Powers(8, 32));
  Add(s, "KWI", Range(2, 2));
  for (const char* name : {"VWM", "VWN"}) Add(s, name, Powers(1, 8));
  for (const char* name : {"STRM", "STRN", "SA", "SB"}) Add(s, name, Range(0, 1));
  Add(s, "PRECISION", {int64_t{32}});
  for (const char* text :
       {"KWG % KWI == 0", "MWG % (MDIMC * VWM) == 0", "NWG % (NDIMC * VWN) == 0",
        "MWG % (MDIMA * VWM) == 0", "NWG % (NDIMB * VWN) == 0",
        "KWG % ((MDIMC * NDIMC)/MDIMA) == 0", "KWG % ((MDIMC * NDIMC)/NDIMB) == 0",
        "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)"})
    Require(s, text);
  return one;
}

/// A space that is large because its switches are independent. Each constraint has few parameters.
Case Expdist() {
  Case one{"expdist-like", {}};
  ParameterSpace& s = one.space;
  Add(s, "block_size_x", Powers(32, 1024));
  Add(s, "block_size_y", Powers(1, 32));
  Add(s, "tile_size_x", Range(1, 8));
  Add(s, "tile_size_y", Range(1, 8));
  Add(s, "use_shared_mem", Range(0, 2));
  Add(s, "loop_unroll_factor_x", Range(1, 8));
  Add(s, "loop_unroll_factor_y", Range(1, 8));
  Add(s, "use_column", Range(0, 1));
  Add(s, "n_y_blocks", Powers(1, 1024));
  Require(s, "32 <= block_size_x * block_size_y <= 1024");
  Require(s, "tile_size_x % loop_unroll_factor_x == 0");
  Require(s, "tile_size_y % loop_unroll_factor_y == 0");
  Require(s, "use_column == 0 or n_y_blocks < 512");
  return one;
}

/// Record linkage of 8 × 8 records, as ATF's multi-dimensional homomorphisms divide it: for each
/// dimension a chain of divisors from the problem to work groups and work items.
Case Chains() {
  Case one{"PRL 8x8", {}};
  ParameterSpace& s = one.space;
  for (const char* name : {"CACHE_L_CB", "CACHE_P_CB", "OCL_DIM_L_1", "OCL_DIM_R_1"})
    Add(s, name, Range(0, 1));
  for (const char* name : {"L_CB_RES_DEST_LEVEL", "P_CB_RES_DEST_LEVEL"}) Add(s, name, Range(0, 2));
  Require(s, "P_CB_RES_DEST_LEVEL <= L_CB_RES_DEST_LEVEL");
  Require(s, "OCL_DIM_L_1 != OCL_DIM_R_1");
  for (const char* suffix : {"_L_1", "_R_1"}) {
    const std::string d = suffix;
    const std::string group = "NUM_WG" + d;
    const std::string items = "NUM_WI" + d;
    const std::string local = "L_CB_SIZE" + d;
    const std::string own = "P_CB_SIZE" + d;
    for (const std::string& name : {group, items, local, own}) Add(s, name, Range(1, 8));
    Require(s, fmt::format("8 % {0} == 0 and {0} % {1} == 0", local, own).c_str());
    Require(s, fmt::format("8 // {} % {} == 0", local, group).c_str());
    Require(s, fmt::format("{} // {} % {} == 0", local, own, items).c_str());
    Require(s, fmt::format("{} <= ceil_div(8, {})", items, group).c_str());
  }
  Require(s, "NUM_WG_R_1 == 1 or L_CB_SIZE_R_1 % NUM_WG_R_1 == 0");
  return one;
}

/// A space with more than 10^12 combinations, more than 10^9 of them valid.
Case Huge() {
  Case one{"huge", {}};
  ParameterSpace& s = one.space;
  for (int g = 0; g < 4; ++g) {
    const std::string n = std::to_string(g);
    for (const char* name : {"a", "b", "c"}) Add(s, name + n, Range(1, 12));
    Require(s, ("a" + n + " * b" + n + " * c" + n + " <= 300").c_str());
  }
  Require(s, "a0 + a1 + a2 + a3 <= 30");
  return one;
}

int Main() {
  fmt::print("{:16} {:>22} {:>16} {:>10} {:>10}\n", "space", "combinations", "valid", "edges",
             "best ms");
  for (const Case& one : {Hotspot(), Gemm(), Expdist(), Chains(), Huge()}) {
    std::vector<double> ms;
    std::string line;
    for (int repeat = 0; repeat < 9; ++repeat) {
      const auto start = std::chrono::steady_clock::now();
      const auto index = SpaceIndex::Build(one.space, {});
      ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count());
      line = index ? fmt::format("{:16} {:>22} {:>16} {:>10}", one.name, one.space.CartesianSize(),
                                 index->size(), index->diagram().edge_count())
                   : index.error().ToString();
    }
    std::ranges::sort(ms);
    fmt::print("{} {:>10.2f}\n", line, ms[0]);
  }
  return 0;
}

}  // namespace
}  // namespace atunner

int main() { return atunner::Main(); }
