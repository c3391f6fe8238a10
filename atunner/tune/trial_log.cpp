#include "atunner/tune/trial_log.h"

#include <utility>

#include "atunner/tune/stopwatch.h"

namespace atunner {

void TakeAnswer(JudgeAnswer answer, double seconds, Trial& trial) {
  trial.judge_seconds = seconds;
  trial.verify_seconds = answer.verify_seconds;
  trial.timing_seconds = answer.timing_seconds;
  trial.verdict = std::move(answer.verdict);
  trial.measurement = std::move(answer.measurement);
  trial.estimate = std::move(answer.estimate);
  trial.note = std::move(answer.note);
}

Status TrialLog::LoadEarlier() {
  if (store_ == nullptr) return {};
  ATUNNER_TRY(result_.trials, store_->Trials(run_.id));
  persisted_ = result_.trials.size();
  return {};
}

void TrialLog::Add(Trial trial) {
  trial.number = static_cast<int64_t>(result_.trials.size()) + 1;
  result_.trials.push_back(std::move(trial));
}

Trial& TrialLog::Change(int64_t number) {
  changed_.push_back(number);
  return result_.trials[static_cast<size_t>(number - 1)];
}

Status TrialLog::Persist() {
  const Stopwatch watch(clock_, result_.spent.persisting);
  for (; persisted_ < result_.trials.size(); ++persisted_) {
    const Trial& trial = result_.trials[persisted_];
    if (store_ != nullptr) ATUNNER_RETURN_IF_ERROR(store_->AppendTrial(run_.id, trial));
    Emit({.kind = TuneEvent::Kind::kTrial, .trial = trial});
  }
  for (int64_t number : std::exchange(changed_, {})) {
    if (store_ != nullptr) ATUNNER_RETURN_IF_ERROR(store_->UpdateTrial(run_.id, At(number)));
  }
  return {};
}

std::optional<double> TrialLog::BestNs() const {
  std::optional<double> best;
  for (const Trial& trial : result_.trials) {
    const auto ns = trial.ObjectiveNs();
    if (ns && (!best || *ns < *best)) best = ns;
  }
  return best;
}

void TrialLog::Emit(TuneEvent event) const {
  event.best_ns = BestNs();
  event.trials_done = static_cast<int64_t>(result_.trials.size());
  event.seconds = RunSeconds();
  event.space_size = result_.space_size;
  listener_(event);
}

}  // namespace atunner
