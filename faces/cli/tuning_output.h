// What a tuning run says: while it goes on, and as JSON at its end.
#pragma once

#include "faces/cli/cli.h"

namespace atunner::cli {

/// Progress: a line rewritten on a terminal, plain lines when piped.
class Progress {
 public:
  Progress(const Common& common, const ParameterSpace& space, const Budget& budget,
           Evidence evidence);
  void operator()(const TuneEvent& event);

 private:
  void Trial(const TuneEvent& event);
  void Line(const std::string& text);

  bool silent_;
  bool explain_;
  bool terminal_;
  bool open_line_ = false;
  const ParameterSpace& space_;
  Budget budget_;
  Evidence evidence_;
};

/// What the store keeps of a run, and `--json` prints.
Json Summary(const RunRecord& run, const TuneResult& result, const ParameterSpace& space,
             const DeviceProfile& profile);

}  // namespace atunner::cli
