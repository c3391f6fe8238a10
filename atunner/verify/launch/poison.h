// Poison: random contents of outputs and workspaces before a launch.
//
// A result is a function of the inputs alone. So a kernel runs twice on equal inputs, over one
// poison and over the flipped one, and its outputs must be equal. What it reads of its output's
// old contents, or of a workspace that nobody wrote, differs between the two runs.
//
// Poison has no pattern that a kernel could recognise, and no operation absorbs it: half of the
// floats are large numbers of either sign (kernels/judge/judge.cu has the distribution). Flipped
// poison differs in every element: an element that holds the poison in both runs is unwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "atunner/model/value/dtype.h"

namespace atunner {

struct Poison {
  uint64_t key = 1;
  bool flipped = false;

  /// A poison whose key comes from the system's entropy, so that no candidate can know it.
  static Poison Fresh();
  Poison Flipped() const { return {key, !flipped}; }
  /// The poison of one tensor, by its position among the task's arguments.
  Poison Of(uint64_t position) const;
};

/// What FillPoison of the judge's kernels writes: the elements from number `first` on that fit into
/// `memory`.
void WritePoison(const Poison& poison, DType dtype, uint64_t first, std::span<std::byte> memory);

/// Random bits that no candidate can know: of keys, of orders of blocks, of seeds of inputs.
uint64_t SecretBits();

}  // namespace atunner
