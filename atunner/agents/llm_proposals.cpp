#include "atunner/agents/llm_proposals.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/knowledge/handbook.h"
#include "atunner/knowledge/rule.h"
#include "atunner/llm/endpoint.h"
#include "atunner/llm/http_chat.h"
#include "atunner/llm/record.h"

namespace atunner::agents {
namespace {

constexpr int kAttempts = 2;  ///< of an answer that cannot be used
constexpr size_t kPages = 2;

Result<std::unique_ptr<llm::Chat>> OpenChat(const LlmOptions& options, Clock& clock,
                                            std::string& name) {
  if (!options.replay.empty()) {
    name = "replay";
    return llm::ReplayChat::Open(options.replay);
  }
  ATUNNER_TRY(const llm::Endpoint endpoint, llm::ParseEndpoint(options.model));
  name = endpoint.name;
  ATUNNER_TRY(std::string key,
              llm::KeyFor(endpoint, llm::ProcessEnvironment(), UserDataDirectory() / "llm_key"));
  std::unique_ptr<llm::Chat> chat = std::make_unique<llm::HttpChat>(endpoint, std::move(key),
                                                                    clock);
  if (options.record.empty()) return chat;
  return std::make_unique<llm::RecordingChat>(std::move(chat), options.record);
}

/// The pages of the rules with the greatest weight against a bottleneck.
std::vector<std::string> PagesFor(const std::string& bottleneck) {
  std::vector<const knowledge::Rule*> rules;
  for (const knowledge::Rule& rule : knowledge::Rules()) {
    if (rule.HelpsAgainst(bottleneck)) rules.push_back(&rule);
  }
  std::ranges::stable_sort(rules, std::greater<>(), &knowledge::Rule::weight);
  std::set<std::string_view> names;
  std::vector<std::string> pages;
  for (const knowledge::Rule* rule : rules) {
    const knowledge::Page* page = knowledge::FindPage(rule->page);
    if (pages.size() < kPages && page != nullptr && names.insert(page->name).second)
      pages.emplace_back(page->text);
  }
  return pages;
}

Result<RenderedKernel> KernelOf(const LlmTask& task) {
  const Candidate& candidate = task.parent.trial.candidate;
  if (const RenderedKernel* kernel = candidate.kernel()) return *kernel;
  return task.schedule.Render(*candidate.configuration());
}

/// One kernel; an answer that cannot be used goes back with the reason.
Result<llm::Proposal> AskOnce(llm::Chat& chat, llm::ChatRequest request,
                              const RenderedKernel& current, const std::stop_token& stop) {
  Result<llm::Proposal> proposal = Fail(ErrorCode::kInternal, "not asked");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ATUNNER_TRY(const llm::ChatReply reply, chat.Ask(request, stop));
    proposal = llm::ReadProposal(reply.text, current);
    if (proposal) return proposal;
    request.messages.push_back({llm::Message::Role::kAssistant, reply.text.substr(0, 20000)});
    request.messages.push_back({llm::Message::Role::kUser,
                                "This cannot be used: " + llm::Feedback(proposal.error().what) +
                                    ". Answer with one JSON object of the form that was asked."});
  }
  return proposal;
}

std::vector<llm::Outcome> OutcomesOf(const std::vector<Idea>& ideas) {
  std::vector<llm::Outcome> outcomes;
  for (const Idea& idea : ideas) {
    if (idea.status != "open") outcomes.push_back({idea.title, idea.status + ": " + idea.reason});
  }
  return outcomes;
}

}  // namespace

Result<std::unique_ptr<LanguageModel>> OpenLanguageModel(const LlmOptions& options, Clock& clock) {
  if (options.model.empty() && options.replay.empty()) return nullptr;
  ATUNNER_TRY(const llm::TokenBudget budget,
              llm::TokenBudget::Parse(options.budget, options.prices));
  auto model = std::make_unique<LanguageModel>();
  ATUNNER_TRY(std::unique_ptr<llm::Chat> chat, OpenChat(options, clock, model->name));
  model->chat = std::make_unique<llm::BudgetedChat>(std::move(chat), budget);
  return model;
}

Result<LlmKernels> AskForKernels(LanguageModel& model, Idea idea, const LlmTask& task,
                                 const std::stop_token& stop) {
  LlmKernels result;
  ATUNNER_TRY(const RenderedKernel current, KernelOf(task));
  llm::ProposalContext context{
      task.schedule.spec(),    task.profile, current, task.facts, PagesFor(task.bottleneck),
      OutcomesOf(task.earlier)};
  for (int i = 0; i < task.kernels; ++i) {
    auto proposal = AskOnce(*model.chat, llm::PromptFor(context), current, stop);
    if (!proposal) {
      if (proposal.error().code == ErrorCode::kCancelled) return std::unexpected(proposal.error());
      // The budget is spent, or the service is down: other ideas go on without it.
      const bool is_answer = proposal.error().where == "proposal";
      if (!is_answer) result.stop = proposal.error().what;
      if (result.candidates.empty()) idea.reason = proposal.error().ToString();
      if (!is_answer) break;
      continue;
    }
    if (result.candidates.empty()) {
      idea.title = proposal->title;
      idea.why = proposal->why;
    }
    context.earlier.push_back({proposal->title, "proposed just now; propose something else"});
    result.candidates.push_back(MakeSourceCandidate(
        std::move(proposal->kernel),
        {idea.proposer, idea.id + ": " + proposal->title, task.parent.trial.candidate.id}));
  }
  result.idea = std::move(idea);
  return result;
}

}  // namespace atunner::agents
