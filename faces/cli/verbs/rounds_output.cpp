#include "faces/cli/verbs/rounds_output.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/agents/story.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/tuning_output.h"
#include "faces/wiring/flows.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

constexpr int kCancelled = 130;

using Job = std::function<Result<agents::RoundsResult>(const agents::RoundsContext&)>;

std::string_view StatusOf(const agents::RoundsResult& result) {
  static constexpr std::string_view kNames[] = {"finished", "waiting", "cancelled"};
  return kNames[static_cast<size_t>(result.kind)];
}

Json JsonOf(const agents::RoundsResult& result) {
  Json json = result.state.result.is_object() ? result.state.result : Json::object();
  json["flow"] = result.state.flow;
  json["flow_status"] = StatusOf(result);
  json["stop"] = result.state.stop;
  json["rounds"] = Json::array();
  for (const agents::RoundRecord& round : result.state.rounds)
    json["rounds"].push_back(ToJson(round));
  json["ideas"] = Json::array();
  for (const agents::Idea& idea : result.state.ideas) json["ideas"].push_back(ToJson(idea));
  json["lineage"] = agents::LineageJson(result.state);
  json["questions"] = Json::array();
  for (const workflow::Question& question : result.questions)
    json["questions"].push_back(
        {{"task", question.task}, {"node", question.node}, {"question", question.value}});
  return json;
}

/// One line a round, for a person who did not ask for the whole story.
std::string Rounds(const agents::RoundsState& state) {
  std::string text;
  for (const agents::RoundRecord& round : state.rounds)
    text += fmt::format(
        "round {}: against {}, {} ideas, {} kernels, {} kept, {:.4g} us -> {:.4g} us\n",
        round.round, round.bottleneck, round.ideas, round.kernels, round.kept.size(),
        round.before_ns / 1e3, round.after_ns / 1e3);
  return text + (state.stop.empty() ? "" : "ended: " + state.stop + "\n");
}

void Print(const Context& context, const agents::RoundsResult& result) {
  const std::string& flow = result.state.flow;
  if (context.common.explain)
    fmt::print("{}\n", Printable(agents::StoryOf(result.state)));
  else
    fmt::print("{}", Printable(Rounds(result.state)));
  if (result.kind == workflow::Outcome::Kind::kWaiting) {
    for (const workflow::Question& question : result.questions)
      fmt::print("waits before {}: `atunner workflow resume {}` goes on\n", question.node, flow);
  } else if (result.kind == workflow::Outcome::Kind::kCancelled) {
    fmt::print("cancelled; `atunner workflow resume {}` goes on\n", flow);
  } else {
    fmt::print("flow:     {} (`atunner lineage {}`, `atunner workflow show {}`)\n", flow, flow,
               flow);
  }
}

Result<int> Run(const Context& context, const Job& job) {
  Machine machine(context.common.store);
  ATUNNER_TRY(const auto flows, OpenFlows(context.common.store));
  const jobs::EventSink printer = TuningPrinter(context.common);
  const agents::RoundsContext doors{machine.services(), *flows, printer, nullptr, InterruptToken()};
  ATUNNER_TRY(const agents::RoundsResult result, job(doors));
  if (context.common.json)
    PrintJson(JsonOf(result));
  else
    Print(context, result);
  if (result.kind == workflow::Outcome::Kind::kCancelled) return kCancelled;
  return result.kind == workflow::Outcome::Kind::kWaiting || result.found() ? 0 : 1;
}

}  // namespace

agents::RoundsRequest RoundsFlags::Request(jobs::OptimizeRequest optimize) const {
  agents::RoundsRequest request;
  request.optimize = std::move(optimize);
  request.rounds = rounds;
  request.ideas = ideas;
  request.implementations = implementations;
  request.keep = keep;
  request.pause_before = pause_before;
  request.llm = {llm, llm_budget, llm_prices, llm_record, llm_replay};
  return request;
}

void AddRounds(CLI::App* verb, RoundsFlags& flags) {
  CLI::Option* rounds = verb->add_option(
      "--rounds", flags.rounds,
      "instead of a search: this many rounds of ideas (docs/how-to/agents.md)");
  verb->add_option("--ideas", flags.ideas, "ideas of a round")->needs(rounds);
  verb->add_option("--implementations", flags.implementations, "kernels of an idea")->needs(rounds);
  verb->add_option("--keep", flags.keep, "share of a round's ideas that the next one builds on")
      ->needs(rounds);
  verb->add_option("--pause-before", flags.pause_before,
                   "step before which the flow waits for `workflow resume`: evaluate, finish, …")
      ->needs(rounds);
  verb->add_option("--llm", flags.llm,
                   "language model that proposes kernels, too: openai:MODEL, anthropic:MODEL or "
                   "http://localhost:PORT/v1")
      ->needs(rounds);
  verb->add_option("--llm-budget", flags.llm_budget, "its limit: 200k (tokens), 2usd, or both")
      ->needs(rounds);
  verb->add_option("--llm-prices", flags.llm_prices,
                   "dollars per million tokens of input and of output: 1.25,10")
      ->needs(rounds);
  verb->add_option("--llm-record", flags.llm_record, "file for its answers")->needs(rounds);
  verb->add_option("--llm-replay", flags.llm_replay, "file of such answers in its place")
      ->needs(rounds);
}

Result<int> RunRounds(const Context& context, const agents::RoundsRequest& request) {
  return Run(context, [&](const agents::RoundsContext& doors) {
    return agents::OptimizeInRounds(request, doors);
  });
}

Result<int> ResumeFlow(const Context& context, const std::string& flow, const std::string& answer) {
  return Run(context, [&](const agents::RoundsContext& doors) {
    return agents::ResumeRounds(flow, answer, doors);
  });
}

}  // namespace atunner::cli
