#include "atunner/agents/rounds_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/agents/decision.h"
#include "atunner/agents/implement.h"
#include "atunner/agents/propose.h"
#include "atunner/agents/rewrite_ideas.h"

namespace atunner::agents {
namespace {

using workflow::GraphBuilder;
using workflow::NodeContext;
using workflow::NodeResult;
using workflow::State;
using workflow::Target;

Result<NodeResult> AnalyseOperatorNode(Workbench& bench, const NodeContext&) {
  ATUNNER_TRY(const OperatorFacts facts, AnalyseOperator(bench.tuning().schedule().spec()));
  return NodeResult{{{"operator", ToJson(facts)}}};
}

Result<NodeResult> AnalyseHardwareNode(Workbench& bench, const NodeContext&) {
  const KernelSpec& spec = bench.tuning().schedule().spec();
  ATUNNER_TRY(const OperatorFacts facts, AnalyseOperator(spec));
  return NodeResult{
      {{"hardware", ToJson(AnalyseHardware(spec, facts, bench.tuning().target().profile))}}};
}

/// Judges the template's own first choice, with which the first ideas begin.
Result<NodeResult> Baseline(Workbench& bench, const NodeContext&) {
  const ScheduleTemplate& schedule = bench.tuning().schedule();
  const Candidate candidate = MakeCandidate(schedule.space(), schedule.Default(),
                                            {"default", "the template's own choice"});
  ATUNNER_TRY(const std::vector<Trial> trials, bench.Judge({candidate}));
  Idea idea;
  idea.id = "r0.0";
  idea.title = "the template's own choice";
  idea.proposer = "default";
  SetOutcome(idea, trials);
  if (idea.best_ns) idea.status = "kept";
  NodeResult result{{{"ideas", Json::array({ToJson(idea)})}}};
  // A first choice that is refused still gives ideas a place to begin.
  if (!trials.empty()) result.updates.push_back({"versions", ToJson(Version{idea.id, trials[0]})});
  return result;
}

/// The versions with a time, fastest first; if there is none, all.
std::vector<Version> Ranked(std::vector<Version> versions) {
  const auto has_time = [](const Version& version) { return version.ns() > 0; };
  if (std::ranges::any_of(versions, has_time)) std::erase_if(versions, std::not_fn(has_time));
  std::ranges::stable_sort(versions, {}, &Version::ns);
  return versions;
}

Result<NodeResult> AnalysePerformance(Workbench& bench, const NodeContext& context) {
  ATUNNER_TRY(std::vector<Version> versions, VersionsFromJson(context.state["versions"]));
  versions = Ranked(std::move(versions));
  if (versions.empty()) return NodeResult{{{"performance", Json::object()}}};
  const HardwareFacts hardware = HardwareFromJson(context.state["hardware"]);
  return NodeResult{
      {{"performance", ToJson(bench.analyst().Analyse(versions.front().trial, hardware))}}};
}

/// Ideas whose kernels the language model writes; it chooses them itself.
std::vector<Idea> ModelIdeas(const LanguageModel& model, const RoundsRequest& request, int round,
                             const std::string& parent) {
  std::vector<Idea> ideas;
  for (int i = 0; i < std::max(1, request.ideas / 4); ++i) {
    Idea idea;
    idea.id = fmt::format("r{}.m{}", round, i + 1);
    idea.round = round;
    idea.title = "a proposal of the language model";
    idea.proposer = "llm:" + model.name;
    idea.why = "chosen by the model";
    idea.effect = "faster";
    idea.parent = parent;
    ideas.push_back(std::move(idea));
  }
  return ideas;
}

/// Adds what the counters of the fastest kernels suggest in front of ideas that are worth less.
void AddRewriteIdeas(Workbench& bench, const IdeaContext& context, std::vector<Idea>& ideas) {
  if (bench.profiler() == nullptr) return;
  const KernelSpec& spec = bench.tuning().schedule().spec();
  for (const Version& parent : context.parents) {
    const auto kernel = KernelOf(bench.tuning().schedule(), parent);
    const auto profile = kernel ? (*bench.profiler())(*kernel) : std::unexpected(kernel.error());
    if (!profile) continue;
    std::vector<Idea> more = RewriteIdeas(jobs::IdeasFor(*kernel, spec, *profile), parent,
                                          context.earlier, context.round);
    std::ranges::move(more, std::back_inserter(ideas));
  }
  std::ranges::stable_sort(ideas, {}, [](const Idea& idea) { return -idea.score; });
  if (ideas.size() > context.most) ideas.resize(context.most);
  for (size_t i = 0; i < ideas.size(); ++i)
    ideas[i].id = fmt::format("r{}.{}", context.round, i + 1);
}

Result<NodeResult> Propose(Workbench& bench, const NodeContext& context) {
  const RoundsRequest& request = bench.request();
  ATUNNER_TRY(std::vector<Version> versions, VersionsFromJson(context.state["versions"]));
  ATUNNER_TRY(std::vector<Idea> ideas, IdeasFromJson(context.state["ideas"]));
  versions = Ranked(std::move(versions));
  const auto most = static_cast<size_t>(std::ceil(request.keep * request.ideas));
  if (versions.size() > std::max<size_t>(1, most)) versions.resize(std::max<size_t>(1, most));
  const int round = context.state["round"].get<int>() + 1;
  Json proposed = Json::array();
  if (!versions.empty()) {
    const IdeaContext wanted{bench.tuning().schedule().space(),
                             versions,
                             PerformanceFromJson(context.state["performance"]),
                             ideas,
                             round,
                             static_cast<size_t>(request.ideas)};
    std::vector<Idea> round_ideas = ProposeIdeas(wanted);
    AddRewriteIdeas(bench, wanted, round_ideas);
    if (bench.model() != nullptr && context.state["llm_stop"].get<std::string>().empty()) {
      auto more = ModelIdeas(*bench.model(), request, round, versions.front().idea);
      const size_t room = static_cast<size_t>(request.ideas) -
                          std::min(more.size(), static_cast<size_t>(request.ideas));
      if (round_ideas.size() > room) round_ideas.resize(room);
      std::ranges::move(more, std::back_inserter(round_ideas));
    }
    for (Idea& idea : round_ideas) {
      const auto parent = std::ranges::find(versions, idea.parent, &Version::idea);
      if (parent != versions.end() && parent->ns() > 0) idea.parent_ns = parent->ns();
      proposed.push_back(ToJson(idea));
    }
  }
  return NodeResult{{{"ideas", proposed}, {"round", round}, {"work", nullptr}}};
}

/// One task for each idea of the round.
std::vector<Target> IdeasOfRound(const State& state) {
  std::vector<Target> targets;
  for (const Json& idea : state["ideas"]) {
    if (idea["round"] == state["round"] && idea["status"] == "open")
      targets.push_back({"implement", idea});
  }
  if (targets.empty()) targets.push_back({"decide"});
  return targets;
}

std::string FactsOf(const State& state) {
  std::string facts;
  for (const char* channel : {"operator", "hardware"})
    facts += state[channel].is_object() ? state[channel].value("summary", "") + "\n" : "";
  const PerformanceFacts performance = PerformanceFromJson(state["performance"]);
  return facts + fmt::format(
                     "The fastest kernel reaches {:.0f} % of the roofline. Its bottleneck is "
                     "{}: {}.\n",
                     100 * performance.share_of_floor, performance.bottleneck,
                     performance.evidence);
}

/// The candidates of an idea that the language model writes.
Result<NodeResult> ImplementByModel(Workbench& bench, const NodeContext& context, const Idea& idea,
                                    const Version& parent, std::vector<Idea> earlier) {
  if (bench.model() == nullptr) return Fail(ErrorCode::kInternal, "there is no language model");
  LanguageModel& model = *bench.model();
  const LlmTask task{bench.tuning().schedule(),
                     bench.tuning().target().profile,
                     parent,
                     FactsOf(context.state),
                     PerformanceFromJson(context.state["performance"]).bottleneck,
                     std::move(earlier),
                     bench.request().implementations};
  const int64_t input = model.chat->input_tokens();
  const int64_t output = model.chat->output_tokens();
  ATUNNER_TRY(const LlmKernels kernels, AskForKernels(model, idea, task, context.stop));
  Json work = Json::array();
  for (const Candidate& candidate : kernels.candidates)
    work.push_back({{"idea", idea.id}, {"candidate", atunner::ToJson(candidate)}});
  return NodeResult{{{"work", std::move(work)},
                     {"ideas", Json::array({ToJson(kernels.idea)})},
                     {"llm_stop", kernels.stop},
                     {"llm_tokens", Json::array({model.chat->input_tokens() - input,
                                                 model.chat->output_tokens() - output})}}};
}

/// The candidates of one idea. An idea whose conditions leave nothing has none.
Result<NodeResult> Implement(Workbench& bench, const NodeContext& context) {
  ATUNNER_TRY(const Idea idea, IdeaFromJson(*context.input));
  ATUNNER_TRY(const std::vector<Version> versions, VersionsFromJson(context.state["versions"]));
  ATUNNER_TRY(const std::vector<Idea> ideas, IdeasFromJson(context.state["ideas"]));
  const auto parent = std::ranges::find(versions, idea.parent, &Version::idea);
  if (parent == versions.end()) return NodeResult();
  if (idea.proposer.starts_with("llm:"))
    return ImplementByModel(bench, context, idea, *parent, ideas);
  std::set<std::string> known;
  for (const Idea& earlier : ideas)
    known.insert(earlier.candidates.begin(), earlier.candidates.end());
  const auto most = static_cast<size_t>(bench.request().implementations);
  const ScheduleTemplate& schedule = bench.tuning().schedule();
  std::vector<Candidate> candidates;
  if (idea.proposer.starts_with(kRewriteProposer)) {
    candidates = ImplementRewrite(schedule, idea, *parent, most, known)
                     .value_or(std::vector<Candidate>{});
  } else if (auto source = RestrictedSource::Make(schedule, bench.tuning().target().profile, idea,
                                                  parent->trial.candidate, std::move(known))) {
    candidates = (*source)->Ask(most);
  }
  Json work = Json::array();
  for (const Candidate& candidate : candidates)
    work.push_back({{"idea", idea.id}, {"candidate", atunner::ToJson(candidate)}});
  return NodeResult{{{"work", std::move(work)}}};
}

/// Judges all kernels of the round, idea by idea.
Result<NodeResult> Evaluate(Workbench& bench, const NodeContext& context) {
  ATUNNER_TRY(const std::vector<Idea> ideas, IdeasFromJson(context.state["ideas"]));
  std::vector<Candidate> candidates;
  std::map<std::string, std::string> ideas_of;  // by id of the candidate, the first that had it
  for (const Json& one : context.state["work"]) {
    ATUNNER_TRY(Candidate candidate, FromJson<Candidate>(one["candidate"]));
    if (!ideas_of.emplace(candidate.id.ToHex(), one["idea"].get<std::string>()).second) continue;
    candidates.push_back(std::move(candidate));
  }
  ATUNNER_TRY(const std::vector<Trial> trials, bench.Judge(candidates));
  if (bench.tuning().stopped()) return Fail(ErrorCode::kCancelled, "stopped by the user");
  Json judged = Json::array();
  Json tried = Json::array();
  for (Idea idea : ideas) {
    if (idea.round != context.state["round"] || idea.status != "open") continue;
    std::vector<Trial> own;
    for (const Trial& trial : trials) {
      if (ideas_of.at(trial.candidate.id.ToHex()) == idea.id) own.push_back(trial);
    }
    SetOutcome(idea, own);
    judged.push_back(ToJson(idea));
    for (const Trial& trial : own) {
      if (trial.candidate.id.ToHex() == idea.best) tried.push_back(ToJson(Version{idea.id, trial}));
    }
  }
  return NodeResult{{{"ideas", judged},
                     {"tried", tried},
                     {"work", nullptr},
                     {"tuning_stop", bench.tuning().stop_reason()}}};
}

Result<NodeResult> DecideNode(Workbench& bench, const NodeContext& context) {
  ATUNNER_TRY(std::vector<Idea> ideas, IdeasFromJson(context.state["ideas"]));
  ATUNNER_TRY(const std::vector<Version> versions, VersionsFromJson(context.state["versions"]));
  ATUNNER_TRY(const std::vector<Version> tried, VersionsFromJson(context.state["tried"]));
  const PerformanceFacts performance = PerformanceFromJson(context.state["performance"]);
  RoundRecord record;
  record.round = context.state["round"].get<int>();
  record.bottleneck = performance.bottleneck;
  record.evidence = performance.evidence;
  std::erase_if(ideas, [&](const Idea& idea) { return idea.round != record.round; });
  Decide(ideas, bench.request().keep);
  record.ideas = static_cast<int>(ideas.size());
  Json marked = Json::array();
  Json kept = Json::array();
  double best = Ranked(versions).empty() ? 0 : Ranked(versions).front().ns();
  record.before_ns = best;
  for (const Idea& idea : ideas) {
    marked.push_back(ToJson(idea));
    record.kernels += static_cast<int>(idea.candidates.size());
    if (idea.status != "kept") continue;
    record.kept.push_back(idea.id);
    const auto version = std::ranges::find(tried, idea.id, &Version::idea);
    if (version == tried.end()) continue;
    kept.push_back(ToJson(*version));
    best = best > 0 ? std::min(best, version->ns()) : version->ns();
  }
  record.after_ns = best;
  std::vector<RoundRecord> rounds;
  for (const Json& one : context.state["rounds"]) rounds.push_back(RoundFromJson(one));
  rounds.push_back(record);
  const double floor_ns = HardwareFromJson(context.state["hardware"]).floor_ns;
  record.stop = ideas.empty() ? "no idea is left"
                              : StopReason(rounds, bench.request(), floor_ns,
                                           context.state["tuning_stop"].get<std::string>());
  return NodeResult{{{"ideas", marked},
                     {"versions", kept},
                     {"tried", Json::array()},
                     {"rounds", ToJson(record)},
                     {"stop", record.stop}}};
}

std::vector<Target> NextRound(const State& state) {
  return {{state["stop"].get<std::string>().empty() ? "performance_analysis" : "finish"}};
}

Result<NodeResult> Finish(Workbench& bench, const NodeContext& context) {
  ATUNNER_TRY(const jobs::RunResult result,
              bench.tuning().Finish(context.state["stop"].get<std::string>()));
  return NodeResult{{{"result", result.summary}}};
}

using Agent = Result<NodeResult> (*)(Workbench&, const NodeContext&);

workflow::NodeFunction Bound(Workbench* bench, Agent agent) {
  return [bench, agent](const NodeContext& context) -> Result<NodeResult> {
    if (bench == nullptr) return Fail(ErrorCode::kInternal, "the graph was made for drawing");
    return agent(*bench, context);
  };
}

/// Keeps the first reason.
Json FirstText(Json text, const Json& update) {
  return text.get<std::string>().empty() ? update : text;
}

/// Adds two lists of numbers.
Json SumOf(Json sum, const Json& update) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i].get<int64_t>() + update[i].get<int64_t>();
  return sum;
}

