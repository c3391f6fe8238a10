#include "atunner/shadow/flow.h"

#include <algorithm>

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

/// True for the address spaces that have cells.
bool HasCells(const TextInstruction& instruction) {
  return !instruction.Has("param") && !instruction.Has("const");
}

}  // namespace

RegisterClass ClassOf(Type type) {
  if (type == Type::kF64 || (IsNarrowFloat(type) && type != Type::kTF32))
    return RegisterClass::kFloat;
  const int bits = ptx::BitsOf(type);
  return bits == 16 || bits == 32 || bits == 64 ? RegisterClass::kRaw : RegisterClass::kNone;
}

Flow::Flow(const TextFunction& function, bool halves) : function_(function), halves_(halves) {
  for (const TextInstruction& instruction : function.body) Read(instruction);
  Solve();
}

RegisterClass Flow::Class(int reg) const {
  return ClassOf(function_.registers[static_cast<size_t>(reg)].type);
}

int Flow::LanesOf(int reg) const {
  return Class(reg) == RegisterClass::kFloat
             ? 1
             : ptx::BitsOf(function_.registers[static_cast<size_t>(reg)].type) / 16;
}

void Flow::Read(const TextInstruction& instruction) {
  switch (const Kind kind = KindOf(instruction)) {
    case Kind::kFloat:
      return ReadFloat(instruction);
    case Kind::kMove:
    case Kind::kSelect:
    case Kind::kShuffle:
      return ReadMove(instruction);
    case Kind::kDuplicate:
    case Kind::kLossy:
      return ReadDuplicate(instruction);
    case Kind::kLoad:
    case Kind::kStore:
    case Kind::kAtomic:
    case Kind::kLdMatrix:
    case Kind::kFragmentLoad:
    case Kind::kFragmentStore:
      return ReadAccess(instruction, kind);
    case Kind::kMma:
    case Kind::kFragmentProduct:
      return ReadMma(instruction);
    default:
      return;
  }
}

void Flow::ReadFloat(const TextInstruction& instruction) {
  const std::vector<int> results = Results(instruction);
  if (results.size() != 1 || !Stands(results[0])) return;
  Seed(results[0]);
  for (size_t i = 1; i < instruction.operands.size(); ++i) Use(results[0], instruction.operands[i]);
}

void Flow::ReadMove(const TextInstruction& instruction) {
  if (instruction.operands.size() < 2) return;
  const size_t sources = instruction.opcode == "selp" ? 2 : 1;
  for (size_t i = 1; i <= sources && i < instruction.operands.size(); ++i) {
    const TextOperand& from = instruction.operands[i];
    const TextOperand& to = instruction.operands[0];
    int to_lane = 0, from_lane = 0;
    if (to.kind == OperandKind::kVector) {
      for (const TextOperand& part : to.elements) {
        const int lanes = ptx::BitsOf(LastType(instruction)) / 16 /
                          static_cast<int>(to.elements.size());
        Copy(part.reg, 0, from, from_lane, lanes);
        from_lane += lanes;
      }
    } else if (from.kind == OperandKind::kVector) {
      for (const TextOperand& part : from.elements) {
        const int lanes = ptx::BitsOf(LastType(instruction)) / 16 /
                          static_cast<int>(from.elements.size());
        Copy(to.reg, to_lane, part, 0, lanes);
        to_lane += lanes;
      }
    } else {
      Copy(to.reg, 0, from, 0, kLanes);
    }
  }
}

void Flow::ReadDuplicate(const TextInstruction& instruction) {
  const std::vector<int> results = Results(instruction);
  if (results.size() != 1 || !Stands(results[0])) return;
  for (size_t i = 1; i < instruction.operands.size(); ++i) Use(results[0], instruction.operands[i]);
  if (Class(results[0]) == RegisterClass::kFloat) return;
  for (const LaneMove& move : LaneMoves(instruction)) {
    for (const int operand : {move.operand, move.other}) {
      if (operand < 1 || static_cast<size_t>(operand) >= instruction.operands.size()) continue;
      const TextOperand& from = instruction.operands[static_cast<size_t>(operand)];
      if (from.kind == OperandKind::kRegister && Stands(from.reg) &&
          move.from < LanesOf(from.reg) && move.to < LanesOf(results[0]))
        Edge(Node(results[0], move.to),
             Node(from.reg, operand == move.other ? move.to : move.from));
    }
  }
}

/// True for a load of a function's argument or result. Those of kernels are exact.
bool Flow::IsPassed(const TextInstruction& instruction) const {
  if (instruction.opcode != "ld" || !instruction.Has("param") || instruction.operands.size() < 2)
    return false;
  return !function_.is_entry ||
         std::ranges::find(function_.parameters, instruction.operands[1].base) ==
             function_.parameters.end();
}

