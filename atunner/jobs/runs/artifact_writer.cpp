#include "atunner/jobs/runs/artifact_writer.h"

#include "atunner/base/clock.h"
#include "atunner/jobs/runs/run_summary.h"

namespace atunner::jobs {

Artifact MakeArtifact(const RunRecord& run, const TuneResult& result,
                      const ScheduleTemplate& schedule, const DeviceProfile& profile) {
  Artifact artifact;
  artifact.spec = schedule.spec();
  artifact.name = artifact.spec.name;
  artifact.plan = result.winner->plan;
  // A whole kernel, which no template vouches for, is valid at the task's own size alone.
  if (const Configuration* configuration = result.best->candidate.configuration()) {
    artifact.valid_sizes = schedule.FreeSizes(*configuration);
    const std::vector<std::string> names = schedule.space().Names();
    for (size_t i = 0; i < names.size(); ++i)
      artifact.configuration.emplace_back(names[i], configuration->values[i]);
  }
  artifact.arch = result.winner->module.arch;
  artifact.compiler = result.winner->module.compiler;
  artifact.resources = result.winner->module.kernels;
  artifact.evidence = result.best->measurement ? Evidence::kMeasured : Evidence::kPredicted;
  artifact.device = run.device;
  artifact.cc_major = profile.cc_major;
  artifact.cc_minor = profile.cc_minor;
  artifact.trial = *result.best;
  artifact.baselines = result.baselines;
  artifact.created = UtcTimestamp();
  artifact.atunner_version = ATUNNER_VERSION;
  artifact.run = run.id;
  return artifact;
}

Status WriteArtifact(const Path& folder, const RunRecord& run, const TuneResult& result,
                     const ScheduleTemplate& schedule, const DeviceProfile& profile) {
  ArtifactFiles files;
  const Report report = MakeReport(run, result, schedule.spec(), schedule.space(), profile);
  files.report_markdown = RenderMarkdown(report);
  files.report_html = RenderHtml(report);
  if (!result.winner) {
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "report.html", files.report_html));
    return WriteFileAtomic(folder / "report.md", files.report_markdown);
  }
  const SourceUnit& source = result.winner_source->source;
  if (source.language == Language::kCudaCpp) files.source = source.text;
  files.ptx = result.winner->module.ptx;
  files.cubin = result.winner->module.cubin;
  return SaveArtifact(folder, MakeArtifact(run, result, schedule, profile), files);
}

}  // namespace atunner::jobs
