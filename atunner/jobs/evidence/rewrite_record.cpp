#include "atunner/jobs/evidence/rewrite_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "atunner/intake/captured/source_patch.h"
#include "atunner/model/json/json.h"
#include "atunner/rewrites/user_file.h"

namespace atunner::jobs {
namespace {

constexpr size_t kLargestRecord = size_t{16} << 20;

/// The ids from the user's kernel to the winner.
std::vector<Digest> ChainTo(const RewriteSource& source, const Digest& winner) {
  std::vector<Digest> chain;
  std::optional<Digest> at = winner;
  while (at) {
    const RewrittenKernel* kernel = source.Find(*at);
    if (kernel == nullptr) return {};
    chain.push_back(*at);
    at = kernel->parent;
  }
  std::ranges::reverse(chain);
  return chain;
}

const Trial* FindTrial(const Report& report, const Digest& id) {
  const auto found = std::ranges::find_if(
      report.trials, [&](const Trial& trial) { return trial.candidate.id == id; });
  return found == report.trials.end() ? nullptr : &*found;
}

std::optional<double> TimeOf(const Report& report, const Digest& id) {
  const Trial* trial = FindTrial(report, id);
  return trial == nullptr ? std::nullopt : trial->ObjectiveNs();
}

std::vector<CounterChange> ChangesOf(const LaunchProfile& before, const LaunchProfile& after) {
  std::vector<CounterChange> changes;
  for (const auto& [counter, value] : before.counters) {
    const auto now = evidence::ValueOf(after.counters, counter);
    const evidence::CounterInfo& info = evidence::InfoOf(counter);
    if (now && *now != value.value)
      changes.push_back({std::string(info.name), std::string(info.unit), value.value, *now});
  }
  return changes;
}

class Recorder {
 public:
  Recorder(const RunResult& run, const RewriteSource& source,
           const RewriteSource::Profiler& profiler)
      : report_(run.report), source_(source), profiler_(profiler) {
    if (report_.best) chain_ = ChainTo(source, report_.best->candidate.id);
    if (!chain_.empty() && !IsFaster(chain_.front(), chain_.back())) chain_.resize(1);
    kept_.insert(chain_.begin(), chain_.end());
  }

  const std::vector<Digest>& chain() const { return chain_; }
  /// The same to the fastest kernel of the user's source, where the winner is another's.
  std::vector<Digest> RewrittenChain() const {
    if (!EndsInOperator()) return chain_;
    Digest best = chain_.front();
    for (const TriedIdea& tried : source_.ideas()) {
      const bool rewritten = tried.candidate && !source_.Find(*tried.candidate)->offered;
      if (rewritten && IsFaster(best, *tried.candidate)) best = *tried.candidate;
    }
    return ChainTo(source_, best);
  }
  const RenderedKernel& KernelOf(const Digest& id) const { return source_.Find(id)->kernel; }

  IdeaRecord RecordOf(const TriedIdea& tried) const {
    IdeaRecord record{tried.round,
                      tried.idea.rewrite,
                      tried.detail,
                      tried.idea.reason,
                      std::string(evidence::Name(tried.idea.removes)),
                      tried.idea.expected_gain,
                      "does not apply",
                      {},
                      {},
                      tried.idea.obstacle};
    if (!tried.candidate) return record;
    record.time_ns = TimeOf(report_, *tried.candidate);
    const Trial* trial = FindTrial(report_, *tried.candidate);
    record.note = trial == nullptr ? "not judged" : trial->verdict.reason;
    record.status = kept_.contains(*tried.candidate) ? "kept"
                    : record.time_ns                 ? "not faster"
                    : trial == nullptr               ? "not tried"
                                                     : "refused";
    const auto before = TimeOf(report_, *source_.Find(*tried.candidate)->parent);
    if (record.time_ns && before) record.gain = *before / *record.time_ns;
    constexpr double kFaster = 1.02;
    if (record.status == "not faster" && record.gain.value_or(0) > kFaster)
      record.status = "faster, not kept";
    return record;
  }

  /// True if `later` is faster than `before` by more than measurements vary.
  bool IsFaster(const Digest& before, const Digest& later) const {
    constexpr double kLeastGain = 1.01;
    const auto first = TimeOf(report_, before), second = TimeOf(report_, later);
    return first && second && *first >= kLeastGain * *second;
  }

