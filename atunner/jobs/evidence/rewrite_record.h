// What a rewriting run tried, and what it changed in the user's file: rewrite.json in the
// artifact's folder, beside rewrite.diff and rewritten.cu.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/evidence/rewrite_source.h"
#include "atunner/jobs/requests/results.h"

namespace atunner::jobs {

inline constexpr const char* kRewriteRecord = "rewrite.json";
inline constexpr const char* kRewriteDiff = "rewrite.diff";
inline constexpr const char* kRewrittenFile = "rewritten.cu";

/// One idea, tried or not.
struct IdeaRecord {
  int round = 0;
  std::string rewrite, detail, reason, removes;
  std::optional<double> expected_gain;
  std::string status;  ///< "kept", "faster, not kept", "not faster", "refused", "does not apply"
  std::optional<double> time_ns;
  std::optional<double> gain;  ///< time of the round's kernel over this one's
  std::string note;            ///< why it was refused or does not apply
};

struct CounterChange {
  std::string name, unit;
  double before = 0, after = 0;
};

/// One idea that is in the result.
struct RewriteStep {
  std::string rewrite, detail, reason;
  std::string bottleneck_before, bottleneck_after;
  double before_ns = 0, after_ns = 0;
  std::string diff;  ///< unified, of the device code
  std::vector<CounterChange> counters;
};

struct RewriteRecord {
  std::string kernel, device, file;
  std::string times = "predicted";   ///< or "measured"
  std::string counters = "counted";  ///< by the virtual GPU
  double own_ns = 0, best_ns = 0;
  std::string stop_reason;
  std::vector<IdeaRecord> ideas;
  std::vector<RewriteStep> steps;
  std::string diff;  ///< of the user's file; "" if no rewrite gained anything
  /// Why the diff is of the device code alone, and that it is not the winner where that is the
  /// kernel of an operator; "" otherwise
  std::string note;
};

/// The record of a finished run. `file_text`: the user's file; "" if it is not known.
RewriteRecord MakeRecord(const RunResult& run, const RewriteSource& source,
                         const RewriteSource::Profiler& profiler, const std::string& file,
                         const std::string& file_text, std::string& rewritten);

/// Writes rewrite.json, rewrite.diff and rewritten.cu.
Status WriteRecord(const Path& folder, const RewriteRecord& record, const std::string& rewritten);
/// kNotFound where the folder is no artifact of a rewriting run.
Result<RewriteRecord> ReadRecord(const Path& folder);

Json ToJson(const RewriteRecord& record);

}  // namespace atunner::jobs
