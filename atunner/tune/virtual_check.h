// A second examination of the winner, on a virtual GPU of the same kind, at small sizes. It finds
// hazards that a real GPU does not report: data races without a visible effect, memory that is read
// before it is written, accesses out of bounds that hit other data. The plain kernel is examined in
// the background while the search goes on.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "atunner/base/clock.h"
#include "atunner/judge/judge.h"

namespace atunner {

class VirtualCheck {
 public:
  /// `judge` judges on a virtual GPU; null: no kernel is examined.
  VirtualCheck(Judge* judge, Clock& clock) : judge_(judge), clock_(clock) {}

  /// False if no kernel is examined because there is no judge.
  bool examines() const { return judge_ != nullptr; }

  /// Examines `plain`, the kernel to beat, in the background. When it has hazards too, they belong
  /// to the task, and no candidate is refused for them. If it reads what nothing has written (a
  /// flag that its program clears), candidates are refused for other hazards only. Nothing else may
  /// use the judge until `Examine` has returned or this object is destroyed.
  void Begin(const KernelSpec& spec, uint64_t seed, const std::optional<CandidateKernel>& plain);

  /// `verdict` is correct. Adds the checks that the kernel passed, or replaces it by the hazard
  /// that was found: an access out of bounds, a race, a read before a write, or barriers that not
  /// all threads reach. A candidate for a user's kernel is also refused for a wrong result there,
  /// because the virtual GPU also tries indices that would end a real one. When the virtual GPU
  /// cannot execute the kernel, or not in time, leaves the verdict and returns the reason; else
  /// "".
  std::string Examine(const CandidateKernel& candidate, Verdict& verdict);

 private:
  /// The reason why no kernel can be examined, or "".
  std::string Prepare(const KernelSpec& spec, const std::optional<CandidateKernel>& plain);
  std::string Decide(const CandidateKernel& candidate, Verdict& verdict);
  void AwaitPreparation();

  Judge* judge_;
  Clock& clock_;
  double spent_ = 0;  ///< s
  uint64_t seed_ = 0;
  bool small_ = false;  ///< the task can be executed at its own size
  bool plain_reads_unwritten_ = false;
  bool users_ = false;    ///< the oracle is a user's kernel
  std::string obstacle_;  ///< the reason why no kernel can be examined, or ""
  /// Computes obstacle_. The destructor waits for the thread.
  std::future<std::string> preparation_;
};

}  // namespace atunner