  RewriteStep StepTo(const Digest& id) const {
    const RewrittenKernel& after = *source_.Find(id);
    const RewrittenKernel& before = *source_.Find(*after.parent);
    const TriedIdea& tried = source_.ideas()[after.idea];
    RewriteStep step{tried.idea.rewrite, tried.detail, tried.idea.reason, "", "", 0, 0, "", {}};
    step.before_ns = TimeOf(report_, *after.parent).value_or(0);
    step.after_ns = TimeOf(report_, id).value_or(0);
    if (!after.offered)
      step.diff = UnifiedDiff(before.kernel.source.text, after.kernel.source.text,
                              after.kernel.source.name);
    const auto first = ProfileOf(before), second = ProfileOf(after);
    if (first) step.bottleneck_before = evidence::Name(first->findings.front().bottleneck);
    if (second) step.bottleneck_after = evidence::Name(second->findings.front().bottleneck);
    if (first && second) step.counters = ChangesOf(*first, *second);
    return step;
  }

  double TimeNs(const Digest& id) const { return TimeOf(report_, id).value_or(0); }
  bool EndsInOperator() const { return source_.Find(chain_.back())->offered.has_value(); }

  rewrites::GridChange GridOf(const std::vector<Digest>& chain) const {
    rewrites::GridChange grid;
    for (const Digest& id : chain) {
      const RewrittenKernel& kernel = *source_.Find(id);
      if (kernel.parent) grid = rewrites::Joined(grid, source_.ideas()[kernel.idea].grid);
    }
    return grid;
  }

 private:
  Result<LaunchProfile> ProfileOf(const RewrittenKernel& kernel) const {
    return kernel.profile ? *kernel.profile : profiler_(kernel.kernel);
  }

  const Report& report_;
  const RewriteSource& source_;
  const RewriteSource::Profiler& profiler_;
  std::vector<Digest> chain_;
  std::set<Digest> kept_;
};

/// The diff of the user's file, or of the device code where the file has another form.
void AddDiff(const Recorder& recorder, const std::string& file_text, RewriteRecord& record,
             std::string& rewritten) {
  const std::vector<Digest> chain = recorder.RewrittenChain();
  if (chain.size() == 1) return;
  const RenderedKernel& own = recorder.KernelOf(chain.front());
  const RenderedKernel& best = recorder.KernelOf(chain.back());
  const std::string entry = own.plan.steps.front().entry;
  auto text = rewrites::RewrittenFile(file_text, own.source.text, best.source.text, entry,
                                      recorder.GridOf(chain));
  if (!text) record.note = "the diff is of the device code: " + text.error().what;
  rewritten = text ? *std::move(text) : best.source.text;
  record.diff = UnifiedDiff(text ? file_text : own.source.text, rewritten, record.file);
  if (!recorder.EndsInOperator()) return;
  if (!record.note.empty()) record.note += "; ";
  record.note += fmt::format(
      "the diff is the fastest rewrite of the source, {:.2f} us; the artifact's kernel.cu is "
      "atunner's own kernel",
      recorder.TimeNs(chain.back()) / 1e3);
}

Json JsonOf(const IdeaRecord& idea) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return {{"round", idea.round},       {"rewrite", idea.rewrite},
          {"detail", idea.detail},     {"reason", idea.reason},
          {"removes", idea.removes},   {"expected_gain", number(idea.expected_gain)},
          {"status", idea.status},     {"time_ns", number(idea.time_ns)},
          {"gain", number(idea.gain)}, {"note", idea.note}};
}

Json JsonOf(const RewriteStep& step) {
  Json counters = Json::array();
  for (const CounterChange& change : step.counters)
    counters.push_back({{"name", change.name},
                        {"unit", change.unit},
                        {"before", change.before},
                        {"after", change.after}});
  return {{"rewrite", step.rewrite},
          {"detail", step.detail},
          {"reason", step.reason},
          {"bottleneck_before", step.bottleneck_before},
          {"bottleneck_after", step.bottleneck_after},
          {"before_ns", step.before_ns},
          {"after_ns", step.after_ns},
          {"diff", step.diff},
          {"counters", counters}};
}

std::string TextIn(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? json[key].get<std::string>()
             : "";
}

double NumberIn(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                                         : 0;
}

std::optional<double> MaybeNumber(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_number()) return std::nullopt;
  return json[key].get<double>();
}

