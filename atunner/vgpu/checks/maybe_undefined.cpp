// Maybe-uninitialised registers: those that may be read before anything is written to them. A
// static analysis of the code finds them once, and only the operations that use them are checked at
// run time.
//
// Compilers leave registers undefined on paths where their value does not matter, and copy and
// compute with them freely. An undefined value is therefore a hazard only when it decides
// something: an address, a branch, a stored value. Bitwise operations and packing may mask it out,
// and values that lanes exchange may not be used: results of these count as defined.
//
// Undefined values that are stored in shared memory stay undefined (RaceShadow::undefined_bytes),
// and so do unwritten parts of structs that are copied there. Block-wide sorts compare and branch
// on the empty end of a last tile, so that an undefined value from shared memory is a hazard only
// as an address, or when it is stored to global memory.
#include <algorithm>
#include <set>

#include "atunner/vgpu/analysis/body_flow.h"
#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Operand;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

/// True if an undefined operand makes the result undefined and has no other effect. Packing is not
/// included, because one half of a packed pair may be used alone.
bool Passes(const Instruction& i) {
  const auto packed = [](const Operand& operand) { return operand.kind == Operand::Kind::kVector; };
  if (i.opcode == "mov" && std::ranges::any_of(i.operands, packed)) return false;
  return IsOneOf(i.opcode,
                 {"mov",  "cvt", "cvta", "add",  "sub",  "mul", "mad",   "fma",   "div",  "rem",
                  "abs",  "neg", "min",  "max",  "sqrt", "rcp", "ex2",   "lg2",   "sin",  "cos",
                  "tanh", "set", "setp", "addc", "subc", "sad", "mul24", "mad24", "rsqrt"});
}

bool SpaceIsNone(const Instruction& i, std::initializer_list<std::string_view> spaces) {
  return std::ranges::none_of(i.modifiers, [&](const std::string& m) {
    return std::ranges::any_of(spaces,
                               [&](std::string_view space) { return m.starts_with(space); });
  });
}
/// True if a load or store may access shared memory; generic ones may.
bool MayBeShared(const Instruction& i) {
  return SpaceIsNone(i, {"global", "const", "param", "local"});
}
bool MayBeLocal(const Instruction& i) { return SpaceIsNone(i, {"global", "const", "shared"}); }

/// Registers of the elements that a load or store moves; -1 for an element that is not a register.
std::vector<int> Elements(const Instruction& i) {
  const Operand& moved = i.operands[i.opcode == "ld" ? 0 : 1];
  if (moved.kind != Operand::Kind::kVector) return {moved.reg};
  std::vector<int> registers;
  for (const Operand& element : moved.elements) registers.push_back(element.reg);
  return registers;
}
bool Moves(const Instruction& i, std::string_view opcode) {
  return i.opcode == opcode && i.operands.size() >= 2 && !i.modifiers.empty();
}

/// The set of registers that are certainly defined, as bits.
class Defined {
 public:
  explicit Defined(size_t registers, bool all)
      : words_((registers + 63) / 64, all ? ~uint64_t{0} : 0) {}
  void Set(int reg) { words_[static_cast<size_t>(reg) / 64] |= uint64_t{1} << (reg % 64); }
  bool Has(int reg) const { return (words_[static_cast<size_t>(reg) / 64] >> (reg % 64)) & 1u; }
  /// Intersects with another set; true if that removed a register.
  bool Meet(const Defined& other) {
    bool changed = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t met = words_[i] & other.words_[i];
      changed |= met != words_[i];
      words_[i] = met;
    }
    return changed;
  }

 private:
  std::vector<uint64_t> words_;
};

/// The maybe-uninitialised registers of one function, by data flow over its basic blocks.
class FunctionFlow {
 public:
  explicit FunctionFlow(const Function& function)
      : function_(function), blocks_(BlocksOf(function)), uses_(UsesOf(function)) {
    FindMaybeUndefinedRegisters();
    FindCopies();
    Spread();
  }
  const std::vector<Use>& uses() const { return uses_; }
  const std::set<int>& maybe_undefined() const { return maybe_undefined_; }
  /// Indices of loads whose values are only copied, such as unwritten parts of structs.
  const std::set<size_t>& copies() const { return copies_; }
  bool IsCopy(int reg) const { return stack_copies_.contains(reg); }

