#include "atunner/vgpu/timing/counts.h"

#include <algorithm>
#include <numeric>

namespace atunner::vgpu {

std::string_view Name(OpClass op_class) {
  switch (op_class) {
#define ATUNNER_OP_CLASS(id, name) \
  case OpClass::id:                \
    return name;
#include "atunner/vgpu/timing/op_class.def"
#undef ATUNNER_OP_CLASS
    case OpClass::kCount:
      break;
  }
  return "";
}

uint64_t Counts::TotalWarpInstructions() const {
  return std::accumulate(warp_instructions.begin(), warp_instructions.end(), uint64_t{0});
}
uint64_t Counts::TotalThreadInstructions() const {
  return std::accumulate(thread_instructions.begin(), thread_instructions.end(), uint64_t{0});
}

std::vector<std::pair<std::string, double>> Counts::Figures() const {
  std::vector<std::pair<std::string, double>> figures;
  const auto add = [&](std::string name, auto value) {
    figures.emplace_back(std::move(name), static_cast<double>(value));
  };
  for (size_t i = 0; i < warp_instructions.size(); ++i)
    add("ptx " + std::string(Name(static_cast<OpClass>(i))), warp_instructions[i]);
  for (size_t i = 0; i < pipe_uses.size(); ++i)
    add("pipe " + std::string(Name(static_cast<Pipe>(i))), pipe_uses[i]);
  add("issued", issued);
  add("code_instructions", code_instructions);
  add("branches", branches);
  add("divergent_branches", divergent_branches);
  add("tensor_flops", tensor_flops);
  add("global_loads", global_loads);
  add("global_stores", global_stores);
  add("global_load_sectors", global_load_sectors);
  add("global_store_sectors", global_store_sectors);
  add("global_load_bytes", global_load_bytes);
  add("global_store_bytes", global_store_bytes);
  add("unique_load_sectors", unique_load_sectors);
  add("unique_store_sectors", unique_store_sectors);
  add("updated_sectors", updated_sectors);
  add("common_load_sectors", common_load_sectors);
  add("l1_hit_sectors", l1_hit_sectors);
  add("reuse_distance", reuse_distance);
  add("global_wavefronts", global_wavefronts);
  add("late_turns", late_turns);
  add("shared_requests", shared_requests);
  add("shared_wavefronts", shared_wavefronts);
  add("remote_packets", remote_packets);
  add("issued_wavefronts", issued_wavefronts);
  add("async_wavefronts", async_wavefronts);
  add("local_requests", local_requests);
  add("spilled_words", spilled_words);
  add("atomics", atomics);
  add("barriers", barriers);
  add("async_copy_bytes", async_copy_bytes);
  add("bulk_sectors", bulk_sectors);
  add("reread_sectors", reread_sectors);
  add("path_l2", path[0]);
  add("path_dram", path[1]);
  add("longest_path_dram", longest_path[1]);
  add("blocks", blocks);
  add("warps", warps);
  return figures;
}

Counts& Counts::operator+=(const Counts& o) {
  for (size_t i = 0; i < warp_instructions.size(); ++i) {
    warp_instructions[i] += o.warp_instructions[i];
    thread_instructions[i] += o.thread_instructions[i];
  }
  branches += o.branches;
  divergent_branches += o.divergent_branches;
  tensor_flops += o.tensor_flops;
  mma_work += o.mma_work;
  wgmma_work += o.wgmma_work;
  global_loads += o.global_loads;
  global_stores += o.global_stores;
  global_load_sectors += o.global_load_sectors;
  global_store_sectors += o.global_store_sectors;
  global_load_bytes += o.global_load_bytes;
  global_store_bytes += o.global_store_bytes;
  unique_load_sectors += o.unique_load_sectors;
  unique_store_sectors += o.unique_store_sectors;
  updated_sectors += o.updated_sectors;
  common_load_sectors = std::max(common_load_sectors, o.common_load_sectors);
  shared_requests += o.shared_requests;
  shared_wavefronts += o.shared_wavefronts;
  remote_packets += o.remote_packets;
  issued_wavefronts += o.issued_wavefronts;
  async_wavefronts += o.async_wavefronts;
  local_requests += o.local_requests;
  spilled_words += o.spilled_words;
  atomics += o.atomics;
  barriers += o.barriers;
  async_copy_bytes += o.async_copy_bytes;
  bulk_sectors += o.bulk_sectors;
  reread_sectors += o.reread_sectors;
  for (size_t i = 0; i < pipe_uses.size(); ++i) pipe_uses[i] += o.pipe_uses[i];
  issued += o.issued;
  code_instructions = std::max(code_instructions, o.code_instructions);
  global_wavefronts += o.global_wavefronts;
  late_turns += o.late_turns;
  l1_hit_sectors += o.l1_hit_sectors;
  reuse_distance += o.reuse_distance;
  for (size_t i = 0; i < path.size(); ++i) {
    path[i] += o.path[i];
    longest_path[i] = std::max(longest_path[i], o.longest_path[i]);
  }
  blocks += o.blocks;
  warps += o.warps;
  return *this;
}

OpCounts OpCounts::Of(const Counts& c) {
  return {c.global_loads + c.global_stores,
          c.global_load_sectors + c.global_store_sectors,
          c.global_load_bytes + c.global_store_bytes,
          c.shared_requests,
          c.shared_wavefronts,
          c.local_requests,
          c.atomics,
          c.branches,
          c.divergent_branches};
}

namespace {
constexpr uint64_t OpCounts::* kOpFields[] = {
    &OpCounts::global_requests, &OpCounts::global_sectors,    &OpCounts::global_bytes,
    &OpCounts::shared_requests, &OpCounts::shared_wavefronts, &OpCounts::local_requests,
    &OpCounts::atomics,         &OpCounts::branches,          &OpCounts::divergent_branches};
}  // namespace

OpCounts& OpCounts::operator+=(const OpCounts& other) {
  for (const auto field : kOpFields) this->*field += other.*field;
  return *this;
}
OpCounts OpCounts::operator-(const OpCounts& other) const {
  OpCounts difference = *this;
  for (const auto field : kOpFields) difference.*field -= other.*field;
  return difference;
}

uint64_t LineCount::WarpInstructions() const {
  return std::accumulate(warp_instructions.begin(), warp_instructions.end(), uint64_t{0});
}
uint64_t LineCount::ThreadInstructions() const {
  return std::accumulate(thread_instructions.begin(), thread_instructions.end(), uint64_t{0});
}
LineCount& LineCount::operator+=(const LineCount& other) {
  for (size_t i = 0; i < warp_instructions.size(); ++i) {
    warp_instructions[i] += other.warp_instructions[i];
    thread_instructions[i] += other.thread_instructions[i];
  }
  memory += other.memory;
  return *this;
}

}  // namespace atunner::vgpu
