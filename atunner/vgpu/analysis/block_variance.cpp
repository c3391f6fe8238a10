#include "atunner/vgpu/analysis/block_variance.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace atunner::vgpu {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr uint64_t kAnywhere = 1;  // as an allocation: the address is not followed

/// Merges sorted sets; true if `into` grew.
bool Merge(const std::vector<uint64_t>& from, std::vector<uint64_t>& into) {
  bool grew = false;
  for (const uint64_t root : from) {
    const auto at = std::ranges::lower_bound(into, root);
    if (at != into.end() && *at == root) continue;
    into.insert(at, root);
    grew = true;
  }
  return grew;
}

uint8_t ReasonOfSpecial(std::string_view name) {
  for (const std::string_view of_block : {"%ctaid", "%clusterid", "%cluster_cta"})
    if (name.starts_with(of_block)) return kByBlock;
  for (const std::string_view of_time : {"%clock", "%globaltimer", "%smid", "%gridid"})
    if (name.starts_with(of_time)) return kByTime;
  return 0;
}

}  // namespace

BlockVariance::BlockVariance(const ptx::Function& function, const ControlFlow& flow,
                             const AllocationOf& allocation_of, bool by_data)
    : function_(function),
      flow_(flow),
      by_data_(by_data),
      uses_(UsesOf(function)),
      definitions_(function.registers.size()),
      readers_(function.registers.size()),
      reasons_(function.registers.size(), 0) {
  for (size_t i = 0; i < uses_.size(); ++i) {
    memory_.push_back(MemoryUseOf(function.body[i]));
    for (int reg : uses_[i].writes) definitions_[static_cast<size_t>(reg)].push_back(i);
    for (const auto* registers : {&uses_[i].addresses, &uses_[i].values})
      for (int reg : *registers) readers_[static_cast<size_t>(reg)].push_back(i);
    if (function.body[i].guard >= 0)
      readers_[static_cast<size_t>(function.body[i].guard)].push_back(i);
  }
  FindRoots(allocation_of);
  FindSides();
  FindReasons();
}

bool BlockVariance::AddRoots(size_t at, const AllocationOf& allocation_of) {
  const Instruction& i = function_.body[at];
  std::vector<uint64_t> roots;
  const auto add = [&](uint64_t allocation) {
    if (allocation != 0) Merge({allocation}, roots);
  };
  const bool parameter = i.opcode == "ld" && i.Has("param");
  if (memory_[at].reads != 0) add(kAnywhere);
  for (const Operand& operand : i.operands) {
    const bool named = operand.kind == Operand::Kind::kSymbol ||
                       operand.kind == Operand::Kind::kAddress;
    if (!named || operand.name.empty()) continue;
    const uint64_t offset = parameter ? operand.bits : 0;
    for (uint64_t part = 0; part < (parameter ? 2 : 1); ++part)
      add(allocation_of(operand.name, offset + 8 * part));
  }
  for (const auto* registers : {&uses_[at].addresses, &uses_[at].values})
    for (int reg : *registers) Merge(roots_[static_cast<size_t>(reg)], roots);
  bool grew = false;
  for (int reg : uses_[at].writes) {
    if (ptx::BitsOf(function_.registers[static_cast<size_t>(reg)].type) >= 64)
      grew |= Merge(roots, roots_[static_cast<size_t>(reg)]);
  }
  if (memory_[at].reads == 0 && memory_[at].writes == 0) return grew;
  // Only the address of an access counts.
  std::vector<uint64_t> reached;
  for (const Operand& operand : i.operands) {
    if (operand.kind != Operand::Kind::kAddress) continue;
    if (operand.reg >= 0) Merge(roots_[static_cast<size_t>(operand.reg)], reached);
    if (!operand.name.empty()) Merge({allocation_of(operand.name, 0)}, reached);
  }
  access_roots_[at] = std::move(reached);
  return grew;
}

