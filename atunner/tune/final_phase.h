// The choice of the winner: the best trials are verified again with inputs that the search did not
// use, and measured at length.
#pragma once

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
  void CheckVirtually(Finalist& finalist);
  void Report(std::string text) const;

  const SessionContext& context_;
  VirtualCheck& virtual_check_;
};

}  // namespace atunner