void Flow::ReadAccess(const TextInstruction& instruction, Kind kind) {
  if (IsPassed(instruction)) {
    for (const int reg : Results(instruction)) {
      if (Stands(reg)) Seed(reg);
    }
  }
  if (!HasCells(instruction) || ptx::BitsOf(LastType(instruction)) < 16) return;
  if (kind != Kind::kStore && kind != Kind::kFragmentStore) {
    for (const int reg : Results(instruction)) {
      if (Stands(reg)) Seed(reg);
    }
  }
  if (kind == Kind::kLoad || kind == Kind::kLdMatrix || kind == Kind::kFragmentLoad) return;
  for (const TextOperand& operand : instruction.operands) {
    if (&operand != &instruction.operands[0] && operand.kind != OperandKind::kAddress)
      Sink(operand);
  }
}

void Flow::ReadMma(const TextInstruction& instruction) {
  for (const TextOperand& result : instruction.operands[0].elements) {
    if (!Stands(result.reg)) continue;
    Seed(result.reg);
    for (size_t i = 1; i < instruction.operands.size(); ++i) {
      for (const TextOperand& element : instruction.operands[i].elements) Use(result.reg, element);
    }
  }
}

void Flow::Copy(int to, int to_lane, const TextOperand& from, int from_lane, int lanes) {
  if (to < 0 || !Stands(to) || from.kind != OperandKind::kRegister || !Stands(from.reg)) return;
  Use(to, from);
  const bool raw = Class(to) == RegisterClass::kRaw && Class(from.reg) == RegisterClass::kRaw;
  for (int lane = 0; lane < lanes && raw; ++lane) {
    if (to_lane + lane < LanesOf(to) && from_lane + lane < LanesOf(from.reg))
      Edge(Node(to, to_lane + lane), Node(from.reg, from_lane + lane));
  }
  if (Class(from.reg) == RegisterClass::kFloat && Class(to) == RegisterClass::kRaw &&
      to_lane < LanesOf(to))
    Edge(Node(to, to_lane), Node(from.reg, 0));
}

/// The shadow of the result depends on the bits and on all twins of the source.
void Flow::Use(int to, const TextOperand& source) {
  if (source.kind == OperandKind::kVector) {
    for (const TextOperand& element : source.elements) Use(to, element);
  }
  if (source.kind != OperandKind::kRegister || !Stands(source.reg)) return;
  const bool raw_source = Class(source.reg) == RegisterClass::kRaw;
  const bool raw_result = Class(to) == RegisterClass::kRaw;
  const NodeIndex result = Node(to, raw_result ? kLanes : 0);
  if (raw_source) Edge(result, Node(source.reg, kLanes));
  for (int lane = 0; lane < LanesOf(source.reg); ++lane) {
    if (lane % 2 == 0 || halves_) Edge(result, Node(source.reg, lane));
  }
}

void Flow::Seed(int reg) {
  if (Class(reg) == RegisterClass::kRaw) seeds_.push_back(Node(reg, kLanes));
  for (int lane = 0; lane < LanesOf(reg); ++lane) {
    if (lane % 2 == 0 || halves_) seeds_.push_back(Node(reg, lane));
  }
}

void Flow::Sink(const TextOperand& operand) {
  for (const TextOperand& element : operand.elements) Sink(element);
  if (operand.kind != OperandKind::kRegister || !Stands(operand.reg)) return;
  if (Class(operand.reg) == RegisterClass::kRaw) sinks_.push_back(Node(operand.reg, kLanes));
  for (int lane = 0; lane < LanesOf(operand.reg); ++lane) sinks_.push_back(Node(operand.reg, lane));
}

std::vector<bool> Flow::Reachable(std::vector<NodeIndex> from, bool forward) const {
  const size_t nodes = function_.registers.size() * (kLanes + 1);
  std::vector<size_t> first(nodes + 1, 0), next(edges_.size());
  for (const Pair& edge : edges_) ++first[(forward ? edge.from : edge.to) + 1];
  for (size_t i = 0; i < nodes; ++i) first[i + 1] += first[i];
  std::vector<size_t> at(first.begin(), first.end() - 1);
  for (const Pair& edge : edges_)
    next[at[forward ? edge.from : edge.to]++] = forward ? edge.to : edge.from;
  std::vector<bool> reached(nodes, false);
  while (!from.empty()) {
    const NodeIndex node = from.back();
    from.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    for (size_t i = first[node]; i < first[node + 1]; ++i) from.push_back(next[i]);
  }
  return reached;
}

void Flow::Solve() {
  const std::vector<bool> carries = Reachable(seeds_, true), needed = Reachable(sinks_, false);
  exists_.resize(carries.size());
  for (size_t node = 0; node < exists_.size(); ++node)
    exists_[node] = carries[node] && needed[node];
  for (size_t reg = 0; reg < function_.registers.size(); ++reg) {
    const int index = static_cast<int>(reg);
    if (Class(index) != RegisterClass::kRaw) continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (exists_[Node(index, lane)]) exists_[Node(index, kLanes)] = true;
    }
  }
  for (size_t i = 0; i < function_.body.size(); ++i) {
    if (KindOf(function_.body[i]) != Kind::kLossy && !IsPassed(function_.body[i])) continue;
    if (std::ranges::any_of(Results(function_.body[i]),
                            [&](int reg) { return Stands(reg) && HasShadow(reg); }))
      lossy_.push_back(i);
  }
}

}  // namespace atunner::shadow
