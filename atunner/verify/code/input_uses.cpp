#include "atunner/verify/code/input_uses.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <vector>

#include "atunner/ptx/module.h"

namespace atunner {
namespace {

constexpr size_t kMostTensors = 64;
using Tensors = std::bitset<kMostTensors>;

/// What is known of a register: whose memory it may point to, and whose values it may hold.
struct Origin {
  Tensors points_to, holds;

  bool Add(const Origin& other) {
    const Origin before = *this;
    points_to |= other.points_to;
    holds |= other.holds;
    return points_to != before.points_to || holds != before.holds;
  }
};

bool IsIn(const std::string& opcode, std::initializer_list<std::string_view> opcodes) {
  return std::ranges::find(opcodes, opcode) != opcodes.end();
}

bool HasImmediate(const ptx::Instruction& instruction) {
  return std::ranges::any_of(instruction.operands, [](const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kImmediate;
  });
}

/// True if the result is within bounds that the code states.
bool IsBounding(const ptx::Instruction& instruction) {
  return IsIn(instruction.opcode, {"and", "rem", "min", "max", "bfe"}) && HasImmediate(instruction);
}

/// The tensors of a plan, numbered across launches.
class Numbering {
 public:
  explicit Numbering(const LaunchPlan& plan) {
    for (const LaunchStep& step : plan.steps) {
      for (const ArgBinding& arg : step.args) {
        Add(arg.name);
        for (const ParameterBytes::Pointer& pointer : arg.raw.pointers) Add(pointer.name);
      }
    }
    for (const SymbolCopy& copy : plan.symbols) Add(copy.tensor);
  }
  bool fits() const { return names_.size() <= kMostTensors; }
  Tensors Of(const std::string& name) const {
    Tensors tensors;
    const auto at = std::ranges::find(names_, name);
    if (!name.empty() && at != names_.end()) tensors.set(static_cast<size_t>(at - names_.begin()));
    return tensors;
  }
  std::set<std::string> NamesOf(const Tensors& tensors) const {
    std::set<std::string> found;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (tensors[i]) found.insert(names_[i]);
    }
    return found;
  }

