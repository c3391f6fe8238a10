#include "atunner/jobs/runs/finished_run.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/jobs/runs/artifact_writer.h"
#include "atunner/jobs/runs/run_summary.h"

namespace atunner::jobs {

Result<Path> ArtifactFolder(const Path& wanted, const RunRecord& run, const Services& services) {
  const Path out = wanted.empty() ? services.runs / run.id : wanted;
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(out));
  ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(out));
  return out;
}

Result<RunResult> FinishRun(const Path& out, const RunRecord& run, const TuneResult& result,
                            const ScheduleTemplate& schedule, const DeviceProfile& profile,
                            Json summary, const EventSink& events) {
  ATUNNER_RETURN_IF_ERROR(WriteArtifact(out, run, result, schedule, profile));
  RunResult finished;
  finished.report = MakeReport(run, result, schedule.spec(), schedule.space(), profile);
  finished.page = out / "report.html";
  finished.summary = std::move(summary);
  if (result.winner) {
    finished.artifact = out;
    finished.summary["artifact"] = out.string();
  }
  finished.summary["report"] = finished.page.string();
  events(RunFinishedEvent{finished});
  return finished;
}

}  // namespace atunner::jobs
