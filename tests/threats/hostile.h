// Cheating candidates, at least one per row of the threat table in docs/verification.md, each with
// the verdicts that count as detection.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/trial/verdict.h"

namespace atunner {

struct Hostile {
  const char* id;    ///< row of the table
  const char* what;  ///< what it does
  /// A kernel `k(const float* x, float* y, long long rows, int cols)`: row softmax, one block of
  /// 128 per row
  const char* body;
  std::vector<VerdictKind> caught_virtual;  ///< on the virtual GPU
  std::vector<VerdictKind> caught_real;     ///< on a real one
  bool double_shared = false;               ///< asks for more shared memory than any GPU has
};

/// The correct kernel that the hostile ones imitate.
std::string HonestSoftmax();
/// T1: the correct kernel with a request to keep its input in L2.
std::string PinningSoftmax();
std::vector<Hostile> HostileCandidates();

}  // namespace atunner
