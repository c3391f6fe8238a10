#include "atunner/jobs/captures/optimize_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "atunner/capture/blob_store.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/capture/replacement.h"
#include "atunner/intake/captured/captured_kernel.h"
#include "atunner/intake/captured/source_patch.h"
#include "atunner/intake/rewrite/source_headers.h"
#include "atunner/jobs/captures/shared_budget.h"
#include "atunner/jobs/evidence/rewriting.h"
#include "atunner/jobs/runs/tuning.h"
#include "atunner/judge/candidate_compiler.h"
#include "atunner/model/artifact/artifact.h"

namespace atunner::jobs {
namespace {

constexpr size_t kLargestSource = size_t{16} << 20;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
/// A source that took so long to be refused by the compiler is not tried for other kernels, e.g.
/// one with the headers of Thrust.
constexpr double kSlowCompilation = 5;
constexpr double kShapeSeconds = 30;  // of the judge for one further shape

std::string FolderName(const std::string& readable) {
  std::string name;
  for (const char c : readable.substr(0, readable.find('('))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.starts_with("void-")) name.erase(0, 5);
  while (!name.empty() && name.back() == '-') name.pop_back();
  constexpr size_t kLongest = 80;
  return name.empty() ? "kernel" : name.substr(0, kLongest);
}

uint32_t CeilDiv(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

/// The tuned configuration of a launch whose own one is `from`, when the tuned launch became `to`:
/// along axes where the grid changed, blocks of the new size cover the same threads, or the grid of
/// a grid-stride loop grows in the same proportion.
capture::LaunchConfiguration Scaled(const capture::LaunchConfiguration& from,
                                    const capture::LaunchConfiguration& tuned_from,
                                    const capture::LaunchConfiguration& to) {
  capture::LaunchConfiguration scaled = from;
  scaled.block = to.block;
  const auto extent = [](uint32_t grid, uint32_t block, uint32_t tuned_grid, uint32_t to_grid,
                         uint32_t tuned_block, uint32_t to_block) {
    if (tuned_grid == to_grid) return grid;
    const bool covers = CeilDiv(uint64_t{tuned_grid} * tuned_block, to_block) == to_grid;
    return covers ? CeilDiv(uint64_t{grid} * block, to_block)
                  : CeilDiv(uint64_t{grid} * to_grid, tuned_grid);
  };
  scaled.grid = {extent(from.grid.x, from.block.x, tuned_from.grid.x, to.grid.x, tuned_from.block.x,
                        to.block.x),
                 extent(from.grid.y, from.block.y, tuned_from.grid.y, to.grid.y, tuned_from.block.y,
                        to.block.y),
                 extent(from.grid.z, from.block.z, tuned_from.grid.z, to.grid.z, tuned_from.block.z,
                        to.block.z)};
  if (from.shared_bytes == tuned_from.shared_bytes) scaled.shared_bytes = to.shared_bytes;
  return scaled;
}

/// Why no candidate was right: what is wrong with the program's own kernel, else with the last one.
std::string WhyNothing(const Report& report) {
  const Verdict* verdict = nullptr;
  if (!report.trials.empty()) verdict = &report.trials.back().verdict;
  for (const Baseline& baseline : report.baselines) {
    if (baseline.name == "as given" && !baseline.verdict.correct()) verdict = &baseline.verdict;
  }
  if (verdict == nullptr) return "no trial was made";
  return fmt::format("no candidate passes the checks{}: {}",
                     verdict->kind == VerdictKind::kNondeterministic
                         ? ", as the results depend on the order in which threads run"
                         : "",
                     verdict->reason);
}

/// Tunes the kernels of one capture.
class CaptureTuner {
 public:
  CaptureTuner(const OptimizeCaptureRequest& request, const capture::Capture& capture,
               const Target& target, Services& services, const EventSink& events,
               std::stop_token stop)
      : request_(request),
        capture_(capture),
        blobs_(capture::BlobsOf(request.capture)),
        target_(target),
        services_(services),
        events_(events),
        stop_(std::move(stop)) {}

  TunedKernel Tune(const KernelShare& share, const KernelBudget& budget, const Path& out) {
    TunedKernel tuned{readable(share), share.share, share.obstacle, {}};
    if (!tuned.obstacle.empty() || share.launch == nullptr) return tuned;
    ends_ = services_.clock.Now() + budget.seconds.value_or(kNoLimit);
    TuningOptions options = request_.tuning;
    options.budget = budget.search;
    options.out = out;
    auto run = TuneLaunch(*share.launch, options);
    if (!run) {
      tuned.obstacle = run.error().ToString();
      return tuned;
    }
    if (!run->found()) tuned.obstacle = WhyNothing(run->report);
    tuned.run = *std::move(run);
    return tuned;
  }

 private:
  const std::string& readable(const KernelShare& share) const {
    return capture_.kernels[share.kernel].readable;
  }

  Result<RunResult> TuneLaunch(const capture::CapturedLaunch& launch,
                               const TuningOptions& options) {
    ATUNNER_TRY(UserKernel kernel, KernelOfLaunch(capture_, launch, blobs_));
    ATUNNER_TRY(UserKernel better, FromSource(kernel, launch));
    for (const std::string& note : better.notes) events_(NoteEvent{note});
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(better));
    ATUNNER_TRY(RunResult run, Improve(*schedule, options));
    if (!run.artifact) return run;
    ATUNNER_RETURN_IF_ERROR(WritePatch(better, launch, run));
    const Configuration* tuned = run.report.best ? run.report.best->candidate.configuration()
                                                 : nullptr;
    std::vector<capture::LaunchConfiguration> wrong;
    if (tuned != nullptr) wrong = WrongShapes(launch, schedule->space(), *tuned);
    ATUNNER_RETURN_IF_ERROR(WriteReplacementOf(launch, *run.artifact, wrong));
    return run;
  }

  Result<RunResult> Improve(const ScheduleTemplate& schedule, const TuningOptions& options) {
    if (request_.rewrite) {
      ATUNNER_TRY(RewriteResult rewritten, RewriteSchedule(schedule, source_, false, target_,
                                                           options, services_, events_, stop_));
      return std::move(rewritten.run);
    }
    ATUNNER_TRY(TuningResult result,
                TuneTemplate(schedule, target_, options, services_, events_, stop_));
    if (result.runs.empty()) return Fail(ErrorCode::kCancelled, "stopped");
    return std::move(result.runs.front());
  }

  /// The kernel compiled from its source, if there is one that compiles by itself; else as it is.
  Result<UserKernel> FromSource(const UserKernel& kernel, const capture::CapturedLaunch& launch) {
    const capture::CapturedKernel& captured = capture_.kernels[launch.kernel];
    source_.clear();
    std::string reason = "no source is known: build the program with -lineinfo, or name the file";
    for (const Path& file : SourceFiles(kernel, captured)) {
      if (const auto known = refused_.find(file); known != refused_.end()) {
        reason = known->second;
        continue;
      }
      const double begun = services_.clock.Now();
      UserKernel sourced = kernel;
      const Status used = Read(file, captured.readable, sourced);
      const Status compiled = used ? Compiles(sourced) : used;
      if (compiled) {
        sourced.reference = AsGiven(kernel, sourced);
        source_ = file;
        return sourced;
      }
      reason = compiled.error().ToString();
      if (used && services_.clock.Now() - begun > kSlowCompilation) refused_[file] = reason;
    }
    UserKernel as_it_is = kernel;
    as_it_is.notes.push_back("tuned without its source: " + reason);
    return as_it_is;
  }

  std::vector<Path> SourceFiles(const UserKernel& kernel,
                                const capture::CapturedKernel& captured) const {
    if (!request_.source.empty()) return {request_.source};
    std::vector<Path> files;
    for (const std::string& file : SourceFilesOf(kernel.source.text, captured.name)) {
      if (Exists(file)) files.emplace_back(file);
    }
    return files;
  }

  Status Read(const Path& file, const std::string& readable, UserKernel& kernel) const {
    ATUNNER_TRY(const std::string text, ReadFile(file, kLargestSource));
    const FileReader read = [folder = file.parent_path()](const std::string& name) {
      return ReadFile(folder / name, kLargestSource);
    };
    const std::string whole = WithHeaders(text, file.filename().string(), read,
                                          request_.compiler_options);
    ATUNNER_RETURN_IF_ERROR(UseSource(kernel, readable, whole, file.string()));
    kernel.source.options = request_.compiler_options;
    kernel.source.include_folders = {std::filesystem::absolute(file).parent_path().string()};
    return {};
  }

  Status OpenCompiler() {
    if (compiler_ != nullptr) return {};
    ATUNNER_TRY(compiler_, services_.compilers.Open(request_.tuning.compile_timeout_seconds));
    return {};
  }

  /// Success if the compiler of candidates compiles the kernel as it is given.
  Status Compiles(UserKernel kernel) {
    ATUNNER_RETURN_IF_ERROR(OpenCompiler());
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(kernel));
    ATUNNER_TRY(const RenderedKernel rendered, schedule->Render(schedule->Default()));
    ATUNNER_TRY(
        const CompileOutcome outcome,
        compiler_->Compile({rendered.source, EntriesOf(rendered.plan), target_.profile.Arch()}));
    if (!outcome.ok()) return Invalid("it does not compile by itself: " + outcome.error);
    return {};
  }