  /// True if a maybe-uninitialised register is stored to what may be shared memory.
  bool StoresUndefined() const {
    for (const Instruction& i : function_.body) {
      if (!Moves(i, "st") || !MayBeShared(i)) continue;
      if (std::ranges::any_of(Elements(i), [&](int reg) { return maybe_undefined_.contains(reg); }))
        return true;
    }
    return false;
  }
  /// Adds the registers that are loaded from what may be shared memory.
  void MarkLoadsUndefined() {
    for (const Instruction& i : function_.body) {
      if (!Moves(i, "ld") || !MayBeShared(i)) continue;
      for (int reg : Elements(i)) {
        if (reg >= 0) maybe_undefined_.insert(reg);
      }
    }
    Spread();
  }
  /// True if instruction `index` subtracts a term from a sum that contains it. Exclusive scans are
  /// computed so, and an undefined term has no effect on their result.
  bool TakesTermFromSum(size_t index) const {
    const Instruction& i = function_.body[index];
    if (i.opcode != "sub" || i.operands.size() != 3 || i.Has("f32") || i.Has("f64")) return false;
    const int term = i.operands[2].reg;
    if (!maybe_undefined_.contains(term)) return false;
    std::set<int> sums{term};
    for (bool more = true; more;) {
      more = false;
      for (size_t k = 0; k < uses_.size(); ++k) {
        const bool adds = k != index && std::ranges::any_of(uses_[k].values, [&](int reg) {
                            return sums.contains(reg);
                          });
        for (int reg : uses_[k].writes) more |= adds && sums.insert(reg).second;
      }
    }
    return sums.contains(i.operands[1].reg);
  }

 private:
  /// Calls `f` for each register that instruction `i` reads, then adds those that it writes.
  template <class F>
  void Step(size_t i, Defined& defined, F&& f) const {
    const Instruction& instruction = function_.body[i];
    const Use& use = uses_[i];
    if (instruction.guard >= 0) f(instruction.guard);
    for (int reg : use.addresses) f(reg);
    for (int reg : use.values) f(reg);
    if (instruction.guard >= 0) return;  // a guarded instruction may not run
    for (int reg : use.writes) defined.Set(reg);
  }

