// Which registers of a function have a shadow: those that a float value can reach and from which a
// float value, or memory, can be reached. All others hold the same value in both computations.
//
// A register declared as a float has one twin. Any other holds bits, and its shadow is a register
// of the shadow's own bits with up to one twin for each 16-bit lane: lane 0 of a float32 or of the
// first half, lane 1 of the second half.
#pragma once

#include <vector>

#include "atunner/ptx/statements.h"
#include "atunner/shadow/forms.h"

namespace atunner::shadow {

using ptx::TextFunction;

/// How a register is shadowed, by its declared type.
enum class RegisterClass : uint8_t { kNone, kFloat, kRaw };
RegisterClass ClassOf(Type type);
constexpr int kLanes = 4;

class Flow {
 public:
  /// `halves`: some function of the module has 16-bit floats, so that words may hold two.
  Flow(const TextFunction& function, bool halves);

  /// True if lane `lane` of a register has a twin; of registers declared as floats, lane 0.
  bool HasTwin(int reg, int lane = 0) const { return exists_[Node(reg, lane)]; }
  /// True if the register has shadow bits (never for registers declared as floats).
  bool HasBits(int reg) const { return exists_[Node(reg, kLanes)]; }
  bool HasShadow(int reg) const { return HasBits(reg) || HasTwin(reg); }
  /// Instructions (indices in the body) whose results would need a twin and have none.
  const std::vector<size_t>& lossy() const { return lossy_; }

 private:
  using NodeIndex = size_t;
  static NodeIndex Node(int reg, int lane) {
    return static_cast<NodeIndex>(reg) * (kLanes + 1) + static_cast<NodeIndex>(lane);
  }
  RegisterClass Class(int reg) const;
  int LanesOf(int reg) const;
  bool Stands(int reg) const { return reg >= 0 && Class(reg) != RegisterClass::kNone; }

  bool IsPassed(const TextInstruction& instruction) const;
  void Read(const TextInstruction& instruction);
  void ReadFloat(const TextInstruction& instruction);
  void ReadMove(const TextInstruction& instruction);
  void ReadDuplicate(const TextInstruction& instruction);
  void ReadAccess(const TextInstruction& instruction, Kind kind);
  void ReadMma(const TextInstruction& instruction);
  /// The value of lanes [to_lane…) of `to` comes from lanes of `from`.
  void Copy(int to, int to_lane, const TextOperand& from, int from_lane, int lanes);
  /// `source` is used as a float whose first lane is `lane`, for the result `to`.
  void Use(int to, const TextOperand& source);
  void Seed(int reg);
  void Sink(const TextOperand& operand);
  void Edge(NodeIndex to, NodeIndex from) { edges_.push_back({to, from}); }
  std::vector<bool> Reachable(std::vector<NodeIndex> from, bool forward) const;
  void Solve();

  struct Pair {
    NodeIndex to, from;
  };
  const TextFunction& function_;
  bool halves_;
  std::vector<Pair> edges_;
  std::vector<NodeIndex> seeds_, sinks_;
  std::vector<bool> exists_;
  std::vector<size_t> lossy_;
};

}  // namespace atunner::shadow
