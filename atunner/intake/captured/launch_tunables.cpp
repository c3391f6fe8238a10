#include "atunner/intake/captured/launch_tunables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

namespace atunner {
namespace {

constexpr const char* kBlockNames[] = {"block_x", "block_y", "block_z"};
constexpr const char* kGridName = "grid_quarters";
constexpr int64_t kMostThreads = 1024;  // of a block, on every GPU

std::array<int64_t, 3> Axes(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

/// Usual numbers of threads along an axis, and the program's own.
std::vector<Value> ThreadsAlong(size_t axis, bool flat, int64_t given) {
  std::set<int64_t> values = {given};
  if (flat)
    values.insert({32, 64, 128, 256, 512, 1024});
  else if (axis == 0)
    values.insert({8, 16, 32, 64, 128, 256});
  else
    values.insert({1, 2, 4, 8, 16, 32});
  return {values.begin(), values.end()};
}

/// "block_x * block_y" of the axes that are free.
std::string ThreadsText(const std::array<int64_t, 3>& block) {
  std::string text;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (block[axis] > 1 || axis == 0)
      text += (text.empty() ? "" : " * ") + std::string(kBlockNames[axis]);
  }
  return text;
}

/// More or fewer blocks for a kernel whose threads stride over the problem by the whole grid. The
/// program's own number is four quarters.
void FreeGrid(UserKernel& kernel, int64_t threads) {
  AddParameter(kernel,
               {kGridName,
                {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, int64_t{16}, int64_t{32}},
                "quarters of the program's number of blocks, of a grid-stride loop"},
               int64_t{4}, {Injection::Kind::kLaunch, 0, 0, ""});
  kernel.plan.steps[0].grid[0] = Expr::MustParse(
      fmt::format("ceil_div({} * {}, 4 * block_x)", threads, kGridName));
}

}  // namespace

void AddParameter(UserKernel& kernel, Parameter parameter, Value initial, Injection injection) {
  kernel.space.parameters.push_back(std::move(parameter));
  kernel.initial.values.push_back(std::move(initial));
  kernel.injections.push_back(std::move(injection));
}

std::string BlockObstacle(const KernelAccesses& accesses, const GivenLaunch& given) {
  const std::array<int64_t, 3> block = Axes(given.block);
  if (!accesses.reads_block_size) return "the kernel does not read its size";
  for (size_t axis = 0; axis < 3; ++axis) {
    if (block[axis] > 1 && !accesses.reads_block_extent[axis])
      return fmt::format("the kernel does not read its size along {}", "xyz"[axis]);
  }
  return "";
}

void FreeLaunch(UserKernel& kernel, const KernelAccesses& accesses, const GivenLaunch& given) {
  const std::array<int64_t, 3> block = Axes(given.block), grid = Axes(given.grid);
  const bool flat = block[1] == 1 && block[2] == 1;
  LaunchStep& step = kernel.plan.steps[0];
  for (size_t axis = 0; axis < 3; ++axis) {
    if (block[axis] == 1 && axis > 0) continue;
    AddParameter(kernel,
                 {kBlockNames[axis], ThreadsAlong(axis, flat, block[axis]), "threads of a block"},
                 block[axis], {Injection::Kind::kLaunch, 0, 0, ""});
    step.block[axis] = Expr::MustParse(kBlockNames[axis]);
    if (accesses.block_scales_index[axis])
      step.grid[axis] = Expr::MustParse(
          fmt::format("ceil_div({}, {})", grid[axis] * block[axis], kBlockNames[axis]));
  }
  const std::string threads = ThreadsText(block);
  const int64_t count = block[0] * block[1] * block[2];
  if (given.shared_bytes != 0 && given.shared_bytes % count == 0)
    step.shared_bytes = Expr::MustParse(
        fmt::format("{} * {}", given.shared_bytes / count, threads));
  kernel.space.constraints.push_back(
      {Expr::MustParse(fmt::format("{} <= {}", threads, kMostThreads)),
       "a block has at most 1024 threads"});
  if (accesses.strides_by_grid && accesses.block_scales_index[0] && grid[1] == 1 && grid[2] == 1)
    FreeGrid(kernel, grid[0] * block[0]);
}

bool FixLaunch(UserKernel& kernel, const GivenLaunch& given) {
  bool any = false;
  for (const char* name : {kBlockNames[0], kBlockNames[1], kBlockNames[2], kGridName}) {
    const int at = kernel.space.Find(name);
    if (at < 0) continue;
    kernel.space.parameters.erase(kernel.space.parameters.begin() + at);
    kernel.initial.values.erase(kernel.initial.values.begin() + at);
    kernel.injections.erase(kernel.injections.begin() + at);
    any = true;
  }
  if (!any) return false;
  kernel.space.constraints.clear();
  LaunchStep& step = kernel.plan.steps[0];
  for (size_t axis = 0; axis < 3; ++axis) {
    step.grid[axis] = Expr(Axes(given.grid)[axis]);
    step.block[axis] = Expr(Axes(given.block)[axis]);
  }
  step.shared_bytes = Expr(int64_t{given.shared_bytes});
  return true;
}

}  // namespace atunner
