// Chats with a scripted local service: good, slow, broken, rate-limited, cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <variant>

#include "atunner/http/self_signed_test.h"
#include "atunner/http/server.h"
#include "atunner/llm/budget.h"
#include "atunner/llm/endpoint.h"
#include "atunner/llm/http_chat.h"
#include "atunner/llm/record.h"
#include "atunner/llm/scripted_endpoint_test.h"

namespace atunner::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kKey = "sk-secret-1234";

ChatRequest Hello() {
  return {.system = "be brief", .messages = {{Message::Role::kUser, "hello"}}, .most_tokens = 100};
}

/// Asks a service that answers by `script`, without real waits between attempts.
struct Asked {
  Result<ChatReply> reply;
  int requests;
  double waited;
};
Asked Ask(const ScriptedEndpoint::Script& script, HttpChatOptions options = {}) {
  ScriptedEndpoint service(script);
  ManualClock clock;
  HttpChat chat(ParseEndpoint(service.url() + "#small").value(), kKey, clock, options);
  auto reply = chat.Ask(Hello(), {});
  return {std::move(reply), service.requests(), clock.Now()};
}

// --- endpoints and keys

TEST(Endpoint, Forms) {
  const Endpoint openai = ParseEndpoint("openai:gpt-x").value();
  EXPECT_EQ(openai.url, "https://api.openai.com/v1/chat/completions");
  EXPECT_EQ(openai.model, "gpt-x");
  EXPECT_EQ(ParseEndpoint("anthropic:c").value().api, Endpoint::Api::kAnthropic);
  const Endpoint local = ParseEndpoint("http://localhost:8000/v1/#m").value();
  EXPECT_EQ(local.url, "http://localhost:8000/v1/chat/completions");
  EXPECT_EQ(local.model, "m");
  for (const char* wrong : {"", "gpt", "openai:", "ftp://x", "http://", "http://user:pw@h/v1"})
    EXPECT_FALSE(ParseEndpoint(wrong)) << wrong;
}

TEST(Key, ComesFromTheEnvironmentAndGoesToItsOwnService) {
  const TemporaryDirectory folder;
  const auto only = [](const std::string& set) {
    return [set](const std::string& name) -> std::optional<std::string> {
      return name == set ? std::optional<std::string>("key") : std::nullopt;
    };
  };
  const Path none = folder.path() / "none";
  const Endpoint openai = ParseEndpoint("openai:x").value();
  const Endpoint other = ParseEndpoint("https://api.openai.com.example.org/v1").value();
  EXPECT_EQ(KeyFor(openai, only("OPENAI_API_KEY"), none).value(), "key");
  EXPECT_EQ(KeyFor(openai, only("ANTHROPIC_API_KEY"), none).value(), "");
  EXPECT_EQ(KeyFor(other, only("OPENAI_API_KEY"), none).value(), "");
  EXPECT_EQ(KeyFor(other, only("ATUNNER_LLM_KEY"), none).value(), "key");
}

TEST(Key, IsNotSentInTheClear) {
  const auto key = [](const std::string&) { return std::optional<std::string>("key"); };
  const Path none = "/nonexistent";
  for (const char* remote :
       {"http://example.org/v1", "http://localhost.example.org/v1", "http://10.0.0.1:8000/v1"})
    EXPECT_FALSE(KeyFor(ParseEndpoint(remote).value(), key, none)) << remote;
  for (const char* fine :
       {"https://example.org/v1", "http://localhost:1/v1", "http://127.0.0.1/v1"})
    EXPECT_EQ(KeyFor(ParseEndpoint(fine).value(), key, none).value(), "key") << fine;
}

TEST(Key, FilesMustBePrivate) {
  const TemporaryDirectory folder;
  const Path file = folder.path() / "key";
  ASSERT_TRUE(WriteFileAtomic(file, "sk-1\n").has_value());
  const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
  const Endpoint endpoint = ParseEndpoint("openai:x").value();
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto refused = KeyFor(endpoint, nothing, file);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(KeyFor(endpoint, nothing, file).value(), "sk-1");
}

