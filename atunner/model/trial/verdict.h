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

struct Verdict {
  VerdictKind kind = VerdictKind::kCorrect;
  std::string reason;               ///< one sentence; empty when correct
  std::vector<CheckRecord> checks;  ///< in the order made
  /// True when only some blocks of the full size were executed (virtual GPU)
  bool sampled = false;

  bool correct() const { return kind == VerdictKind::kCorrect; }
  /// True when the time of the candidate counts: no check failed. For kUnchecked that time is a
  /// prediction, never a measurement.
  bool stands() const { return correct() || kind == VerdictKind::kUnchecked; }
  /// The largest relative error of all checks.
  double WorstError() const;
};

}  // namespace atunner