  void FindMaybeUndefinedRegisters() {
    if (blocks_.empty()) return;
    const size_t registers = function_.registers.size();
    std::vector<Defined> at(blocks_.size(), Defined(registers, true));
    at[0] = Defined(registers, false);
    std::set<size_t> work;
    for (size_t b = 0; b < blocks_.size(); ++b) work.insert(b);
    while (!work.empty()) {
      const size_t b = *work.begin();
      work.erase(work.begin());
      Defined defined = at[b];
      for (size_t i = blocks_[b].first; i < blocks_[b].end; ++i) Step(i, defined, [](int) {});
      for (size_t next : blocks_[b].next) {
        if (at[next].Meet(defined)) work.insert(next);
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Defined defined = at[b];
      for (size_t i = blocks_[b].first; i < blocks_[b].end; ++i) {
        Step(i, defined, [&](int reg) {
          if (!defined.Has(reg)) maybe_undefined_.insert(reg);
        });
      }
    }
  }

  /// Finds copies of structs, which include their padding: vectors and halves of pairs within
  /// shared memory, and in unoptimised code all pieces of structs on the stack.
  void FindCopies() {
    const auto loads = [](const Instruction& i) { return Moves(i, "ld"); };
    if (std::ranges::none_of(function_.body, loads)) return;
    const std::vector<Copied> copied = CopiesOf(function_, uses_);
    std::vector<bool> read(function_.registers.size());
    for (const Use& use : uses_) {
      for (int reg : use.values) read[static_cast<size_t>(reg)] = true;
    }
    for (size_t index = 0; index < function_.body.size(); ++index) {
      const Instruction& i = function_.body[index];
      if (!loads(i)) continue;
      const std::vector<int> elements = Elements(i);
      const int bits = ptx::BitsOf(ptx::ParseType(i.modifiers.back()));
      const bool part = MayBeShared(i) && (elements.size() > 1 || bits == 64);
      const bool stack = MayReadUnwritten(function_, uses_, copied, index);
      for (int reg : elements) {
        const bool used = reg >= 0 && read[static_cast<size_t>(reg)];
        const Copied how = used ? copied[static_cast<size_t>(reg)] : Copied::kNo;
        if (!(part && how == Copied::kWithinBlock) && !(stack && used)) continue;
        if (stack && how != Copied::kNo) stack_copies_.insert(reg);
        maybe_undefined_.insert(reg);
        copies_.insert(index);
      }
    }
  }

  /// Adds the registers that are computed from maybe-uninitialised ones.
  void Spread() {
    for (bool more = !maybe_undefined_.empty(); more;) {
      more = false;
      for (size_t i = 0; i < function_.body.size(); ++i) {
        const Instruction& instruction = function_.body[i];
        if (!Passes(instruction) && !IsOneOf(instruction.opcode, {"selp", "slct"})) continue;
        const Use& use = uses_[i];
        const bool reads = std::ranges::any_of(
            use.values, [&](int reg) { return maybe_undefined_.contains(reg); });
        for (int reg : use.writes) more |= reads && maybe_undefined_.insert(reg).second;
      }
    }
  }

  const Function& function_;
  std::vector<BasicBlock> blocks_;
  std::vector<Use> uses_;
  std::set<int> maybe_undefined_;
  std::set<int> stack_copies_;
  std::set<size_t> copies_;
};

/// Describes a load or store of the block's own memory. `carries_undefined`: undefined values may
/// be stored in shared memory.
void DescribeMemory(const Instruction& i, size_t index, const FunctionFlow& flow,
                    const std::vector<int32_t>& slots, bool carries_undefined, MaybeUndefined& s) {
  const bool load = Moves(i, "ld");
  if (!load && !Moves(i, "st")) return;
  const std::vector<int> elements = Elements(i);
  s.copies = load && flow.copies().contains(index);
  s.keeps_local = !load && MayBeLocal(i) && elements.size() == 1 && flow.IsCopy(elements[0]);
  s.keeps = s.keeps_local || (!load && carries_undefined && MayBeShared(i));
  if (load ? !s.copies && !(carries_undefined && MayBeShared(i)) : !s.keeps) return;
  for (int reg : elements)
    s.moved.push_back(flow.maybe_undefined().contains(reg) ? slots[static_cast<size_t>(reg)]
                                                           : MaybeUndefined::kNotTracked);
}

MaybeUndefined Describe(const Instruction& instruction, size_t index, const FunctionFlow& flow,
                        const std::vector<int32_t>& slots, bool carries_undefined) {
  MaybeUndefined s;
  const Use& use = flow.uses()[index];
  const std::set<int>& maybe_undefined = flow.maybe_undefined();
  DescribeMemory(instruction, index, flow, slots, carries_undefined, s);
  const auto take = [&](const std::vector<int>& registers, std::vector<int32_t>& into) {
    for (int reg : registers) {
      if (maybe_undefined.contains(reg)) into.push_back(slots[static_cast<size_t>(reg)]);
    }
  };
  if (instruction.guard >= 0 && maybe_undefined.contains(instruction.guard))
    s.guard = slots[static_cast<size_t>(instruction.guard)];
  take(use.addresses, s.needs);
  take(use.writes, s.writes);
  const std::string& opcode = instruction.opcode;
  if (opcode == "brx") take(use.values, s.needs);
  // Block-wide sorts and scans move the empty end of a last tile through shared memory, and drop it
  // later.
  s.generic = opcode == "st" && SpaceIsNone(instruction, {"global"});
  if ((opcode == "st" && SpaceIsNone(instruction, {"local", "param", "shared"})) ||
      opcode == "red") {
    take(use.values, s.stored);
    if (s.stored.size() != use.values.size()) s.stored.clear();
  }
  const bool chooses = opcode == "selp" && instruction.operands.size() == 4 &&
                       !instruction.operands[3].negated;
  for (size_t i = 0; chooses && i < 3; ++i) {
    const int reg = instruction.operands[i + 1].reg;
    // The state of other registers is not kept: their slots may hold the state of registers that
    // used the slot before.
    if (reg >= 0 && (i == 2 || maybe_undefined.contains(reg)))
      s.select[i] = slots[static_cast<size_t>(reg)];
  }
  s.compares = IsOneOf(opcode, {"set", "setp"});
  if (Passes(instruction)) take(use.values, s.passes);
  s.cancels = !s.passes.empty() && flow.TakesTermFromSum(index);
  if (chooses) take({instruction.operands[3].reg}, s.passes);
  return s;
}

}  // namespace

