// A session without a search: the first proposal that is right.
#pragma once

#include "atunner/tune/proposals.h"
#include "atunner/tune/session_context.h"

namespace atunner {

class GuessPhase {
 public:
  /// The objects must outlive this one. The request's thoroughness is kFirstRight or kUnchecked.
  GuessPhase(const SessionContext& context, Proposals& proposals)
      : context_(context), proposals_(proposals) {}

  /// Tries proposals in order, up to the budget of trials, until one is right, and makes it the
  /// result's best. An earlier session's right one is taken again.
  Status Run();

 private:
  Status TakeEarlier();
  Status Try(Candidate candidate);
  Status Judge(const CandidateKernel& kernel, Trial& trial);
  void Accept(Compiled compiled, const Trial& trial);
  bool Ended();

  const SessionContext& context_;
  Proposals& proposals_;
  bool judges_ = false;  ///< the judge has begun
};

}  // namespace atunner
