#include "atunner/mcp/workbench/tuning_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "atunner/jobs/runs/tuning.h"

namespace atunner::mcp {
namespace {

constexpr size_t kRecentTrials = 5;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

struct TuningJobs::Job {
  int number = 0;
  TuningOrder order;
  std::stop_source stop;

  std::string state = "queued";  ///< queued, running, finished, cancelled, failed
  int64_t trials = 0;
  std::optional<double> best_ns;
  std::string best_configuration;
  Json baselines = Json::object();  ///< ns by name
  std::deque<Json> recent;          ///< trials, newest last
  std::string note;
  Json result;  ///< the run's summary, or the error

  std::string id() const { return fmt::format("job-{}", number); }
  bool ended() const { return state != "queued" && state != "running"; }
  Json ToJson() const;
};

Json TuningJobs::Job::ToJson() const {
  Json json{{"job", id()},
            {"problem", order.problem},
            {"state", state},
            {"evidence", Name(order.target.evidence())},
            {"gpu", order.target.profile.name},
            {"budget", order.options.budget.ToString()},
            {"trials", trials},
            {"best_ns", OrNull(best_ns)},
            {"best_configuration", best_configuration},
            {"baselines_ns", baselines}};
  if (!note.empty()) json["note"] = note;
  if (!ended()) json["recent_trials"] = recent;
  if (!result.is_null()) json.update(result);
  return json;
}

TuningJobs::TuningJobs(jobs::Services& services)
    : services_(services), worker_([this](const std::stop_token& end) { Work(end); }) {}

TuningJobs::~TuningJobs() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, job] : jobs_) job->stop.request_stop();
  }
  worker_.request_stop();
}

std::string TuningJobs::Start(TuningOrder order) {
  const std::lock_guard lock(mutex_);
  auto job = std::make_shared<Job>();
  job->number = static_cast<int>(jobs_.size()) + 1;
  job->order = std::move(order);
  jobs_.emplace(job->number, job);
  queue_.push_back(job);
  changed_.notify_all();
  return job->id();
}

void TuningJobs::Work(const std::stop_token& end) {
  while (true) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, end, [this] { return !queue_.empty(); })) return;
      job = queue_.front();
      queue_.pop_front();
      if (job->stop.stop_requested()) job->state = "cancelled";
      if (job->state == "queued") job->state = "running";
    }
    if (job->state == "running") Run(*job);
    changed_.notify_all();
  }
}

namespace {

/// The parts of a run's result that a client needs; reports and kernels are resources.
Json ResultOf(const jobs::TuningResult& tuned) {
  if (tuned.runs.empty()) return Json::object();
  const jobs::RunResult& run = tuned.runs.front();
  Json json{{"found", run.found()}, {"run", run.summary["run"]}};
  for (const char* key : {"best_configuration", "floor_ns", "stop_reason", "artifact"}) {
    if (run.summary.contains(key)) json[key] = run.summary[key];
  }
  if (run.found()) {
    const Trial& best = *run.report.best;
    json["best_ns"] = OrNull(best.ObjectiveNs());
    json["verdict"] = Name(best.verdict.kind);
    json["checks"] = best.verdict.checks.size();
  }
  if (run.summary.contains("refused")) {
    const Json& refused = run.summary["refused"];
    json["refused"] = {{"verdict", refused["kind"]}, {"reason", refused["reason"]}};
  }
  const std::string id = run.summary["run"];
  json["report"] = "atunner://run/" + id + "/report";
  if (run.artifact) json["kernel"] = "atunner://run/" + id + "/kernel";
  return json;
}

}  // namespace

void TuningJobs::Run(Job& job) {
  const jobs::EventSink events = [&](const jobs::Event& event) { Observe(job, event); };
  const auto tuned = jobs::TuneTemplate(*job.order.schedule, job.order.target, job.order.options,
                                        services_, events, job.stop.get_token());
  const std::lock_guard lock(mutex_);
  if (!tuned) {
    const Error& error = tuned.error();
    job.state = "failed";
    job.result = {{"error",
                   {{"code", Name(error.code)},
                    {"what", error.what},
                    {"where", error.where},
                    {"hint", error.hint}}}};
    return;
  }
  job.state = job.stop.stop_requested() ? "cancelled" : "finished";
  job.result = ResultOf(*tuned);
}

void TuningJobs::Observe(Job& job, const jobs::Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* trial = std::get_if<jobs::TrialEvent>(&event)) {
    job.trials = trial->trials_done;
    const auto ns = trial->trial.ObjectiveNs();
    if (ns && trial->best_ns == ns) job.best_configuration = trial->configuration;
    job.best_ns = trial->best_ns;
    job.recent.push_back({{"trial", trial->trial.number},
                          {"configuration", trial->configuration},
                          {"verdict", Name(trial->trial.verdict.kind)},
                          {"ns", OrNull(ns)}});
    if (job.recent.size() > kRecentTrials) job.recent.pop_front();
  }
  if (const auto* baseline = std::get_if<jobs::BaselineEvent>(&event))
    job.baselines[baseline->baseline.name] = OrNull(baseline->baseline.ObjectiveNs());
  if (const auto* note = std::get_if<jobs::FinalistsEvent>(&event)) job.note = note->text;
  changed_.notify_all();
}

std::shared_ptr<TuningJobs::Job> TuningJobs::Find(const std::string& id) const {
  for (const auto& [number, job] : jobs_) {
    if (job->id() == id) return job;
  }
  return nullptr;
}

namespace {

std::unexpected<Error> UnknownJob(const std::string& id) {
  return Fail(ErrorCode::kNotFound, "there is no job '" + id + "'", "arguments.job",
              "job_status without an id lists the jobs of this session; `history` has all runs");
}

}  // namespace

Result<Json> TuningJobs::Status(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto job = Find(id);
  if (job == nullptr) return UnknownJob(id);
  return job->ToJson();
}

atunner::Status TuningJobs::Cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto job = Find(id);
  if (job == nullptr) return UnknownJob(id);
  if (job->state == "queued") {
    job->state = "cancelled";
    std::erase(queue_, job);
  }
  job->stop.request_stop();
  changed_.notify_all();
  return {};
}

Result<Json> TuningJobs::Wait(const std::string& id, const std::stop_token& stop) {
  const std::stop_callback cancel(stop, [&] { (void)Cancel(id); });
  std::unique_lock lock(mutex_);
  const auto job = Find(id);
  if (job == nullptr) return UnknownJob(id);
  changed_.wait(lock, [&] { return job->ended(); });
  return job->ToJson();
}

Json TuningJobs::List() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job)
    list.push_back({{"job", job->second->id()},
                    {"problem", job->second->order.problem},
                    {"state", job->second->state},
                    {"trials", job->second->trials},
                    {"best_ns", OrNull(job->second->best_ns)}});
  return list;
}

}  // namespace atunner::mcp
