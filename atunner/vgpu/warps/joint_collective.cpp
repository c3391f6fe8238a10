#include "atunner/vgpu/warps/joint_collective.h"

#include <algorithm>

#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/warps/barriers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// How a slot holds the values of the lanes.
enum class Form : uint8_t { kWord, kPair, kBits };

struct Place {
  int32_t slot = INT32_MIN;
  Form form = Form::kWord;
};

/// The registers of a shuffle, vote, match or reduction: sources, then results.
struct Registers {
  std::array<Place, 4> sources;
  std::array<Place, 2> results;
};

const ptx::Instruction* InstructionOf(const Kernel& kernel, const Op& op) {
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return nullptr;
  return &code->function->body[static_cast<size_t>(&op - kernel.ops.data()) - code->first_op];
}

Registers RegistersOf(const ptx::Instruction& instruction, const Op& op) {
  const bool vote = instruction.opcode == "vote";
  const size_t sources = instruction.opcode == "shfl" ? 4 : 2;
  Registers r;
  for (size_t i = 0; i < sources; ++i) r.sources[i].slot = op.src[i];
  if (vote) r.sources[0].form = Form::kBits;
  if (instruction.opcode == "match" && (instruction.Has("b64") || instruction.Has("u64")))
    r.sources[0].form = Form::kPair;
  r.results[0] = {op.dst, vote && !instruction.Has("ballot") ? Form::kBits : Form::kWord};
  if (op.dst2 >= 0) r.results[1] = {op.dst2, Form::kBits};
  return r;
}

/// The words that a slot takes.
size_t WordsOf(Place place) { return place.form == Form::kPair ? 2 * kLanes : kLanes; }

std::vector<uint32_t> Contents(const BlockState& x, Place place) {
  if (place.slot == INT32_MIN) return {};
  const uint32_t* s = x.Source(place.slot);
  return {s, s + WordsOf(place)};
}

/// Writes the values of some lanes to a slot.
void PutLanes(BlockState& x, Place to, const std::vector<uint32_t>& values, uint32_t lanes) {
  if (to.slot == INT32_MIN || values.empty()) return;
  uint32_t* d = x.Slot(to.slot);
  if (to.form == Form::kBits) {
    *d = (*d & ~lanes) | (values[0] & lanes);
    return;
  }
  const int words = to.form == Form::kPair ? 2 : 1;
  ForLanes(lanes, [&](int l) { std::copy_n(values.data() + l * words, words, d + l * words); });
}

/// True if both operations are the same instruction, apart from their registers.
bool Alike(const BlockState& x, const Op& a, const Op& b) {
  const ptx::Instruction* one = InstructionOf(*x.kernel, a);
  const ptx::Instruction* other = InstructionOf(*x.kernel, b);
  if (one == nullptr || other == nullptr || one->opcode != other->opcode ||
      one->modifiers != other->modifiers || a.run != b.run || a.imm != b.imm ||
      a.variant != b.variant || (a.dst2 >= 0) != (b.dst2 >= 0) || b.guard >= 0)
    return false;
  if (one->opcode != "shfl" && one->opcode != "vote" && one->opcode != "match" &&
      one->opcode != "redux")
    return false;
  // Operands that share a register in one place only cannot be put together.
  for (size_t i = 0; i < a.src.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (a.src[i] == a.src[k] && b.src[i] != b.src[k]) return false;
    }
  }
  return true;
}

/// The contents of slots, copied before any of them changes: those of different groups may overlap.
template <size_t kPlaces>
std::array<std::vector<uint32_t>, kPlaces> ContentsOf(const BlockState& x,
                                                      const std::array<Place, kPlaces>& places) {
  std::array<std::vector<uint32_t>, kPlaces> contents;
  for (size_t i = 0; i < kPlaces; ++i) contents[i] = Contents(x, places[i]);
  return contents;
}

template <size_t kPlaces>
void PutAll(BlockState& x, const std::array<Place, kPlaces>& places,
            const std::array<std::vector<uint32_t>, kPlaces>& contents, uint32_t lanes) {
  for (size_t i = 0; i < kPlaces; ++i) PutLanes(x, places[i], contents[i], lanes);
}

Registers RegistersOf(const BlockState& x, const Op& op) {
  return RegistersOf(*InstructionOf(*x.kernel, op), op);
}

}  // namespace

std::vector<size_t> PartnersElsewhere(const BlockState& x, const Op& op, size_t running,
                                      uint32_t named) {
  const Warp& warp = *x.warp;
  std::vector<size_t> partners;
  uint32_t there = warp.groups[running].mask;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    const Group& other = warp.groups[i];
    if (i == running || other.barrier != kCollective || (other.mask & named) == 0) continue;
    const Op& its = x.kernel->ops[other.pc];
    if (!Alike(x, op, its) || Named(x.Source(its.src[its.target]), other.mask) != named) continue;
    partners.push_back(i);
    there |= other.mask;
  }
  if ((named & warp.alive & ~there) != 0) partners.clear();
  return partners;
}

void RunJointly(BlockState& x, const Op& op, uint32_t mask, const std::vector<size_t>& partners) {
  const Registers mine = RegistersOf(x, op);
  const auto sources = ContentsOf(x, mine.sources);
  const auto before = ContentsOf(x, mine.results);
  std::vector<std::array<std::vector<uint32_t>, 4>> theirs;
  uint32_t all = mask;
  for (size_t i : partners) {
    const Group& group = x.warp->groups[i];
    theirs.push_back(ContentsOf(x, RegistersOf(x, x.kernel->ops[group.pc]).sources));
    all |= group.mask;
  }
  for (size_t k = 0; k < partners.size(); ++k)
    PutAll(x, mine.sources, theirs[k], x.warp->groups[partners[k]].mask);
  op.run(x, op, all);
  const auto results = ContentsOf(x, mine.results);
  PutAll(x, mine.results, before, ~mask);
  PutAll(x, mine.sources, sources, ~mask);
  for (size_t i : partners) {
    Group& group = x.warp->groups[i];
    PutAll(x, RegistersOf(x, x.kernel->ops[group.pc]).results, results, group.mask);
    group.barrier = -1;
    ++group.pc;
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
