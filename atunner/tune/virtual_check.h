// What a GPU that runs a kernel does not tell: races that went well, memory read before it was
// written, accesses that happened to hit something. Whoever is to win is executed once more, at
// small sizes, on a virtual GPU of the same kind. The kernel to beat is examined while the search
// goes on.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "atunner/base/clock.h"
#include "atunner/judge/judge.h"

namespace atunner {

class VirtualCheck {
 public:
  /// `judge` judges on a virtual GPU; null: nobody is examined.
  VirtualCheck(Judge* judge, Clock& clock) : judge_(judge), clock_(clock) {}

  /// `plain`, the kernel to beat, is examined first: where that has hazards as well, they are the
  /// task's and nobody is refused. Returns at once; the judge is nobody else's until `Examine`
  /// returned or this is gone.
  void Begin(const KernelSpec& spec, uint64_t seed, const std::optional<CandidateKernel>& plain);

  /// Adds the checks that a kernel passed to `verdict`, which is correct, or turns it into the
  /// hazard that was found: an access out of bounds, a race, or something read before it was
  /// written. Nothing else is decided here, least of all by a kernel that the virtual GPU cannot
  /// execute or not in time: then returns why not, else "".
  std::string Examine(const CandidateKernel& candidate, Verdict& verdict);

 private:
  /// Why nobody is examined, or "".
  std::string Prepare(const KernelSpec& spec, const std::optional<CandidateKernel>& plain);
  std::string Decide(const CandidateKernel& candidate, Verdict& verdict);
  void AwaitPreparation();

  Judge* judge_;
  Clock& clock_;
  double spent_ = 0;  ///< s
  uint64_t seed_ = 0;
  std::string obstacle_;  ///< why nobody is examined
  /// Of which obstacle_ comes; its end waits for the thread
  std::future<std::string> preparation_;
};

}  // namespace atunner