void BlockVariance::FindRoots(const AllocationOf& allocation_of) {
  roots_.resize(function_.registers.size());
  access_roots_.resize(function_.body.size());
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < function_.body.size(); ++i) grew |= AddRoots(i, allocation_of);
  }
  for (auto& roots : access_roots_) {
    if (std::ranges::binary_search(roots, kAnywhere) || std::ranges::binary_search(roots, 0u))
      roots.clear();
  }
}

const std::vector<uint64_t>& BlockVariance::AllocationsOf(size_t instruction) const {
  return access_roots_[instruction];
}

bool BlockVariance::MayAlias(size_t write, size_t read) const {
  const uint8_t common = memory_[write].writes & memory_[read].reads;
  if (common == 0) return false;
  if (common != kGlobalSpace || memory_[write].asynchronous) return true;
  const auto& a = access_roots_[write];
  const auto& b = access_roots_[read];
  if (a.empty() || b.empty()) return true;
  return std::ranges::any_of(
      a, [&](uint64_t allocation) { return std::ranges::binary_search(b, allocation); });
}

bool BlockVariance::IsRewritten(size_t load) const {
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (memory_[i].writes != 0 && MayAlias(i, load)) return true;
  }
  return false;
}

void BlockVariance::FindSides() {
  sides_.resize(flow_.blocks().size());
  for (size_t b = 0; b < sides_.size(); ++b) {
    if (!flow_.Decides(b)) continue;
    for (size_t next : flow_.Next(b)) sides_[b].push_back(flow_.Side(b, next));
  }
}

/// The sides of a decider's branch that a block is on, one bit each.
uint32_t BlockVariance::SidesAt(size_t decider, size_t block) const {
  uint32_t on = 0;
  for (size_t side = 0; side < sides_[decider].size(); ++side)
    on |= (sides_[decider][side][block] ? 1u : 0u) << (side % 32);
  return on;
}

uint8_t BlockVariance::ReasonOfRegisters(const std::vector<int>& registers) const {
  uint8_t reason = 0;
  for (int reg : registers) reason |= reasons_[static_cast<size_t>(reg)];
  return reason;
}

uint8_t BlockVariance::OfBranch(size_t block) const {
  const size_t last = flow_.blocks()[block].end - 1;
  const Instruction& i = function_.body[last];
  uint8_t reason = ReasonOfRegisters(uses_[last].values);
  if (i.guard >= 0) reason |= reasons_[static_cast<size_t>(i.guard)];
  return reason;
}

/// What a load brings: what was stored there, or what global memory holds.
uint8_t BlockVariance::ReasonOfLoad(size_t at) const {
  uint8_t address = ReasonOfRegisters(uses_[at].addresses);
  address |= ReasonOfRegisters(uses_[at].values);
  const MemoryUse& use = memory_[at];
  uint8_t reason = address;
  for (const uint8_t space : {kSharedSpace, kLocalSpace})
    if ((use.reads & space) != 0) reason |= stored_[space];
  if ((use.reads & kGlobalSpace) == 0) return reason;
  const bool same = !by_data_ && use.reads == kGlobalSpace && use.writes == 0 && address == 0 &&
                    function_.body[at].opcode == "ld" && !IsRewritten(at);
  if (same) return reason;
  // Data of another place: the index itself does not show.
  if (use.reads == kGlobalSpace) reason &= kByTime;
  reason |= kByMemory;
  return reason;
}

uint8_t BlockVariance::ReasonOf(size_t at) const {
  const Instruction& i = function_.body[at];
  uint8_t reason = i.guard >= 0 ? reasons_[static_cast<size_t>(i.guard)] : 0;
  if (IsWait(i)) return reason;
  if (memory_[at].reads != 0) return reason | ReasonOfLoad(at);
  for (const Operand& operand : i.operands) {
    if (operand.kind == Operand::Kind::kSpecial) reason |= ReasonOfSpecial(operand.name);
  }
  reason |= ReasonOfRegisters(uses_[at].values);
  return reason |= ReasonOfRegisters(uses_[at].addresses);
}

