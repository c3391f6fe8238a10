#include "atunner/jobs/evidence/rewriting.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/jobs/evidence/kernel_profiler.h"
#include "atunner/jobs/evidence/recognised_kernels.h"
#include "atunner/jobs/requests/user_sources.h"
#include "atunner/jobs/runs/tuning.h"

namespace atunner::jobs {
namespace {

constexpr size_t kLargestSource = size_t{16} << 20;

/// A template, or its default configuration alone, whose sizes are also those of what a
/// RewriteSource makes of it.
class RewrittenSchedule : public ScheduleTemplate {
 public:
  RewrittenSchedule(const ScheduleTemplate& whole, bool fixed) : whole_(whole), fixed_(fixed) {
    if (!fixed) space_ = whole.space();
  }
  void Accept(const RewriteSource& source) { source_ = &source; }

  const KernelSpec& spec() const override { return whole_.spec(); }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return fixed_ ? Configuration{} : whole_.Default(); }
  Result<RenderedKernel> Render(const Configuration& one) const override {
    return whole_.Render(Of(one));
  }
  std::vector<Dims> CheckDims(const Configuration& one) const override {
    return whole_.CheckDims(Of(one));
  }
  ValidSizes FreeSizes(const Configuration& one) const override {
    return whole_.FreeSizes(Of(one));
  }
  /// A rewrite keeps the sizes that the user's kernel is valid at; an operator's kernel is made for
  /// one size.
  std::vector<Dims> CheckDimsOfKernel(const Candidate& candidate) const override {
    const RewrittenKernel* known = source_ == nullptr ? nullptr : source_->Find(candidate.id);
    return known != nullptr && !known->offered ? whole_.CheckDims(whole_.Default())
                                               : std::vector<Dims>{};
  }

 private:
  Configuration Of(const Configuration& one) const { return fixed_ ? whole_.Default() : one; }

  const ScheduleTemplate& whole_;
  bool fixed_;
  ParameterSpace space_;
  const RewriteSource* source_ = nullptr;
};

/// nullptr if the kernel is no operator that we have kernels for.
std::unique_ptr<RecognisedKernels> RecognisedIn(const ScheduleTemplate& schedule,
                                                const RenderedKernel& own, const Target& target,
                                                Compiler& compiler, const EventSink& events) {
  auto found = RecognisedKernels::Find(schedule, own, target, compiler);
  if (!found) {
    events(NoteEvent{"the kernel was not compared with operators: " + found.error().what});
    return nullptr;
  }
  if (*found) events(NoteEvent{"the kernel was recognised as " + (*found)->Describe()});
  return *std::move(found);
}

}  // namespace

Result<RewriteResult> RewriteSchedule(const ScheduleTemplate& schedule, const Path& file,
                                      bool auto_tune, const Target& target,
                                      const TuningOptions& options, Services& services,
                                      const EventSink& events, std::stop_token stop) {
  RewrittenSchedule searched(schedule, !auto_tune);
  ATUNNER_TRY(RenderedKernel own, schedule.Render(schedule.Default()));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(options.compile_timeout_seconds));
  const RewriteSource::Profiler profiler = KernelProfiler(schedule.spec(), target, *compiler);
  const auto recognised = RecognisedIn(schedule, own, target, *compiler, events);
  RewriteSource source(MakeCandidate(searched.space(), searched.Default(), {"default", ""}),
                       std::move(own), schedule.spec(), profiler, recognised.get());
  searched.Accept(source);
  ATUNNER_TRY(TuningResult tuned, TuneTemplate(searched, target, options, services, events,
                                               std::move(stop), {&source}));
  if (tuned.runs.empty()) return Fail(ErrorCode::kCancelled, "stopped");
  RewriteResult result{std::move(tuned.runs.front()), {}};
  std::string rewritten;
  result.record = MakeRecord(result.run, source, profiler, file.filename().string(),
                             ReadFile(file, kLargestSource).value_or(""), rewritten);
  result.run.summary["rewriting"] = ToJson(result.record);
  if (result.run.artifact)
    ATUNNER_RETURN_IF_ERROR(WriteRecord(*result.run.artifact, result.record, rewritten));
  return result;
}

Result<RewriteResult> RewriteKernel(const RewriteRequest& request, Services& services,
                                    const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const Target target, services.devices.Choose(request.tuning.target));
  SourceOptions options;
  options.kernel = request.kernel;
  options.extra_tunables = request.auto_tune;
  options.multiprocessors = target.profile.sms;
  const std::string file = request.source.string();
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, options));
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, file, events));
  const Path source = file.ends_with(".cu") ? request.source
                                            : request.source.parent_path() / kernel.source.name;
  return RewriteSchedule(*schedule, source, request.auto_tune, target, request.tuning, services,
                         events, std::move(stop));
}

}  // namespace atunner::jobs
