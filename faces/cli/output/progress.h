// Progress of jobs, as lines on standard error.
#pragma once

#include <string>

#include "atunner/jobs/requests/events.h"

namespace atunner::cli {

/// Progress of a tuning run: a line rewritten on a terminal, plain lines when piped.
class Progress {
 public:
  struct Options {
    bool silent = false;   ///< print nothing
    bool explain = false;  ///< print every trial with its configuration
  };
  explicit Progress(Options options);
  void operator()(const jobs::Event& event);

 private:
  void Started(const jobs::RunStartedEvent& event);
  void Compared(const jobs::BaselineEvent& event);
  void Tried(const jobs::TrialEvent& event);
  void Explain(const jobs::TrialEvent& event, const std::string& outcome);
  /// "12/60 trials", or "12 trials, 48 s left".
  std::string Done(const jobs::TrialEvent& event) const;
  void Line(const std::string& text);

  Options options_;
  bool terminal_;
  bool open_line_ = false;  ///< the last line on the terminal may be rewritten
  Budget budget_;
  Evidence evidence_ = Evidence::kPredicted;
};

}  // namespace atunner::cli