/// True if whoever reads the register has taken the same side of the branch, once. Example: all of
/// a kernel behind its `if (i >= n) return`.
bool BlockVariance::IsReadOnOneSide(size_t decider, int reg) const {
  if (SidesAt(decider, decider) != 0) return false;
  uint32_t on = ~0u;
  for (size_t reader : readers_[static_cast<size_t>(reg)])
    on &= SidesAt(decider, flow_.BlockOf(reader));
  return std::popcount(on) == 1 &&
         std::ranges::all_of(readers_[static_cast<size_t>(reg)], [&](size_t reader) {
           return SidesAt(decider, flow_.BlockOf(reader)) == on;
         });
}

/// The reason why one of several definitions of a register holds: branches that differ, on whose
/// sides the definitions are.
uint8_t BlockVariance::ByChoice(int reg) const {
  const auto& definitions = definitions_[static_cast<size_t>(reg)];
  if (definitions.size() < 2) return 0;
  uint8_t reason = 0;
  for (size_t decider = 0; decider < sides_.size(); ++decider) {
    const uint8_t of_branch = sides_[decider].empty() ? 0 : OfBranch(decider);
    if ((of_branch & ~reason) == 0 || IsReadOnOneSide(decider, reg)) continue;
    const uint32_t first = SidesAt(decider, flow_.BlockOf(definitions.front()));
    const bool differ = std::ranges::any_of(
        definitions, [&](size_t at) { return SidesAt(decider, flow_.BlockOf(at)) != first; });
    if (differ) reason |= of_branch;
  }
  return reason;
}

/// Reasons of what the stores to a space leave there, those of the branches that lead to them
/// included.
uint8_t BlockVariance::OfStores(uint8_t space) const {
  uint8_t reason = 0;
  std::vector<size_t> stores, loads;
  for (size_t i = 0; i < memory_.size(); ++i) {
    if ((memory_[i].reads & space) != 0) loads.push_back(flow_.BlockOf(i));
    if ((memory_[i].writes & space) == 0) continue;
    stores.push_back(flow_.BlockOf(i));
    if (memory_[i].asynchronous) reason |= kByMemory;
    reason |= ReasonOfRegisters(uses_[i].values);
    reason |= ReasonOfRegisters(uses_[i].addresses);
    if (const int guard = function_.body[i].guard; guard >= 0)
      reason |= reasons_[static_cast<size_t>(guard)];
  }
  if (loads.empty()) return reason;
  for (size_t decider = 0; decider < sides_.size(); ++decider) {
    const uint8_t of_branch = sides_[decider].empty() ? 0 : OfBranch(decider);
    if ((of_branch & ~reason) == 0) continue;
    const uint32_t first = SidesAt(decider, loads.front());
    const auto elsewhere = [&](size_t block) { return SidesAt(decider, block) != first; };
    if (std::ranges::any_of(stores, elsewhere) || std::ranges::any_of(loads, elsewhere))
      reason |= of_branch;
  }
  return reason;
}

void BlockVariance::FindReasons() {
  for (bool changed = true; changed;) {
    changed = false;
    const auto raise = [&](uint8_t& reason, uint8_t more) {
      changed |= (more & ~reason) != 0;
      reason |= more;
    };
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i].writes.empty()) continue;
      const uint8_t reason = ReasonOf(i);
      for (int reg : uses_[i].writes) raise(reasons_[static_cast<size_t>(reg)], reason);
    }
    for (size_t reg = 0; reg < definitions_.size(); ++reg)
      raise(reasons_[reg], ByChoice(static_cast<int>(reg)));
    for (const uint8_t space : {kSharedSpace, kLocalSpace}) raise(stored_[space], OfStores(space));
  }
}

}  // namespace atunner::vgpu