  /// The program's own kernel, with the names of the source's arguments: the oracle.
  static RenderedKernel AsGiven(const UserKernel& given, const UserKernel& sourced) {
    RenderedKernel kernel{given.source, given.plan};
    LaunchStep& step = kernel.plan.steps[0];
    step.args = sourced.plan.steps[0].args;
    kernel.plan.parameter_names = given.space.Names();
    kernel.plan.parameter_values = given.initial.values;
    return kernel;
  }

  /// Configurations of the kernel's other recorded launches at which the tuned values are not
  /// right: they are judged with the memory of those launches.
  std::vector<capture::LaunchConfiguration> WrongShapes(const capture::CapturedLaunch& launch,
                                                        const ParameterSpace& space,
                                                        const Configuration& tuned) {
    std::vector<capture::LaunchConfiguration> wrong;
    for (const capture::CapturedLaunch* other : capture_.RepeatableLaunches(launch.kernel)) {
      const capture::LaunchConfiguration& shape = other->configuration;
      if (shape == launch.configuration || shape.block != launch.configuration.block) continue;
      const Result<Verdict> verdict = services_.clock.Now() < ends_
                                          ? VerdictAt(*other, space, tuned)
                                          : Fail(ErrorCode::kCancelled,
                                                 "no time was left to check");
      if (verdict && verdict->passed()) continue;
      wrong.push_back(shape);
      events_(NoteEvent{fmt::format("not used for launches with a grid of {} x {} x {}: {}",
                                    shape.grid.x, shape.grid.y, shape.grid.z,
                                    verdict ? verdict->reason : verdict.error().ToString())});
    }
    return wrong;
  }