 private:
  void Add(const std::string& name) {
    if (!name.empty() && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  std::vector<std::string> names_;
};

/// Memory: what was stored where, over all launches.
struct Memory {
  std::map<size_t, Tensors> of_tensor;  ///< values stored into the tensor of that number
  Tensors elsewhere;                    ///< shared and local memory, module variables
};

class KernelUses {
 public:
  KernelUses(const ptx::Function& function, const LaunchStep& step, const Numbering& numbering,
             const LaunchPlan& plan, Memory& memory)
      : function_(function), memory_(memory) {
    for (size_t i = 0; i < function.params.size() && i < step.args.size(); ++i) {
      Tensors& points_to = params_[function.params[i].name].points_to;
      points_to = numbering.Of(step.args[i].name);
      // Which pointer of a structure is used is not known.
      for (const ParameterBytes::Pointer& pointer : step.args[i].raw.pointers)
        points_to |= numbering.Of(pointer.name);
    }
    for (const SymbolCopy& copy : plan.symbols)
      params_[copy.symbol].points_to = numbering.Of(copy.tensor);
  }

  /// Follows all instructions until nothing new is found. Changes of memory are noted in `changed`.
  void Follow(bool& changed) {
    bool again = true;
    while (again) {
      again = false;
      for (const ptx::Instruction& instruction : function_.body)
        again |= Step(instruction, changed);
    }
    FindLoops();
    for (const ptx::Instruction& instruction : function_.body) AddGuard(instruction, decisions_);
  }

  const Tensors& addresses() const { return addresses_; }
  const Tensors& decisions() const { return decisions_; }
  const Tensors& loops() const { return loops_; }

 private:
  Origin OriginOf(const ptx::Operand& operand) const {
    Origin origin;
    if (const auto reg = registers_.find(operand.reg); operand.reg >= 0 && reg != registers_.end())
      origin.Add(reg->second);
    if (const auto param = params_.find(operand.name); param != params_.end())
      origin.Add(param->second);
    for (const ptx::Operand& element : operand.elements) origin.Add(OriginOf(element));
    return origin;
  }

  bool Assign(const ptx::Operand& to, const Origin& origin) {
    bool changed = to.reg >= 0 && registers_[to.reg].Add(origin);
    if (to.second) changed |= registers_[*to.second].Add(origin);
    for (const ptx::Operand& element : to.elements) changed |= Assign(element, origin);
    return changed;
  }

  /// What memory behind an address may hold.
  Tensors Loaded(const Origin& address) const {
    Tensors holds = address.points_to;
    for (const auto& [tensor, values] : memory_.of_tensor) {
      if (address.points_to[tensor]) holds |= values;
    }
    if (address.points_to.none()) holds |= memory_.elsewhere;
    return holds;
  }

  bool Stored(const Origin& address, const Tensors& values) {
    bool changed = false;
    const auto add = [&](Tensors& to) {
      const Tensors before = to;
      to |= values;
      changed |= to != before;
    };
    if (address.points_to.none()) add(memory_.elsewhere);
    for (size_t i = 0; i < kMostTensors; ++i) {
      if (address.points_to[i]) add(memory_.of_tensor[i]);
    }
    return changed;
  }

  bool Step(const ptx::Instruction& instruction, bool& changed) {
    const std::string& opcode = instruction.opcode;
    if (instruction.operands.empty() || IsIn(opcode, {"bra", "ret", "bar", "barrier", "exit"}))
      return false;
    const bool loads_param = opcode == "ld" && instruction.Has("param");
    Origin sources;
    bool memory_changed = false;
    const bool stores = IsIn(opcode, {"st", "red"});
    for (size_t i = stores ? 0 : 1; i < instruction.operands.size(); ++i) {
      const ptx::Operand& operand = instruction.operands[i];
      const Origin origin = OriginOf(operand);
      if (operand.kind != ptx::Operand::Kind::kAddress || loads_param) {
        sources.Add(origin);
        continue;
      }
      addresses_ |= origin.holds;
      sources.holds |= Loaded(origin);
      if (stores || opcode == "atom") {
        Tensors values;
        for (const ptx::Operand& value : instruction.operands) {
          if (value.kind != ptx::Operand::Kind::kAddress) values |= OriginOf(value).holds;
        }
        memory_changed |= Stored(origin, values);
      }
    }
    changed |= memory_changed;
    if (stores) return memory_changed;
    if (IsBounding(instruction)) sources.holds.reset();
    return Assign(instruction.operands[0], sources) || memory_changed;
  }

  /// Conditions of branches that go back, or that leave the range between a branch back and its
  /// target.
  void FindLoops() {
    const auto& body = function_.body;
    const auto target = [&](size_t i) -> std::optional<size_t> {
      if (body[i].opcode != "bra" || body[i].operands.empty()) return std::nullopt;
      const auto label = function_.labels.find(body[i].operands[0].name);
      return label == function_.labels.end() ? std::nullopt : std::optional<size_t>(label->second);
    };
    for (size_t back = 0; back < body.size(); ++back) {
      const auto top = target(back);
      if (!top || *top > back) continue;
      AddGuard(body[back], loops_);
      for (size_t i = *top; i < back; ++i) {
        const auto to = target(i);
        if (!to || (*to >= *top && *to <= back)) continue;
        AddGuard(body[i], loops_);
        if (i > 0 && body[i].guard < 0) AddGuard(body[i - 1], loops_);
      }
      if (back > 0 && body[back].guard < 0) AddGuard(body[back - 1], loops_);
    }
  }

  void AddGuard(const ptx::Instruction& instruction, Tensors& to) {
    if (instruction.guard >= 0) to |= registers_[instruction.guard].holds;
  }

  const ptx::Function& function_;
  Memory& memory_;
  std::map<std::string, Origin> params_;
  std::map<int, Origin> registers_;
  Tensors addresses_, loops_, decisions_;
};

bool Calls(const ptx::Function& function) {
  return std::ranges::any_of(function.body, [](const ptx::Instruction& instruction) {
    return instruction.opcode == "call";
  });
}

}  // namespace

InputUses FindInputUses(const CompiledModule& compiled, const LaunchPlan& plan) {
  const auto module = ptx::Parse(compiled.ptx);
  const Numbering numbering(plan);
  if (!module || !numbering.fits()) return {};
  Memory memory;
  std::vector<KernelUses> kernels;
  for (const LaunchStep& step : plan.steps) {
    const KernelResources* kernel = compiled.Find(step.entry);
    const bool renamed = kernel != nullptr && !kernel->mangled.empty();
    const ptx::Function* function = module->Find(renamed ? kernel->mangled : step.entry);
    if (function == nullptr || Calls(*function)) return {};
    kernels.emplace_back(*function, step, numbering, plan, memory);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (KernelUses& kernel : kernels) kernel.Follow(changed);
  }
  InputUses uses{.known = true};
  for (const KernelUses& kernel : kernels) {
    uses.addresses.merge(numbering.NamesOf(kernel.addresses()));
    uses.loops.merge(numbering.NamesOf(kernel.loops()));
    uses.decisions.merge(numbering.NamesOf(kernel.decisions()));
  }
  return uses;
}

}  // namespace atunner