/// null empties the list, a list is appended.
Json WorkOf(Json work, const Json& update) {
  if (update.is_null()) return Json::array();
  work.insert(work.end(), update.begin(), update.end());
  return work;
}

}  // namespace

workflow::Graph RoundsGraph(Workbench* bench) {
  using namespace workflow;
  GraphBuilder builder(kRoundsGraph);
  builder.Add(LastValue("operator")).Add(LastValue("hardware")).Add(LastValue("performance"));
  builder.Add(LastValue("round", 0)).Add(LastValue("stop", "")).Add(LastValue("tuning_stop", ""));
  builder.Add(Reduced("ideas", Json::array(), MergedIdeas)).Add(Appended("versions"));
  builder.Add(Reduced("work", Json::array(), WorkOf)).Add(LastValue("tried", Json::array()));
  builder.Add(Reduced("llm_tokens", Json::array({0, 0}), SumOf));
  builder.Add(Reduced("llm_stop", "", FirstText));
  builder.Add(Appended("rounds")).Add(LastValue("result"));
  builder.Node("operator_analysis", Bound(bench, AnalyseOperatorNode))
      .Node("hardware_analysis", Bound(bench, AnalyseHardwareNode))
      .Node("baseline", Bound(bench, Baseline))
      .Node("performance_analysis", Bound(bench, AnalysePerformance))
      .Node("propose", Bound(bench, Propose))
      .Node("implement", Bound(bench, Implement))
      .Node("evaluate", Bound(bench, Evaluate))
      .Node("decide", Bound(bench, DecideNode))
      .Node("finish", Bound(bench, Finish));
  builder.Edge(kStart, "operator_analysis").Edge(kStart, "hardware_analysis");
  builder.Join({"operator_analysis", "hardware_analysis"}, "baseline");
  builder.Edge("baseline", "performance_analysis").Edge("performance_analysis", "propose");
  builder.Branch("propose", IdeasOfRound, {"implement", "decide"});
  builder.Edge("implement", "evaluate").Edge("evaluate", "decide");
  builder.Branch("decide", NextRound, {"performance_analysis", "finish"});
  builder.Edge("finish", kEnd);
  auto graph = builder.Build();
  ATUNNER_CHECK(graph.has_value());
  return *std::move(graph);
}

}  // namespace atunner::agents
