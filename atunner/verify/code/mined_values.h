// Constants of a kernel's code as inputs: what it compares with, clips at, switches on, masks with
// or looks up. A kernel that is right but for x > 300, or for the ten values of its table, is wrong
// on inputs that random drawings hardly reach; its PTX names them.
//
//     setp.gt.f32 %p1, %f1, 0f43960000;   →  300, and the numbers just below and above it
//
// Besides immediates these are: constants that reach an instruction through mov or cvt,
// initialisers of tables, scalar arguments, and what a threshold becomes before a multiplication or
// addition with another constant (x * 0.5 > 300 → 600).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// Numbers that a kernel's code names, to be used as inputs. Sorted; no NaN.
struct MinedValues {
  std::vector<double> floats;
  std::vector<int64_t> integers;

  bool empty() const { return floats.empty() && integers.empty(); }
  auto operator<=>(const MinedValues&) const = default;
};

/// The constants of all kernels in a PTX text, at most some dozens of either kind, the compared
/// ones first. Empty for a text that cannot be parsed.
MinedValues MineValues(const std::string& ptx);

/// Adds the scalar arguments of the plan's launches at one problem size.
void MineScalars(const LaunchPlan& plan, const KernelSpec& spec, const Dims& dims,
                 MinedValues& values);

/// What is in `values` and not in `known`.
MinedValues Without(const MinedValues& values, const MinedValues& known);

/// Without the floats if no input is a float, and without the integers if none is an integer: sets
/// that give equal inputs are equal then.
MinedValues UsableOf(const MinedValues& values, const KernelSpec& spec);

/// Constants of all candidates so far. Inputs that hold those of earlier candidates too serve many
/// candidates, so that few references are needed: the configurations of one template differ in a
/// few constants.
class MinedPool {
 public:
  /// A set that contains `values`: the earlier one, extended by what it lacks, or `values` alone if
  /// that would be too many, so that every value occurs in small inputs.
  MinedValues Extended(const MinedValues& values);
  /// Called when nothing could be compared on a set. Values are dropped, and after some such sets
  /// no more are joined.
  void Spoilt();

 private:
  MinedValues joined_;
  int spoilt_ = 0;
};

/// Floats between 1e-6 and 1e6 in magnitude, and all integers: these can be mixed into
/// ordinary inputs of a sum.
MinedValues ModerateOf(const MinedValues& values);
/// The other finite floats.
MinedValues ExtremeOf(const MinedValues& values);

/// The values that fit the type and lie in [low, last], each with the numbers of the type beside
/// it, as bits of the type. Ascending by bits, each once.
std::vector<uint64_t> MinedBits(const MinedValues& values, DType dtype, double low, double last);

}  // namespace atunner
