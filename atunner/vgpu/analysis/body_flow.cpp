#include "atunner/vgpu/analysis/body_flow.h"

#include <algorithm>
#include <map>
#include <set>

namespace atunner::vgpu {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Operand;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

/// True if the first operand is a source although it looks like a destination.
bool WritesNothing(const Instruction& i) {
  return IsOneOf(i.opcode, {"bra", "brx", "bar", "barrier", "nanosleep", "call", "setmaxnreg",
                            "stackrestore", "exit", "ret", "trap", "pmevent"}) &&
         !i.Has("red");
}

bool EndsBlock(const Instruction& i) {
  return IsOneOf(i.opcode, {"bra", "brx", "exit", "ret", "trap"});
}

void Collect(const Operand& operand, std::vector<int>& registers) {
  if (operand.reg >= 0) registers.push_back(operand.reg);
  for (const Operand& element : operand.elements) Collect(element, registers);
}

}  // namespace

Use UseOf(const Instruction& i) {
  Use use;
  for (size_t at = 0; at < i.operands.size(); ++at) {
    const Operand& operand = i.operands[at];
    const bool destination = at == 0 && !WritesNothing(i) &&
                             operand.kind != Operand::Kind::kAddress;
    if (operand.second) use.writes.push_back(*operand.second);
    if (destination)
      Collect(operand, use.writes);
    else
      Collect(operand, operand.kind == Operand::Kind::kAddress ? use.addresses : use.values);
  }
  return use;
}

std::vector<Use> UsesOf(const Function& function) {
  std::vector<Use> uses;
  for (const Instruction& instruction : function.body) uses.push_back(UseOf(instruction));
  return uses;
}

std::vector<BasicBlock> BlocksOf(const Function& function) {
  const auto& body = function.body;
  std::set<size_t> starts = {0};
  for (const auto& [name, index] : function.labels) starts.insert(index);
  for (size_t i = 0; i < body.size(); ++i) {
    if (EndsBlock(body[i])) starts.insert(i + 1);
  }
  std::vector<BasicBlock> blocks;
  std::map<size_t, size_t> block_at;
  for (auto at = starts.begin(); at != starts.end() && *at < body.size(); ++at) {
    const auto following = std::next(at);
    block_at[*at] = blocks.size();
    blocks.push_back(
        {*at, following == starts.end() ? body.size() : std::min(*following, body.size()), {}});
  }
  for (BasicBlock& block : blocks) {
    const Instruction& last = body[block.end - 1];
    const auto go = [&](size_t index) {
      if (const auto at = block_at.find(index); at != block_at.end())
        block.next.push_back(at->second);
    };
    const auto label = [&](const std::string& name) {
      if (const auto at = function.labels.find(name); at != function.labels.end()) go(at->second);
    };
    if (last.opcode == "bra") label(last.operands.empty() ? "" : last.operands[0].name);
    if (last.opcode == "brx" && last.operands.size() == 2) {
      if (const auto at = function.branch_targets.find(last.operands[1].name);
          at != function.branch_targets.end())
        for (const std::string& name : at->second) label(name);
    }
    if (!EndsBlock(last) || last.guard >= 0) go(block.end);
  }
  return blocks;
}

}  // namespace atunner::vgpu
