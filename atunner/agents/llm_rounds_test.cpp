// Rounds with a language model: a scripted local service that is good, wrong, malicious or down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/agents/rounds.h"
#include "atunner/agents/story.h"
#include "atunner/jobs/testing/fake_services_test.h"
#include "atunner/llm/scripted_endpoint_test.h"
#include "atunner/workflow/memory_checkpoints.h"

namespace atunner::agents {
namespace {

using llm::ScriptedEndpoint;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Source(const std::string& title, const std::string& text) {
  return DumpJson(Json{{"title", title}, {"why", "it is faster"}, {"source", text}});
}

class LlmRounds : public testing::Test {
 protected:
  RoundsRequest Request(const std::string& url) {
    RoundsRequest request{.rounds = 2, .ideas = 3, .implementations = 1, .keep = 0.5};
    request.optimize.task = {.operator_name = "softmax", .shapes = {{64, 512}}};
    request.optimize.tuning.target.gpu = "A100";
    request.llm.model = url;
    return request;
  }
  RoundsResult Run(const RoundsRequest& request) {
    auto result = OptimizeInRounds(request, {fakes_.services, flows_, events_});
    EXPECT_TRUE(result) << result.error().ToString();
    return result.value_or(RoundsResult());
  }
  std::vector<Idea> ModelIdeas(const RoundsResult& result) {
    std::vector<Idea> ideas = result.state.ideas;
    std::erase_if(ideas, [](const Idea& idea) { return !idea.proposer.starts_with("llm:"); });
    return ideas;
  }

  jobs::FakeServices fakes_;
  workflow::MemoryCheckpoints flows_;
  jobs::EventSink events_ = [](const jobs::Event&) {};
};

TEST_F(LlmRounds, ItsKernelsAreJudgedAsOthersAre) {
  std::vector<std::string> prompts;
  ScriptedEndpoint service([&](const std::string& request, int number) {
    prompts.push_back(request);
    return ScriptedEndpoint::OpenAi(
        Source("two rows " + std::to_string(number), "// " + std::to_string(number)));
  });
  const RoundsResult result = Run(Request(service.url()));
  const auto ideas = ModelIdeas(result);
  ASSERT_EQ(ideas.size(), 2u);
  EXPECT_EQ(ideas[0].title, "two rows 0");
  EXPECT_TRUE(ideas[0].best_ns);
  EXPECT_EQ(result.state.llm_tokens, 2 * 150);
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_THAT(prompts[1], HasSubstr("two rows 0"));  // the outcome is feedback
  EXPECT_THAT(StoryOf(result.state), HasSubstr("The language model took 300 tokens"));
  const auto trials = fakes_.stores.Open().value()->Trials(result.state.flow).value();
  EXPECT_TRUE(std::ranges::any_of(trials, [](const Trial& trial) {
    return trial.proposer().starts_with("llm:127.0.0.1") && trial.verdict.correct();
  }));
}

TEST_F(LlmRounds, AWrongAnswerIsSentBackWithTheReason) {
  std::string second;
  ScriptedEndpoint service([&](const std::string& request, int number) {
    if (number == 1) second = request;
    return ScriptedEndpoint::OpenAi(number == 0 ? "I would rather write prose."
                                                : Source("ok", "// " + std::to_string(number)));
  });
  const RoundsResult result = Run(Request(service.url()));
  EXPECT_EQ(ModelIdeas(result)[0].title, "ok");
  EXPECT_THAT(second, HasSubstr("This cannot be used: the answer is no JSON object"));
}

TEST_F(LlmRounds, AMaliciousAnswerGivesNoKernel) {
  ScriptedEndpoint service([](const std::string&, int) {
    return ScriptedEndpoint::OpenAi(Source("evil", "#include \"/etc/passwd\"\n"));
  });
  const RoundsResult result = Run(Request(service.url()));
  for (const Idea& idea : ModelIdeas(result)) {
    EXPECT_EQ(idea.status, "failed");
    EXPECT_THAT(idea.reason, HasSubstr("includes cannot be added"));
    EXPECT_TRUE(idea.candidates.empty());
  }
  EXPECT_TRUE(result.found());  // the rules' kernels are there
}

TEST_F(LlmRounds, AServiceThatRefusesEndsOnlyItsOwnPart) {
  ScriptedEndpoint service(
      [](const std::string&, int) { return ScriptedEndpoint::Http(401, "no"); });
  const RoundsResult result = Run(Request(service.url()));
  EXPECT_EQ(service.requests(), 1);  // it is not asked in the second round
  EXPECT_EQ(ModelIdeas(result).size(), 1u);
  EXPECT_THAT(result.state.llm_stop, HasSubstr("answers 401"));
  EXPECT_EQ(result.state.rounds.size(), 2u);
  EXPECT_TRUE(result.found());
}

TEST_F(LlmRounds, TheBudgetEndsItCleanly) {
  ScriptedEndpoint service([](const std::string&, int number) {
    return ScriptedEndpoint::OpenAi(Source("k", "// " + std::to_string(number)));
  });
  RoundsRequest request = Request(service.url());
  request.llm.budget = "100";
  const RoundsResult result = Run(request);
  EXPECT_EQ(service.requests(), 0);
  EXPECT_THAT(result.state.llm_stop, HasSubstr("budget is spent"));
  EXPECT_TRUE(result.found());
}

TEST_F(LlmRounds, AResumedFlowDoesNotAskAgain) {
  ScriptedEndpoint service([](const std::string&, int number) {
    return ScriptedEndpoint::OpenAi(Source("k", "// " + std::to_string(number)));
  });
  std::stop_source stop;
  const auto cancel = [&](const workflow::FlowEvent& event) {
    if (event.kind == workflow::FlowEvent::Kind::kTaskFinished && event.node == "implement" &&
        service.requests() == 1)
      stop.request_stop();
  };
  const auto cancelled = OptimizeInRounds(
      Request(service.url()), {fakes_.services, flows_, events_, cancel, stop.get_token()});
  ASSERT_TRUE(cancelled) << cancelled.error().ToString();
  ASSERT_EQ(service.requests(), 1);
  const auto resumed = ResumeRounds(cancelled->state.flow, "go",
                                    {fakes_.services, flows_, events_});
  ASSERT_TRUE(resumed) << resumed.error().ToString();
  EXPECT_EQ(service.requests(), 2);  // one for each round
  EXPECT_EQ(resumed->state.llm_tokens, 300);
}

TEST_F(LlmRounds, ARecordingRunsWithoutTheService) {
  const TemporaryDirectory folder;
  RoundsRequest request;
  {
    ScriptedEndpoint service([](const std::string&, int number) {
      return ScriptedEndpoint::OpenAi(Source("k" + std::to_string(number), "// x"));
    });
    request = Request(service.url());
    request.rounds = 1;
    request.llm.record = folder.path() / "chat.jsonl";
    ASSERT_EQ(ModelIdeas(Run(request))[0].title, "k0");
  }
  request.llm.replay = request.llm.record;
  request.optimize.tuning.fresh = true;
  EXPECT_EQ(ModelIdeas(Run(request))[0].title, "k0");
}

}  // namespace
}  // namespace atunner::agents
