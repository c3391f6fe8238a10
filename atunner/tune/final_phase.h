// The choice of the winner: the best trials are verified again with inputs that the search did not
// use, and measured at length.
//
// A trial that is refused here is refused in the run's record, too. All trials of a user's kernel
// that a real GPU found correct are also executed on the virtual one, the winner first. If one is
// not, its record says why.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/tune/session_context.h"
#include "atunner/tune/virtual_check.h"

namespace atunner {

class FinalPhase {
 public:
  /// Both must outlive the object.
  FinalPhase(const SessionContext& context, VirtualCheck& virtual_check)
      : context_(context), virtual_check_(virtual_check) {}

  /// Sets the result's `best`, `winner` and `winner_source`; they stay empty when no trial passes.
  Status Run();

 private:
  /// A trial with its new result.
  struct Finalist {
    Trial trial;
    RenderedKernel source;
    CandidateKernel kernel;
  };

  std::vector<const Trial*> Ranking() const;
  size_t CountOf(const std::vector<const Trial*>& ranking) const;
  Result<std::optional<Finalist>> Examine(const Trial& trial);
  bool Accept(Finalist finalist);
  /// Executes the kernel on the virtual GPU. The verdict gets the checks, or the reason why there
  /// are none.
  void CheckVirtually(int64_t number, const CandidateKernel& kernel, Verdict& verdict);
  /// The same for the trials of a user's kernel that are not examined yet.
  void CheckOthersVirtually(const std::vector<const Trial*>& ranking);
  /// Replaces the verdict of a trial, and of those that have its result.
  void Record(int64_t number, const Verdict& verdict);
  void Report(std::string text) const;

  const SessionContext& context_;
  VirtualCheck& virtual_check_;
  std::set<int64_t> examined_;  ///< numbers of the trials that CheckVirtually was called with
};

}  // namespace atunner