Kernel FindMaybeUndefined(const Kernel& kernel) {
  Kernel marked = kernel;
  std::vector<FunctionFlow> flows;
  for (const Code& code : kernel.code) flows.emplace_back(*code.function);
  marked.carries_undefined = std::ranges::any_of(flows, &FunctionFlow::StoresUndefined);
  for (size_t f = 0; f < flows.size(); ++f) {
    FunctionFlow& flow = flows[f];
    const Code& code = kernel.code[f];
    if (marked.carries_undefined) flow.MarkLoadsUndefined();
    if (flow.maybe_undefined().empty() && !marked.carries_undefined) continue;
    const std::vector<int32_t>& slots = code.slot_of_register;
    for (int reg : flow.maybe_undefined())
      marked.maybe_undefined_slots.push_back(slots[static_cast<size_t>(reg)]);
    for (size_t i = 0; i < code.function->body.size(); ++i) {
      const auto index = static_cast<uint32_t>(code.first_op + i);
      MaybeUndefined use = Describe(code.function->body[i], i, flow, slots,
                                    marked.carries_undefined);
      const bool watched = use.guard >= 0 || !use.needs.empty() || !use.stored.empty() ||
                           !use.writes.empty() || use.keeps;
      if (!watched) continue;
      use.flow = marked.ops[index].flow;
      marked.ops[index].flow = Flow::kMaybeUndefined;
      marked.maybe_undefined.emplace(index, std::move(use));
    }
  }
  FindFlow(marked);
  return marked;
}

namespace {

/// An element of a lane's access as an offset in SharedMemory::bytes or LocalMemory::bytes.
struct BlockPlace {
  Space space = Space::kGeneric;  ///< kGeneric = in other memory
  size_t at = 0;
};
BlockPlace PlaceOfElement(const BlockState& x, const Op& op, int lane, size_t element) {
  uint64_t address = AddressOf(x, op, lane);
  const Space space = Resolve(op.space, address);
  address += element * op.width;
  if (space == Space::kShared && address + op.width <= x.shared.bytes.size())
    return {space, address};
  const uint64_t per_thread = x.kernel->local_bytes;
  if (space == Space::kLocal && address + op.width <= per_thread)
    return {space, x.ThreadOf(lane) * per_thread + address};
  return {};
}

/// Lanes that load only undefined bytes.
uint32_t LoadedUndefined(const BlockState& x, const Op& op, const MaybeUndefined& use,
                         size_t element, uint32_t active) {
  uint32_t undefined = 0;
  ForLanes(active, [&](int l) {
    const BlockPlace place = PlaceOfElement(x, op, l, element);
    if (place.space == Space::kGeneric) return;
    bool all = true;
    for (size_t i = place.at; i < place.at + op.width; ++i) {
      const bool unwritten = place.space == Space::kShared
                                 ? (x.shadow.words[i / 4].initialised >> i % 4 & 1) == 0
                                 : x.local.defined[i] == 0;
      const bool is_undefined = place.space == Space::kShared &&
                                !x.shadow.undefined_bytes.empty() &&
                                x.shadow.undefined_bytes[i] != 0;
      all = all && (is_undefined || (use.copies && unwritten));
    }
    undefined |= (all ? 1u : 0u) << l;
  });
  return undefined;
}

uint32_t LanesIn(const BlockState& x, const Op& op, Space space, uint32_t active) {
  uint32_t lanes = 0;
  ForLanes(active, [&](int l) {
    uint64_t address = AddressOf(x, op, l);
    lanes |= (Resolve(op.space, address) == space ? 1u : 0u) << l;
  });
  return lanes;
}

}  // namespace

