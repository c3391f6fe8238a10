#include "atunner/vgpu/timing/counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/vgpu/timing/scaled_counts.h"

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
  add("tensor_flops", tensor.flops);
  add("global_loads", global.loads);
  add("global_stores", global.stores);
  add("global_load_sectors", global.load_sectors);
  add("global_store_sectors", global.store_sectors);
  add("global_load_bytes", global.load_bytes);
  add("global_store_bytes", global.store_bytes);
  add("unique_load_sectors", global.unique_load_sectors);
  add("unique_store_sectors", global.unique_store_sectors);
  add("updated_sectors", global.updated_sectors);
  add("common_load_sectors", global.common_load_sectors);
  add("l1_hit_sectors", global.l1_hit_sectors);
  add("reuse_distance", global.reuse_distance);
  add("global_wavefronts", global.wavefronts);
  add("late_turns", global.late_wavefronts);
  add("shared_requests", shared.requests);
  add("shared_wavefronts", shared.wavefronts);
  add("remote_packets", shared.remote_packets);
  add("issued_wavefronts", shared.issued_wavefronts);
  add("async_wavefronts", shared.async_wavefronts);
  add("local_requests", local_requests);
  add("spilled_words", spilled_words);
  add("atomics", global.atomics);
  add("barriers", barriers);
  add("async_copy_bytes", async_copy_bytes);
  add("bulk_sectors", global.bulk_sectors);
  add("reread_sectors", global.reread_sectors);
  add("path_l2", path[0]);
  add("path_dram", path[1]);
  add("longest_path_dram", longest_path[1]);
  add("blocks", blocks);
  add("warps", warps);
  return figures;
}

namespace {

constexpr uint64_t GlobalCounts::* kGlobalSums[] = {&GlobalCounts::loads,
                                                    &GlobalCounts::stores,
                                                    &GlobalCounts::load_sectors,
                                                    &GlobalCounts::store_sectors,
                                                    &GlobalCounts::load_bytes,
                                                    &GlobalCounts::store_bytes,
                                                    &GlobalCounts::unique_load_sectors,
                                                    &GlobalCounts::unique_store_sectors,
                                                    &GlobalCounts::updated_sectors,
                                                    &GlobalCounts::l1_hit_sectors,
                                                    &GlobalCounts::reuse_distance,
                                                    &GlobalCounts::reread_sectors,
                                                    &GlobalCounts::bulk_sectors,
                                                    &GlobalCounts::wavefronts,
                                                    &GlobalCounts::late_wavefronts,
                                                    &GlobalCounts::atomics};
constexpr uint64_t SharedCounts::* kSharedSums[] = {
    &SharedCounts::requests, &SharedCounts::wavefronts, &SharedCounts::remote_packets,
    &SharedCounts::issued_wavefronts, &SharedCounts::async_wavefronts};
constexpr uint64_t Counts::* kSums[] = {
    &Counts::branches, &Counts::divergent_branches, &Counts::local_requests, &Counts::spilled_words,
    &Counts::barriers, &Counts::async_copy_bytes,   &Counts::issued,         &Counts::blocks,
    &Counts::warps};

template <class Array>
void AddElements(Array& to, const Array& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void Scale(uint64_t& sum, double times) {
  sum = static_cast<uint64_t>(std::llround(static_cast<double>(sum) * times));
}
void Scale(double& sum, double times) { sum *= times; }
template <class Array>
void ScaleElements(Array& sums, double times) {
  for (auto& sum : sums) Scale(sum, times);
}

}  // namespace

Counts Scaled(Counts counts, double times) {
  for (const auto field : kGlobalSums) Scale(counts.global.*field, times);
  counts.global.atomic_units.Scale(times);
  for (const auto field : kSharedSums) Scale(counts.shared.*field, times);
  for (const auto field : kSums) Scale(counts.*field, times);
  for (double* sum : {&counts.tensor.flops, &counts.tensor.mma_work, &counts.tensor.wgmma_work})
    Scale(*sum, times);
  ScaleElements(counts.warp_instructions, times);
  ScaleElements(counts.thread_instructions, times);
  ScaleElements(counts.pipe_uses, times);
  ScaleElements(counts.path, times);
  return counts;
}

GlobalCounts& GlobalCounts::operator+=(const GlobalCounts& other) {
  for (const auto field : kGlobalSums) this->*field += other.*field;
  common_load_sectors = std::max(common_load_sectors, other.common_load_sectors);
  atomic_units += other.atomic_units;
  return *this;
}
SharedCounts& SharedCounts::operator+=(const SharedCounts& other) {
  for (const auto field : kSharedSums) this->*field += other.*field;
  return *this;
}
TensorCounts& TensorCounts::operator+=(const TensorCounts& other) {
  flops += other.flops;
  mma_work += other.mma_work;
  wgmma_work += other.wgmma_work;
  return *this;
}

Counts& Counts::operator+=(const Counts& other) {
  for (const auto field : kSums) this->*field += other.*field;
  AddElements(warp_instructions, other.warp_instructions);
  AddElements(thread_instructions, other.thread_instructions);
  AddElements(pipe_uses, other.pipe_uses);
  AddElements(path, other.path);
  tensor += other.tensor;
  global += other.global;
  shared += other.shared;
  code_instructions = std::max(code_instructions, other.code_instructions);
  for (size_t i = 0; i < path.size(); ++i)
    longest_path[i] = std::max(longest_path[i], other.longest_path[i]);
  return *this;
}

OpCounts OpCounts::Of(const Counts& c) {
  return {c.global.loads + c.global.stores,
          c.global.load_sectors + c.global.store_sectors,
          c.global.load_bytes + c.global.store_bytes,
          c.shared.requests,
          c.shared.wavefronts,
          c.local_requests,
          c.global.atomics,
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
