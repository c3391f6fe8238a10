#include "atunner/jobs/requests/events.h"

#include <nlohmann/json.hpp>

namespace atunner::jobs {
namespace {

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

struct Writer {
  Json operator()(const NoteEvent& e) const { return {{"event", "note"}, {"text", e.text}}; }
  Json operator()(const SizeStartedEvent& e) const {
    Json dims = Json::object();
    for (const auto& [symbol, size] : e.dims) dims[symbol] = size;
    return {{"event", "size_started"}, {"dims", dims}};
  }
  Json operator()(const PartStartedEvent& e) const {
    return {{"event", "part_started"}, {"number", e.number}, {"count", e.count}};
  }
  Json operator()(const RunStartedEvent& e) const {
    return {{"event", "run_started"},
            {"space_size", e.space_size},
            {"budget", e.budget.ToString()},
            {"evidence", Name(e.evidence)},
            {"text", e.text},
            {"run", e.run},
            {"device", e.device}};
  }
  Json operator()(const BaselineEvent& e) const {
    return {{"event", "baseline"}, {"baseline", atunner::ToJson(e.baseline)}};
  }
  Json operator()(const TrialEvent& e) const {
    return {{"event", "trial"},
            {"trial", atunner::ToJson(e.trial)},
            {"configuration", e.configuration},
            {"best_ns", OrNull(e.best_ns)},
            {"trials_done", e.trials_done},
            {"seconds", e.seconds}};
  }
  Json operator()(const FinalistsEvent& e) const {
    return {{"event", "finalists"}, {"text", e.text}};
  }
  Json operator()(const RunStoppedEvent& e) const {
    return {{"event", "run_stopped"}, {"reason", e.reason}};
  }
  Json operator()(const StageEvent& e) const {
    return {{"event", "stage"}, {"stage", Name(e.stage)}, {"task", e.task}, {"value", e.value}};
  }
  Json operator()(const RunFinishedEvent& e) const {
    return {{"event", "run_finished"}, {"result", e.result.summary}};
  }
  Json operator()(const KernelStartedEvent& e) const {
    return {{"event", "kernel_started"}, {"kernel", e.kernel}};
  }
  Json operator()(const KernelSanitizedEvent& e) const {
    return {{"event", "kernel_sanitized"},
            {"kernel", e.result.kernel},
            {"found", e.result.hazards.size()},
            {"complete", e.result.incomplete.empty()}};
  }
  Json operator()(const KernelPredictedEvent& e) const {
    return {{"event", "kernel_predicted"}, {"prediction", jobs::ToJson(e.result)}};
  }
  Json operator()(const BenchmarkStartedEvent& e) const {
    return {{"event", "benchmark_started"}, {"device", e.gpu}, {"evidence", Name(e.evidence)}};
  }
  Json operator()(const BenchmarkRowEvent& e) const {
    return {{"event", "benchmark_row"}, {"row", jobs::ToJson(e.row)}};
  }
  Json operator()(const KernelRefusedEvent& e) const {
    return {{"event", "kernel_refused"}, {"kernel", e.kernel}, {"error", e.error.ToString()}};
  }
  Json operator()(const OperatorCaseEvent& e) const {
    return {{"event", "operator_case"}, {"failure", e.failure}, {"done", e.done}, {"all", e.all}};
  }
};

}  // namespace

Json ToJson(const Event& event) { return std::visit(Writer{}, event); }

}  // namespace atunner::jobs