  Result<Verdict> VerdictAt(const capture::CapturedLaunch& launch, const ParameterSpace& space,
                            const Configuration& tuned) {
    ATUNNER_TRY(const UserKernel given, KernelOfLaunch(capture_, launch, blobs_));
    ATUNNER_TRY(UserKernel kernel, FromSource(given, launch));
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(kernel));
    if (schedule->space().Names() != space.Names())
      return Invalid("the kernel has other parameters there");
    const auto judge = services_.devices.MakeJudge(target_, kShapeSeconds);
    ATUNNER_RETURN_IF_ERROR(judge->Begin({schedule->spec(), request_.tuning.seed, kShapeSeconds}));
    ATUNNER_RETURN_IF_ERROR(OpenCompiler());
    const CandidateCompiler compiler(*schedule, *compiler_, target_.profile.Arch());
    ATUNNER_TRY(const JudgeAnswer answer,
                JudgeCandidate(*judge, compiler,
                               MakeCandidate(schedule->space(), tuned, {"user", "another shape"}),
                               {.time = false, .incumbent_ns = {}, .seed = request_.tuning.seed}));
    return answer.verdict;
  }

  /// Writes the change of the source, where the kernel was tuned from one.
  Status WritePatch(const UserKernel& kernel, const capture::CapturedLaunch& launch,
                    const RunResult& run) const {
    const Configuration* tuned = run.report.best ? run.report.best->candidate.configuration()
                                                 : nullptr;
    if (tuned == nullptr || kernel.source.language != Language::kCudaCpp || source_.empty())
      return {};
    ATUNNER_TRY(const std::string text, ReadFile(source_, kLargestSource));
    const std::string& readable = capture_.kernels[launch.kernel].readable;
    const auto patched = PatchedSource(text, readable, kernel, *tuned);
    if (!patched) {
      events_(NoteEvent{"no change of the source is written: " + patched.error().what});
      return {};
    }
    return WriteFileAtomic(*run.artifact / kPatchFile,
                           UnifiedDiff(text, *patched, source_.filename().string()));
  }