void CheckMaybeUndefined(BlockState& x, const Op& op, const MaybeUndefined& use, uint32_t mask,
                         uint32_t active) {
  const auto of = [&](int32_t slot) -> uint32_t& {
    return x.warp->undefined[static_cast<size_t>(slot)];
  };
  const auto carried = [&](int32_t slot) -> uint32_t& {
    return x.warp->carried[static_cast<size_t>(slot)];
  };
  const auto report = [&](uint32_t lanes, const char* what) {
    if (lanes == 0 || ReportedBefore(x, op, Hazard::Kind::kUninitialisedRegister)) return;
    Report(x, op, Hazard::Kind::kUninitialisedRegister, std::countr_zero(lanes), what);
  };
  if (use.guard >= 0) {
    report(of(use.guard) & mask & ~carried(use.guard),
           "branches on a variable that nothing was written to");
    of(use.guard) &= ~mask;  // it is reported once
  }
  for (int32_t slot : use.needs) {
    report(of(slot) & active, "computes an address from a variable that nothing was written to");
    of(slot) &= ~active;
  }
  uint32_t stored = use.stored.empty() ? 0
                    : use.generic      ? LanesIn(x, op, Space::kGlobal, active)
                                       : active;
  uint32_t from_shared = stored;
  for (int32_t slot : use.stored) stored &= of(slot), from_shared &= carried(slot);
  report(stored & ~from_shared, "stores a variable that nothing was written to");
  report(stored & from_shared, "stores a value from shared memory that nothing ever defined");
  uint32_t result = 0;
  uint32_t result_carried = 0;
  const auto take = [&](int32_t slot, uint32_t lanes) {
    result |= of(slot) & lanes & (use.compares ? ~carried(slot) : ~0u);
    result_carried |= of(slot) & lanes & carried(slot);
  };
  const uint32_t cancelled = use.cancels ? of(use.passes.back()) : 0;
  for (int32_t slot : use.passes) take(slot, ~cancelled);
  if (const auto [a, b, p] = use.select; p >= 0) {
    const uint32_t chosen = *x.Slot(p);
    if (a >= 0) take(a, chosen);
    if (b >= 0) take(b, ~chosen);
  }
  const auto define = [&](int32_t slot, uint32_t undefined, uint32_t from_memory) {
    of(slot) = (of(slot) & ~active) | (undefined & active);
    carried(slot) = (carried(slot) & ~active) | (from_memory & active);
  };
  for (int32_t slot : use.writes) define(slot, result, result_carried);
  for (size_t e = 0; !use.keeps && e < use.moved.size(); ++e) {
    const int32_t slot = use.moved[e];
    if (slot == MaybeUndefined::kNotTracked) continue;
    const uint32_t undefined = LoadedUndefined(x, op, use, e, active);
    define(slot, undefined, undefined == 0 ? 0 : LanesIn(x, op, Space::kShared, undefined));
  }
}

void KeepUndefined(BlockState& x, const Op& op, const MaybeUndefined& use, uint32_t active) {
  for (size_t e = 0; e < use.moved.size(); ++e) {
    const int32_t slot = use.moved[e];
    const uint32_t undefined = slot == MaybeUndefined::kNotTracked
                                   ? 0
                                   : x.warp->undefined[static_cast<size_t>(slot)];
    ForLanes(active, [&](int l) {
      const BlockPlace place = PlaceOfElement(x, op, l, e);
      const bool is_undefined = (undefined >> l & 1) != 0;
      if (place.space == Space::kShared && !x.shadow.undefined_bytes.empty())
        std::memset(x.shadow.undefined_bytes.data() + place.at, is_undefined, op.width);
      if (place.space == Space::kLocal && use.keeps_local && is_undefined)
        std::memset(x.local.defined.data() + place.at, 0, op.width);
    });
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