// --- a good service

TEST(HttpChat, OpenAiForm) {
  std::string seen;
  const Asked asked = Ask([&](const std::string& request, int) {
    seen = request;
    return ScriptedEndpoint::OpenAi("hi");
  });
  ASSERT_TRUE(asked.reply) << asked.reply.error().ToString();
  EXPECT_EQ(asked.reply->text, "hi");
  EXPECT_EQ(asked.reply->input_tokens, 100);
  EXPECT_EQ(asked.reply->output_tokens, 50);
  EXPECT_THAT(seen, HasSubstr("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_THAT(seen, HasSubstr("Authorization: Bearer sk-secret-1234"));
  EXPECT_THAT(seen, HasSubstr(R"("model":"small")"));
  EXPECT_THAT(seen, HasSubstr(R"({"role":"system","content":"be brief"})"));
}

TEST(HttpChat, AnthropicForm) {
  http::Origin to;
  http::Request sent;
  ManualClock clock;
  HttpChat chat(
      ParseEndpoint("anthropic:c").value(), kKey, clock, {},
      [&](const http::Origin& origin, const http::Request& request,
          const http::CallOptions&) -> Result<http::Response> {
        to = origin;
        sent = request;
        return http::Response{.body = R"({"content": [{"type": "text", "text": "a"}, {"type": "x"},
                                   {"type": "text", "text": "b"}]})"};
      });
  const auto reply = chat.Ask(Hello(), {});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, "ab");
  EXPECT_GT(reply->input_tokens, 0);  // estimated
  EXPECT_EQ(to.Text() + sent.target, "https://api.anthropic.com:443/v1/messages");
  EXPECT_THAT(sent.body, HasSubstr(R"("system":"be brief")"));
  EXPECT_EQ(sent.headers.Get("x-api-key"), kKey);
}

// --- a bad one

TEST(HttpChat, RateLimitsAreWaitedFor) {
  const Asked asked = Ask([](const std::string&, int number) {
    return number < 2 ? ScriptedEndpoint::Http(429, "{}", "Retry-After: 7\r\n")
                      : ScriptedEndpoint::OpenAi("hi");
  });
  ASSERT_TRUE(asked.reply);
  EXPECT_EQ(asked.requests, 3);
  EXPECT_NEAR(asked.waited, 14, 0.5);
}

TEST(HttpChat, TooLongARateLimitIsAnError) {
  const Asked asked = Ask([](const std::string&, int) {
    return ScriptedEndpoint::Http(429, "{}", "Retry-After: 86400\r\n");
  });
  ASSERT_FALSE(asked.reply);
  EXPECT_EQ(asked.requests, 1);
}