  /// `wrong`: configurations of launches that stay as they are.
  Status WriteReplacementOf(const capture::CapturedLaunch& launch, const Path& folder,
                            const std::vector<capture::LaunchConfiguration>& wrong) const {
    ATUNNER_TRY(const Artifact artifact, LoadArtifact(folder));
    ATUNNER_TRY(const ConcretePlan plan,
                Resolve(artifact.plan, artifact.spec.dims, artifact.spec.attributes));
    const ConcreteStep& step = plan.steps.at(0);
    const auto resources = std::ranges::find(artifact.resources, step.entry,
                                             &KernelResources::entry);
    const capture::CapturedKernel& kernel = capture_.kernels[launch.kernel];
    capture::Replacement replacement{.kernel = kernel.name,
                                     .module = capture_.modules[kernel.module].ptx,
                                     .image = "kernel.cubin",
                                     .arch = artifact.arch,
                                     .entry = step.entry};
    if (resources != artifact.resources.end() && !resources->mangled.empty())
      replacement.entry = resources->mangled;
    const capture::LaunchConfiguration to{step.grid,         step.block,       step.cluster,
                                          step.shared_bytes, step.cooperative, step.programmatic};
    for (const capture::LaunchGroup& group : capture_.groups) {
      const bool same_block = group.configuration.block == launch.configuration.block;
      const bool known_wrong = std::ranges::find(wrong, group.configuration) != wrong.end();
      // A rewritten kernel was judged at this launch alone.
      const bool judged = !request_.rewrite || group.configuration == launch.configuration;
      if (group.kernel != launch.kernel || !same_block || known_wrong || !judged) continue;
      // A rewrite may give a block other work, so that its grid is no matter of the block's size.
      replacement.launches.push_back(
          {group.configuration,
           request_.rewrite ? to : Scaled(group.configuration, launch.configuration, to)});
    }
    return capture::WriteReplacement(folder, replacement);
  }

  const OptimizeCaptureRequest& request_;
  const capture::Capture& capture_;
  Path blobs_;
  const Target& target_;
  Services& services_;
  const EventSink& events_;
  std::stop_token stop_;
  std::unique_ptr<Compiler> compiler_;
  std::map<Path, std::string> refused_;  ///< sources that do not compile by themselves, and why
  Path source_;                          ///< of the kernel that is tuned; empty: its PTX
  double ends_ = kNoLimit;  ///< time of the clock after which no other shapes are judged
};

bool Matches(const std::string& wanted, const capture::CapturedKernel& kernel) {
  return wanted.empty() || kernel.readable.contains(wanted) || kernel.name.contains(wanted);
}

