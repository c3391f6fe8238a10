#include "faces/cli/output/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "atunner/report/report.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/render.h"

namespace atunner::cli {

Progress::Progress(Options options) : options_(options), terminal_(::isatty(2) == 1) {}

void Progress::operator()(const jobs::Event& event) {
  if (options_.silent) return;
  if (const auto* note = std::get_if<jobs::NoteEvent>(&event))
    fmt::print(stderr, "note: {}\n", note->text);
  if (const auto* part = std::get_if<jobs::PartStartedEvent>(&event))
    fmt::print(stderr, "part {} of {}: ", part->number, part->count);
  if (const auto* started = std::get_if<jobs::RunStartedEvent>(&event)) Started(*started);
  if (const auto* compared = std::get_if<jobs::BaselineEvent>(&event)) Compared(*compared);
  if (const auto* trial = std::get_if<jobs::TrialEvent>(&event)) Tried(*trial);
  if (const auto* finalists = std::get_if<jobs::FinalistsEvent>(&event)) Line(finalists->text);
  if (const auto* stopped = std::get_if<jobs::RunStoppedEvent>(&event))
    Line("stopped: " + stopped->reason);
}

void Progress::Started(const jobs::RunStartedEvent& event) {
  budget_ = event.budget;
  evidence_ = event.evidence;
  Line(fmt::format("{} valid configurations; budget {}{}", event.space_size, budget_.ToString(),
                   event.text.empty() ? "" : "; " + event.text));
}

void Progress::Compared(const jobs::BaselineEvent& event) {
  const auto ns = event.baseline.ObjectiveNs();
  Line(
      fmt::format("baseline {}: {}", event.baseline.name,
                  ns ? FormatTime(*ns) + " " + std::string(Name(evidence_)) : event.baseline.note));
}

void Progress::Tried(const jobs::TrialEvent& event) {
  const auto ns = event.trial.ObjectiveNs();
  const std::string outcome = ns ? FormatTime(*ns) : std::string(Name(event.trial.verdict.kind));
  if (options_.explain) return Explain(event, outcome);
  const std::string best = event.best_ns ? FormatTime(*event.best_ns) : "none yet";
  const std::string text = fmt::format("{}, this one {}, best {} {}", Done(event), outcome, best,
                                       Name(evidence_));
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
    open_line_ = true;
  } else if (event.trials_done % 10 == 0 || event.trials_done == 1) {
    Line(text);
  }
}

void Progress::Explain(const jobs::TrialEvent& event, const std::string& outcome) {
  const Trial& trial = event.trial;
  Line(fmt::format("trial {}: {} -> {}{}{}", trial.number, event.configuration, outcome,
                   trial.verdict.reason.empty() ? "" : " (" + trial.verdict.reason + ")",
                   trial.note.empty() ? "" : "; " + trial.note));
}

std::string Progress::Done(const jobs::TrialEvent& event) const {
  if (budget_.trials) return fmt::format("{}/{} trials", event.trials_done, *budget_.trials);
  if (!budget_.seconds) return fmt::format("{} trials", event.trials_done);
  return fmt::format("{} trials, {:.0f} s left", event.trials_done,
                     std::max(0.0, *budget_.seconds - event.seconds));
}

void Progress::Line(const std::string& text) {
  if (open_line_) fmt::print(stderr, "\n");
  open_line_ = false;
  fmt::print(stderr, "{}\n", Printable(WithFlags(text)));
}

}  // namespace atunner::cli
