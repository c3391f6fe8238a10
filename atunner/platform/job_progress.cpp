#include "atunner/platform/job_progress.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

namespace atunner::platform {
namespace {

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// "tile=16, unroll=4", as events of trials have it.
std::string ConfigurationText(const Json& summary) {
  std::string text;
  const auto named = summary.find("best_configuration");
  if (named == summary.end()) return text;
  for (const auto& [name, value] : named->items())
    text += (text.empty() ? "" : ", ") + name + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

}  // namespace

void JobProgress::Add(const jobs::Event& event) {
  if (const auto* started = std::get_if<jobs::RunStartedEvent>(&event)) {
    runs_.push_back(started->run);
    device_ = started->device;
    evidence_ = std::string(Name(started->evidence));
    // The next part, size or kernel: other times, which cannot be compared with the last ones.
    best_.reset();
    baseline_ns_.reset();
    earlier_trials_ += std::exchange(trials_, 0);
    earlier_seconds_ += std::exchange(seconds_, 0);
  } else if (const auto* baseline = std::get_if<jobs::BaselineEvent>(&event)) {
    if (!baseline->baseline.ObjectiveNs() || baseline_ns_) return;
    baseline_ = baseline->baseline.name;
    baseline_ns_ = baseline->baseline.ObjectiveNs();
  } else if (const auto* trial = std::get_if<jobs::TrialEvent>(&event)) {
    AddTrial(*trial);
  } else if (const auto* finished = std::get_if<jobs::RunFinishedEvent>(&event)) {
    AddFinished(*finished);
  }
}

/// The finals have judged the best again: theirs is the last word.
void JobProgress::AddFinished(const jobs::RunFinishedEvent& event) {
  const Report& report = event.result.report;
  const auto ns = report.best ? report.best->ObjectiveNs() : std::nullopt;
  if (ns) best_ = Best{report.best->number, ConfigurationText(event.result.summary), *ns};
  if (report.baselines.empty() || !report.baselines.front().ObjectiveNs()) return;
  baseline_ = report.baselines.front().name;
  baseline_ns_ = report.baselines.front().ObjectiveNs();
}

void JobProgress::AddTrial(const jobs::TrialEvent& event) {
  trials_ = event.trials_done;
  seconds_ = event.seconds;
  const auto ns = event.trial.ObjectiveNs();
  if (ns && (!best_ || *ns < best_->ns)) best_ = Best{event.trial.number, event.configuration, *ns};
}

Json JobProgress::ToJson() const {
  Json json{{"device", OrNull(device_)}, {"evidence", OrNull(evidence_)}};
  json["best"] = Json();
  if (best_)
    json["best"] = {{"run", runs_.empty() ? Json() : Json(runs_.back())},
                    {"trial", best_->trial},
                    {"configuration", best_->configuration},
                    {"time_ns", best_->ns}};
  json["baseline"] = Json();
  if (baseline_ns_) json["baseline"] = {{"name", baseline_}, {"time_ns", *baseline_ns_}};
  json["speedup"] = best_ && baseline_ns_ ? Json(*baseline_ns_ / best_->ns) : Json();
  json["runs"] = runs_;
  json["used_trials"] = earlier_trials_ + trials_;
  json["used_seconds"] = earlier_seconds_ + seconds_;
  return json;
}

Json JobProgress::Shown(const jobs::Event& event) const {
  const auto* trial = std::get_if<jobs::TrialEvent>(&event);
  if (trial == nullptr) return jobs::ToJson(event);
  return {{"event", "trial"},
          {"run", runs_.empty() ? Json() : Json(runs_.back())},
          {"number", trial->trial.number},
          {"configuration", trial->configuration},
          {"verdict", Name(trial->trial.verdict.kind)},
          {"reason", trial->trial.verdict.reason},
          {"time_ns", OrNull(trial->trial.ObjectiveNs())},
          {"best_ns", OrNull(trial->best_ns)},
          {"trials_done", trial->trials_done},
          {"seconds", trial->seconds},
          {"compile_seconds", trial->trial.compile_seconds},
          {"judge_seconds", trial->trial.judge_seconds}};
}

std::string KindOf(const Json& event) {
  const auto found = event.find("event");
  return found != event.end() && found->is_string() ? found->get<std::string>() : "note";
}

}  // namespace atunner::platform