/// The kernels that the request names, most expensive first.
Result<std::vector<KernelShare>> Chosen(const OptimizeCaptureRequest& request,
                                        const capture::Capture& capture,
                                        std::vector<KernelShare> shares) {
  std::erase_if(shares, [&](const KernelShare& share) {
    return !Matches(request.kernel, capture.kernels[share.kernel]);
  });
  if (shares.empty() && !request.kernel.empty())
    return Invalid("the program launches no kernel '" + request.kernel + "'", "request.kernel",
                   "`atunner show` lists them");
  if (shares.empty())
    return Invalid("the program launched no kernel", request.capture.string(),
                   "run it with arguments with which it does");
  const size_t tunable = static_cast<size_t>(
      std::ranges::count_if(shares, [](const KernelShare& s) { return s.obstacle.empty(); }));
  // Kernels that cannot be tuned take no place of those that can.
  if (request.top > 0 && tunable > request.top) {
    size_t kept = 0;
    std::erase_if(shares, [&](const KernelShare& share) {
      return share.obstacle.empty() && ++kept > request.top;
    });
  }
  return shares;
}

std::string OutOfTime(const KernelShare& share, const Budget& budget) {
  return fmt::format(
      "the {:.0f} s went to kernels that take more of the program's time (this one "
      "takes {:.1f} %); a longer budget, or tuning this kernel alone, reaches it",
      *budget.seconds, 100 * share.share);
}

/// Gain of the whole program's kernels by Amdahl's law.
double SpeedupOf(const std::vector<TunedKernel>& kernels) {
  double left = 1;
  for (const TunedKernel& kernel : kernels) {
    if (!kernel.run) continue;
    const double gain = GainOf(kernel.run->report).value_or(1);
    if (kernel.run->found() && gain > 1) left -= kernel.share * (1 - 1 / gain);
  }
  return 1 / left;
}

}  // namespace

std::optional<double> GainOf(const Report& report) {
  const auto best = report.best ? report.best->ObjectiveNs() : std::nullopt;
  for (const Baseline& baseline : report.baselines) {
    if (baseline.name != "as given") continue;
    if (baseline.comparison) return baseline.comparison->ratio;
    const auto given = baseline.ObjectiveNs();
    if (given && best) return *given / *best;
  }
  // Without baselines the first trial is the kernel as given.
  const auto own = std::ranges::find(report.trials, "default", &Trial::proposer);
  if (own == report.trials.end() || !best || !own->ObjectiveNs()) return std::nullopt;
  return *own->ObjectiveNs() / *best;
}

bool OptimizeCaptureResult::any() const {
  return std::ranges::any_of(kernels,
                             [](const TunedKernel& one) { return one.run && one.run->found(); });
}

Result<OptimizeCaptureResult> OptimizeCapture(const OptimizeCaptureRequest& request,
                                              Services& services, const EventSink& events,
                                              std::stop_token stop) {
  const double started = services.clock.Now();
  ATUNNER_TRY(const capture::Capture capture, capture::ReadCapture(request.capture));
  ATUNNER_TRY(const Target target, services.devices.Choose(request.tuning.target));
  ATUNNER_TRY(std::vector<KernelShare> shares,
              SharesOf(capture, request.capture, target, true, services, events, stop));
  ATUNNER_TRY(shares, Chosen(request, capture, std::move(shares)));
  SharedBudget budget(request.tuning.budget, shares, services.clock, started);
  OptimizeCaptureResult result;
  result.out = request.tuning.out.empty() ? Path("best") : request.tuning.out;
  CaptureTuner tuner(request, capture, target, services, events, stop);
  for (KernelShare& share : shares) {
    if (stop.stop_requested()) break;
    const std::string& name = capture.kernels[share.kernel].readable;
    std::optional<KernelBudget> part;
    if (share.obstacle.empty()) part = budget.Take(share);
    if (part) events(KernelStartedEvent{name});
    if (share.obstacle.empty() && !part) share.obstacle = OutOfTime(share, request.tuning.budget);
    result.kernels.push_back(
        tuner.Tune(share, part.value_or(KernelBudget{}), result.out / FolderName(name)));
    if (const std::string& obstacle = result.kernels.back().obstacle; !obstacle.empty())
      events(KernelRefusedEvent{name, Error{ErrorCode::kUnsupported, obstacle, "", ""}});
  }
  result.speedup = SpeedupOf(result.kernels);
  return result;
}

}  // namespace atunner::jobs
