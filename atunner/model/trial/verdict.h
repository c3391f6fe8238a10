// The judge's verdict on a candidate. A bad kernel is data, not an error.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/value/value.h"

namespace atunner {

enum class VerdictKind {
#define ATUNNER_VERDICT(id, name) id,
#include "atunner/model/trial/verdict.def"
#undef ATUNNER_VERDICT
};

/// "wrong-result"
std::string_view Name(VerdictKind kind);

/// One check that was made, passed or not: the evidence.
struct CheckRecord {
  std::string check;   ///< "oracle", "guard zones", "repeat", "fresh module", …
  std::string family;  ///< input family, or ""
  Dims dims;           ///< the shape it was made at
  bool passed = false;
  double error = 0;    ///< relative error found (oracle checks): ‖y-r‖ / ‖r‖
  double bound = 0;    ///< what was allowed
  double honest = 0;   ///< the same figure of the reference-precision baseline
  std::string detail;  ///< one sentence
};

/// What of the task at its own size was executed and compared, as shares of 0 to 1. On a real GPU
/// everything is.
struct Coverage {
  double executed = 1;  ///< of the blocks of the candidate's launches
  double compared = 1;  ///< of the outputs' elements, with those of the oracle

  bool whole() const { return executed >= 1 && compared >= 1; }
};

struct Verdict {
  VerdictKind kind = VerdictKind::kCorrect;
  std::string reason;               ///< one sentence; empty when all is right
  std::vector<CheckRecord> checks;  ///< in the order made
  Coverage coverage;

  bool correct() const { return kind == VerdictKind::kCorrect; }
  /// True if it is right as far as it was executed, and something was compared.
  bool passed() const { return correct() || kind == VerdictKind::kSampled; }
  /// True when the time of the candidate counts: no check failed. For kUnchecked and kSampled that
  /// time is a prediction, never a measurement.
  bool stands() const { return passed() || kind == VerdictKind::kUnchecked; }
  /// The largest relative error of all checks.
  double WorstError() const;
};

}  // namespace atunner