struct Bad {
  const char* name;
  std::string answer;
};
class BadService : public testing::TestWithParam<Bad> {};
TEST_P(BadService, IsTriedAgainAndThenGivenUp) {
  const Asked asked = Ask([](const std::string&, int) { return GetParam().answer; },
                          {.attempts = 3});
  ASSERT_FALSE(asked.reply);
  EXPECT_EQ(asked.reply.error().code, ErrorCode::kUnavailable) << asked.reply.error().ToString();
  EXPECT_EQ(asked.requests, 3);
  EXPECT_THAT(asked.reply.error().ToString(), Not(HasSubstr(kKey)));
}
TEST_P(BadService, IsForgottenWhenItGetsBetter) {
  const Asked asked = Ask([](const std::string&, int number) {
    return number == 0 ? GetParam().answer : ScriptedEndpoint::OpenAi("hi");
  });
  EXPECT_TRUE(asked.reply);
}
INSTANTIATE_TEST_SUITE_P(
    All, BadService,
    testing::Values(
        Bad{"ServerError", ScriptedEndpoint::Http(500, "oops sk-secret-1234")},
        Bad{"Overloaded", ScriptedEndpoint::Http(503, "")}, Bad{"ClosedAtOnce", ""},
        Bad{"NoHttp", "hello\r\n\r\n"},
        Bad{"CutInTheBody",
            "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"choices\": [{\"mess"},
        Bad{"CutInAChunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"choices\""},
        Bad{"BrokenJson", ScriptedEndpoint::Http(200, "{\"choices\": [")},
        Bad{"OtherJson", ScriptedEndpoint::Http(200, "[1, 2]")},
        Bad{"NoChoices", ScriptedEndpoint::Http(200, "{\"choices\": []}")},
        Bad{"NoText", ScriptedEndpoint::Http(200, R"({"choices": [{"message": {"content": 3}}]})")},
        Bad{"DeepJson", ScriptedEndpoint::Http(200, std::string(5000, '['))}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(HttpChat, ARefusedKeyIsNotTriedAgainAndNotShown) {
  const Asked asked = Ask([](const std::string&, int) {
    return ScriptedEndpoint::Http(401, "bad key sk-secret-1234\x1b[31m");
  });
  ASSERT_FALSE(asked.reply);
  EXPECT_EQ(asked.requests, 1);
  EXPECT_EQ(asked.reply.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(asked.reply.error().ToString(), Not(HasSubstr(kKey)));
  EXPECT_THAT(asked.reply.error().ToString(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(asked.reply.error().hint, HasSubstr("OPENAI_API_KEY"));
}

TEST(HttpChat, ASlowServiceIsATimeOut) {
  const Asked asked = Ask(
      [](const std::string&, int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        return ScriptedEndpoint::OpenAi("late");
      },
      {.attempts = 1, .timeout_seconds = 0.1});
  ASSERT_FALSE(asked.reply);
  EXPECT_THAT(asked.reply.error().what, HasSubstr("does not answer in time"));
}

// --- over TLS

class TalkingHandler : public http::Handler {
 public:
  std::variant<http::BodyPlan, http::Response> Accept(const http::Request&) override {
    return http::BodyPlan{.max_bytes = 10000, .file = {}};
  }
  http::Response Answer(const http::Request& request) override {
    authorization = request.headers.Get("Authorization");
    return {.body = R"({"choices": [{"message": {"content": "hi"}}]})"};
  }
  http::Response Refuse(int status, const std::string&) override { return {.status = status}; }
  std::string authorization;
};

TEST(HttpChat, TheKeyGoesToAServiceWithATrustedCertificateOnly) {
  const TemporaryDirectory folder;
  http::ServerOptions options;
  options.tls_certificate = folder.path() / "certificate.pem";
  options.tls_key = folder.path() / "key.pem";
  http::WriteSelfSigned(options.tls_certificate, options.tls_key);
  TalkingHandler handler;
  const auto server = http::Server::Start(options, handler).value();
  const auto ask = [&](const std::string& host, const Path& authorities) {
    ManualClock clock;
    const std::string url = "https://" + host + ":" + std::to_string(server->port()) + "/v1";
    HttpChat chat(
        ParseEndpoint(url).value(), kKey, clock, {.attempts = 1},
        [&](http::Origin origin, const http::Request& request, const http::CallOptions& call) {
          origin.authorities = authorities;
          return http::Call(origin, request, call);
        });
    return chat.Ask(Hello(), {});
  };
  const auto untrusted = ask("127.0.0.1", {});
  ASSERT_FALSE(untrusted);
  EXPECT_THAT(untrusted.error().what, HasSubstr("certificate is not accepted"));
  EXPECT_FALSE(ask("localhost", options.tls_certificate)) << "the certificate is for 127.0.0.1";
  EXPECT_EQ(handler.authorization, "") << "nothing was sent";
  const auto trusted = ask("127.0.0.1", options.tls_certificate);
  ASSERT_TRUE(trusted) << trusted.error().ToString();
  EXPECT_EQ(trusted->text, "hi");
  EXPECT_EQ(handler.authorization, std::string("Bearer ") + kKey);
}

// --- budgets

class Parrot : public Chat {
 public:
  Result<ChatReply> Ask(const ChatRequest&, const std::stop_token&) override {
    ++asked;
    return ChatReply{"squawk " + std::to_string(asked), 40, 60};
  }
  int asked = 0;
};

TEST(Budget, Forms) {
  EXPECT_EQ(*TokenBudget::Parse("200k", "").value().tokens, 200000);
  EXPECT_EQ(*TokenBudget::Parse("1M", "").value().tokens, 1000000);
  const TokenBudget both = TokenBudget::Parse("2usd,500", "1.25,10").value();
  EXPECT_EQ(*both.dollars, 2);
  EXPECT_EQ(*both.tokens, 500);
  EXPECT_EQ(both.output_price, 10);
  for (const char* wrong : {"x", "-3", "2eur", "1k,,", "0"})
    EXPECT_FALSE(TokenBudget::Parse(wrong, "")) << wrong;
  EXPECT_THAT(TokenBudget::Parse("2usd", "").error().what, HasSubstr("prices"));
  EXPECT_FALSE(TokenBudget::Parse("1k", "1"));
  EXPECT_FALSE(TokenBudget::Parse("1k", "1,x"));
}

TEST(Budget, IsNeverExceeded) {
  BudgetedChat chat(std::make_unique<Parrot>(), TokenBudget::Parse("500", "").value());
  int answers = 0;
  Result<ChatReply> reply = ChatReply();
  while ((reply = chat.Ask(Hello(), {}))) ++answers;
  EXPECT_EQ(answers, 4);
  EXPECT_LE(chat.tokens(), 500);
  EXPECT_EQ(reply.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(reply.error().what, HasSubstr("budget is spent"));
}

TEST(Budget, Money) {
  BudgetedChat chat(std::make_unique<Parrot>(), TokenBudget::Parse("0.01usd", "10,100").value());
  ASSERT_FALSE(chat.Ask({.most_tokens = 1000}, {}));  // could cost ten cents
  ASSERT_TRUE(chat.Ask({.most_tokens = 50}, {}));
  EXPECT_NEAR(chat.dollars(), (40 * 10 + 60 * 100) / 1e6, 1e-9);
}

// --- record and replay

TEST(Record, ReplayGivesTheSameAnswersWithoutTheService) {
  const TemporaryDirectory folder;
  const Path file = folder.path() / "chat.jsonl";
  RecordingChat recording(std::make_unique<Parrot>(), file);
  ChatRequest other = Hello();
  other.messages[0].text = "other";
  ASSERT_TRUE(recording.Ask(Hello(), {}));
  ASSERT_TRUE(recording.Ask(other, {}));
  ASSERT_TRUE(recording.Ask(Hello(), {}));
  const auto replay = ReplayChat::Open(file).value();
  EXPECT_EQ(replay->Ask(other, {})->text, "squawk 2");
  EXPECT_EQ(replay->Ask(Hello(), {})->text, "squawk 1");
  EXPECT_EQ(replay->Ask(Hello(), {})->text, "squawk 3");
  EXPECT_EQ(replay->Ask(Hello(), {}).error().code, ErrorCode::kNotFound);
}

TEST(Record, DamagedFilesAreRefused) {
  const TemporaryDirectory folder;
  for (const char* text : {"x", "{}\n", "{\"request\": 3}\n"}) {
    ASSERT_TRUE(WriteFileAtomic(folder.path() / "x", text).has_value());
    EXPECT_FALSE(ReplayChat::Open(folder.path() / "x")) << text;
  }
}

}  // namespace
}  // namespace atunner::llm