IdeaRecord IdeaIn(const Json& json) {
  return {static_cast<int>(NumberIn(json, "round")),
          TextIn(json, "rewrite"),
          TextIn(json, "detail"),
          TextIn(json, "reason"),
          TextIn(json, "removes"),
          MaybeNumber(json, "expected_gain"),
          TextIn(json, "status"),
          MaybeNumber(json, "time_ns"),
          MaybeNumber(json, "gain"),
          TextIn(json, "note")};
}

RewriteStep StepIn(const Json& json) {
  RewriteStep step{TextIn(json, "rewrite"),
                   TextIn(json, "detail"),
                   TextIn(json, "reason"),
                   TextIn(json, "bottleneck_before"),
                   TextIn(json, "bottleneck_after"),
                   NumberIn(json, "before_ns"),
                   NumberIn(json, "after_ns"),
                   TextIn(json, "diff"),
                   {}};
  for (const Json& change : json.value("counters", Json::array()))
    step.counters.push_back({TextIn(change, "name"), TextIn(change, "unit"),
                             NumberIn(change, "before"), NumberIn(change, "after")});
  return step;
}

}  // namespace

RewriteRecord MakeRecord(const RunResult& run, const RewriteSource& source,
                         const RewriteSource::Profiler& profiler, const std::string& file,
                         const std::string& file_text, std::string& rewritten) {
  const Recorder recorder(run, source, profiler);
  RewriteRecord record;
  record.kernel = run.report.spec.name;
  record.device = run.report.device;
  record.file = file;
  record.times = Name(run.report.evidence);
  record.stop_reason = source.stop_reason().empty() ? run.report.stop_reason : source.stop_reason();
  for (const TriedIdea& tried : source.ideas()) record.ideas.push_back(recorder.RecordOf(tried));
  if (recorder.chain().empty()) return record;
  record.own_ns = TimeOf(run.report, recorder.chain().front()).value_or(0);
  record.best_ns = TimeOf(run.report, recorder.chain().back()).value_or(0);
  if (recorder.chain().size() == 1) return record;
  for (size_t i = 1; i < recorder.chain().size(); ++i)
    record.steps.push_back(recorder.StepTo(recorder.chain()[i]));
  AddDiff(recorder, file_text, record, rewritten);
  return record;
}

Status WriteRecord(const Path& folder, const RewriteRecord& record, const std::string& rewritten) {
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / kRewriteRecord, DumpJson(ToJson(record))));
  if (record.diff.empty()) return {};
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / kRewriteDiff, record.diff));
  return WriteFileAtomic(folder / kRewrittenFile, rewritten);
}

Result<RewriteRecord> ReadRecord(const Path& folder) {
  const Path file = folder / kRewriteRecord;
  if (!Exists(file))
    return Fail(ErrorCode::kNotFound, "is no result of a rewriting run", folder.string(),
                "atunner hardware-optimize --source kernel.cu --rewrite --out FOLDER makes one");
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargestRecord));
  ATUNNER_TRY(const Json json, ParseJson(text, file.string()));
  RewriteRecord record;
  record.kernel = TextIn(json, "kernel");
  record.device = TextIn(json, "device");
  record.file = TextIn(json, "file");
  record.times = TextIn(json, "times");
  record.counters = TextIn(json, "counters");
  record.own_ns = NumberIn(json, "own_ns");
  record.best_ns = NumberIn(json, "best_ns");
  record.stop_reason = TextIn(json, "stop_reason");
  record.diff = TextIn(json, "diff");
  record.note = TextIn(json, "note");
  for (const Json& idea : json.value("ideas", Json::array())) record.ideas.push_back(IdeaIn(idea));
  for (const Json& step : json.value("steps", Json::array())) record.steps.push_back(StepIn(step));
  return record;
}

Json ToJson(const RewriteRecord& record) {
  Json json{{"kernel", record.kernel},     {"device", record.device},
            {"file", record.file},         {"times", record.times},
            {"counters", record.counters}, {"own_ns", record.own_ns},
            {"best_ns", record.best_ns},   {"stop_reason", record.stop_reason},
            {"diff", record.diff},         {"note", record.note},
            {"ideas", Json::array()},      {"steps", Json::array()}};
  for (const IdeaRecord& idea : record.ideas) json["ideas"].push_back(JsonOf(idea));
  for (const RewriteStep& step : record.steps) json["steps"].push_back(JsonOf(step));
  return json;
}

}  // namespace atunner::jobs
