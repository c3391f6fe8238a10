// Progress of a tuning session, as values that a listener may keep, queue or send elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "atunner/model/json/json.h"
#include "atunner/model/trial/trial.h"

namespace atunner {

struct TuneEvent {
  enum class Kind : uint8_t { kStarted, kBaseline, kTrial, kFinalists, kFinished };
  Kind kind = Kind::kTrial;
  std::optional<Trial> trial;        ///< set for kTrial: the trial that has just been judged
  std::optional<Baseline> baseline;  ///< set for kBaseline: a kernel to compare the winner with
  std::optional<double> best_ns;     ///< time of the best trial so far
  int64_t trials_done = 0;
  double seconds = 0;       ///< spent on the run, earlier sessions of it included
  uint64_t space_size = 0;  ///< number of valid configurations
  std::string text;         ///< one sentence for people, or ""
};

/// "started", "baseline", "trial", "finalists", "finished"
std::string_view Name(TuneEvent::Kind kind);

/// {"event": "trial", "trial": {…}, "best_ns": …, "trials_done": …, "seconds": …, …}; fields
/// without a value are left out.
Json ToJson(const TuneEvent& event);

}  // namespace atunner
