// What the iterations of a loop compute together, so that several threads can share them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/rewrites/source/loop_uses.h"

namespace atunner::rewrites {

/// A variable that a loop computes and that is used behind it.
struct Joint {
  enum class Kind : uint8_t { kSum, kExtreme, kPlace };
  Kind kind = Kind::kSum;
  std::string name;
  std::string function;  ///< kExtreme: "fmaxf"
  std::string place;     ///< kPlace: the variable that holds where the extreme is; or ""
  bool largest = true;   ///< kPlace
  /// kSum: it does not begin at 0, so that all threads but one must begin there.
  bool starts_elsewhere = false;
};

/// The variables that the iterations compute together and that are used behind the loop, which is
/// statement `number` of those around it. An error says why its iterations cannot be shared.
Result<std::vector<Joint>> JointsOf(const Subject& subject, const std::vector<Statement>& around,
                                    size_t number, const CountedLoop& loop);

}  // namespace atunner::rewrites
