#include "faces/cli/tuning_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"
#include "faces/cli/field_paths.h"

namespace atunner::cli {

Progress::Progress(const Common& common, const ParameterSpace& space, const Budget& budget,
                   Evidence evidence)
    : silent_(common.quiet || common.json),
      explain_(common.explain),
      terminal_(::isatty(2) == 1),
      space_(space),
      budget_(budget),
      evidence_(evidence) {}

void Progress::operator()(const TuneEvent& event) {
  if (silent_) return;
  switch (event.kind) {
    case TuneEvent::Kind::kStarted:
      Line(fmt::format("{} valid configurations; budget {}{}", event.space_size, budget_.ToString(),
                       event.text.empty() ? "" : "; " + event.text));
      break;
    case TuneEvent::Kind::kBaseline: {
      const auto ns = event.baseline->ObjectiveNs();
      Line(fmt::format(
          "baseline {}: {}", event.baseline->name,
          ns ? FormatTime(*ns) + " " + std::string(Name(evidence_)) : event.baseline->note));
      break;
    }
    case TuneEvent::Kind::kTrial:
      Trial(event);
      break;
    case TuneEvent::Kind::kFinalists:
      Line(event.text);
      break;
    case TuneEvent::Kind::kFinished:
      Line("stopped: " + event.text);
      break;
  }
}

void Progress::Trial(const TuneEvent& event) {
  const auto ns = event.trial->ObjectiveNs();
  const std::string outcome = ns ? FormatTime(*ns) : std::string(Name(event.trial->verdict.kind));
  if (explain_) {
    Line(fmt::format(
        "trial {}: {} -> {}{}{}", event.trial->number, space_.Describe(event.trial->configuration),
        outcome,
        event.trial->verdict.reason.empty() ? "" : " (" + event.trial->verdict.reason + ")",
        event.trial->note.empty() ? "" : "; " + event.trial->note));
    return;
  }
  const std::string best = event.best_ns ? FormatTime(*event.best_ns) : "none yet";
  const std::string left = budget_.trials
                               ? fmt::format("{}/{} trials", event.trials_done, *budget_.trials)
                           : budget_.seconds
                               ? fmt::format("{} trials, {:.0f} s left", event.trials_done,
                                             std::max(0.0, *budget_.seconds - event.seconds))
                               : fmt::format("{} trials", event.trials_done);
  const std::string text = fmt::format("{}, this one {}, best {} {}", left, outcome, best,
                                       Name(evidence_));
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
    open_line_ = true;
  } else if (event.trials_done % 10 == 0 || event.trials_done == 1) {
    Line(text);
  }
}

void Progress::Line(const std::string& text) {
  if (open_line_) fmt::print(stderr, "\n");
  open_line_ = false;
  fmt::print(stderr, "{}\n", WithFlags(text));
}

namespace {

Json ConfigurationByName(const ParameterSpace& space, const Configuration& configuration) {
  Json json = Json::object();
  for (size_t i = 0; i < space.parameters.size(); ++i)
    std::visit([&](const auto& value) { json[space.parameters[i].name] = value; },
               configuration.values[i]);
  return json;
}

Json FrontOf(const TuneResult& result, const ParameterSpace& space) {
  Json front = Json::array();
  for (size_t i : result.front) {
    const Trial& trial = result.trials[i];
    Json point{{"trial", trial.number},
               {"time_ns", *trial.ObjectiveNs()},
               {"memory_bytes", trial.memory_bytes},
               {"configuration", ConfigurationByName(space, trial.configuration)}};
    if (const auto joules = trial.EnergyJoules()) point["energy_joules"] = *joules;
    front.push_back(std::move(point));
  }
  return front;
}

Json JsonOf(const TimeSpent& spent) {
  return {{"search", spent.search},
          {"for_compile", spent.for_compile},
          {"for_proposals", spent.for_proposals},
          {"books", spent.books},
          {"verifying", spent.verifying},
          {"timing", spent.timing},
          {"handing_over", spent.handing_over},
          {"again", spent.again},
          {"plain", spent.plain},
          {"finals", spent.finals},
          {"baselines", spent.baselines}};
}

}  // namespace

Json Summary(const RunRecord& run, const TuneResult& result, const ParameterSpace& space,
             const DeviceProfile& profile) {
  Json json{{"run", run.id},
            {"evidence", run.evidence},
            {"device", run.device},
            {"space_size", result.space_size},
            {"trials", result.trials.size()},
            {"stop_reason", result.stop_reason},
            {"floor_ns", result.floor_ns},
            {"seconds", result.seconds},
            {"judge_seconds", result.judge_seconds},
            {"compile_seconds", result.compile_seconds},
            {"spent", JsonOf(result.spent)}};
  json["baselines"] = Json::array();
  for (const Baseline& baseline : result.baselines) json["baselines"].push_back(ToJson(baseline));
  json["profile"] = ToJson(profile);
  if (!result.front.empty()) json["front"] = FrontOf(result, space);
  if (result.best) {
    json["best"] = ToJson(*result.best);
    json["best_configuration"] = ConfigurationByName(space, result.best->configuration);
  } else if (!result.trials.empty()) {
    json["refused"] = ToJson(result.trials.back().verdict);
  }
  return json;
}

}  // namespace atunner::cli
