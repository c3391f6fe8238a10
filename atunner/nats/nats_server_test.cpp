// Client and JetStream against a real nats-server, where one is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "atunner/http/self_signed_test.h"
#include "atunner/nats/client.h"
#include "atunner/nats/jetstream.h"
#include "atunner/nats/local_server_test.h"

namespace atunner::nats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void Pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// Waits until the server that was just started answers.
bool Reach(Client& client) {
  for (int i = 0; i < 200; ++i) {
    const Status connected = client.Connect();
    if (connected || connected.error().code == ErrorCode::kInvalidInput)
      return connected.has_value();
    Pause(50);
  }
  return false;
}

class NatsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LocalServer::Program()) GTEST_SKIP() << "nats-server is not installed";
  }
  static Url UrlOf(const LocalServer& server, const std::string& credentials = "") {
    return ParseUrl("nats://" + credentials + server.Address()).value();
  }
  static bool Prepare(JetStream& jetstream) {
    for (int i = 0; i < 100; ++i) {  // JetStream is ready a little after the server itself
      if (jetstream.EnsureStream({.name = "s", .subjects = "s.>"})) break;
      Pause(50);
    }
    return jetstream.EnsureStream({.name = "s", .subjects = "s.>"}).has_value() &&
           jetstream.EnsureConsumer("s", {.name = "c", .subject = "s.c.>"}).has_value();
  }
};

TEST_F(NatsServerTest, AnswersRequestsAndKeepsMessagesOfSubscriptions) {
  LocalServer server;
  Client client(UrlOf(server), {.name = "test"});
  Client other(UrlOf(server), {.name = "other"});
  ASSERT_TRUE(Reach(client) && Reach(other));
  client.Subscribe("news.>");
  ASSERT_TRUE(client.Connect());
  ASSERT_TRUE(other.Publish("news.today", "hello"));
  ASSERT_TRUE(other.Connect());
  std::vector<Message> got;
  for (int i = 0; i < 100 && got.empty(); ++i, Pause(10)) got = client.Received();
  ASSERT_EQ(got.size(), 1);
  EXPECT_EQ(got[0].subject, "news.today");
  EXPECT_EQ(got[0].payload, "hello");
  const auto nobody = client.Request("nobody.there", "");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(nobody.error().what, HasSubstr("nobody answers"));
  EXPECT_FALSE(client.Publish("a b", ""));
}

TEST_F(NatsServerTest, DeliversUntilAcknowledged) {
  LocalServer server;
  Client client(UrlOf(server), {.name = "test"});
  ASSERT_TRUE(Reach(client));
  JetStream jetstream(client);
  ASSERT_TRUE(Prepare(jetstream));
  EXPECT_FALSE(jetstream.Pull("s", "c").value());
  ASSERT_TRUE(jetstream.PublishOnce("s.c.1", "one"));
  ASSERT_TRUE(jetstream.PublishOnce("s.c.1", "again"));
  ASSERT_TRUE(jetstream.PublishOnce("s.c.2", "two"));
  EXPECT_THAT(jetstream.Subjects("s").value(), testing::UnorderedElementsAre("s.c.1", "s.c.2"));
  const auto one = jetstream.Pull("s", "c").value();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->payload, "one");
  EXPECT_EQ(one->subject, "s.c.1");
  ASSERT_TRUE(jetstream.StillWorking(*one));
  ASSERT_TRUE(jetstream.GiveBack(*one, 0));
  std::set<std::string> seen;
  for (int i = 0; i < 100 && seen.size() < 2; ++i) {
    const auto next = jetstream.Pull("s", "c").value();
    if (!next) Pause(20);
    if (!next) continue;
    seen.insert(next->payload);
    ASSERT_TRUE(jetstream.Acknowledge(*next));
  }
  EXPECT_THAT(seen, ElementsAre("one", "two"));
  const auto states = jetstream.Consumers("s").value();
  ASSERT_EQ(states.size(), 1);
  EXPECT_EQ(states[0].Lag(), 0);
  EXPECT_THAT(jetstream.Subjects("s").value(), IsEmpty());
  EXPECT_EQ(jetstream.Subjects("unknown").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(jetstream.SubjectOf("s", 77).error().code, ErrorCode::kNotFound);
}

TEST_F(NatsServerTest, RemovesOneMessageAndKeepsTheOthers) {
  LocalServer server;
  Client client(UrlOf(server), {.name = "test"});
  ASSERT_TRUE(Reach(client));
  JetStream jetstream(client);
  ASSERT_TRUE(Prepare(jetstream));
  for (const char* subject : {"s.c.1", "s.c.2", "s.c.3"})
    ASSERT_TRUE(jetstream.PublishOnce(subject, subject));
  ASSERT_TRUE(jetstream.Remove("s", "s.c.1"));
  ASSERT_TRUE(jetstream.Remove("s", "s.c.1"));
  for (const char* subject : {"s.c.2", "s.c.3"}) {
    const auto got = jetstream.Pull("s", "c").value();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->subject, subject);
    ASSERT_TRUE(jetstream.Acknowledge(*got));
  }
}

TEST_F(NatsServerTest, OutlivesAServerThatIsKilled) {
  LocalServer server;
  Client client(UrlOf(server), {.name = "test", .seconds = 2});
  ASSERT_TRUE(Reach(client));
  JetStream jetstream(client);
  ASSERT_TRUE(Prepare(jetstream));
  ASSERT_TRUE(jetstream.PublishOnce("s.c.1", "one"));
  server.Kill();
  const auto refused = jetstream.Pull("s", "c");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().hint, HasSubstr("nats-server running"));
  server.Start();
  ASSERT_TRUE(Reach(client));
  std::optional<Delivery> again;
  for (int i = 0; i < 100 && !again; ++i, Pause(20)) {
    if (auto pulled = jetstream.Pull("s", "c")) again = *std::move(pulled);
  }
  ASSERT_TRUE(again);
  EXPECT_EQ(again->payload, "one");
}

TEST_F(NatsServerTest, RefusesWrongCredentials) {
  LocalServer server("authorization { user: me, password: \"p@ss\" }\n");
  Client wrong(UrlOf(server, "me:hidden@"), {.name = "wrong"});
  EXPECT_FALSE(Reach(wrong));
  const Status refused = wrong.Connect();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(refused.error().where, "--queue");
  EXPECT_THAT(refused.error().ToString(), testing::Not(HasSubstr("hidden")));
  Client right(UrlOf(server, "me:p%40ss@"), {.name = "right"});
  EXPECT_TRUE(Reach(right));
}

TEST_F(NatsServerTest, SpeaksTls) {
  TemporaryDirectory folder;
  const Path certificate = folder.path() / "cert.pem";
  const Path key = folder.path() / "key.pem";
  http::WriteSelfSigned(certificate, key);
  LocalServer server("tls { cert_file: \"" + certificate.string() + "\", key_file: \"" +
                     key.string() + "\" }\n");
  Client client(UrlOf(server), {.name = "test", .authorities = certificate});
  ASSERT_TRUE(Reach(client));
  JetStream jetstream(client);
  ASSERT_TRUE(Prepare(jetstream));
  ASSERT_TRUE(jetstream.PublishOnce("s.c.1", std::string(100'000, 'x')));
  EXPECT_EQ(jetstream.Pull("s", "c").value()->payload.size(), 100'000);
  Client distrustful(UrlOf(server), {.name = "test"});
  const Status refused = distrustful.Connect();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("certificate is not accepted"));
}

}  // namespace
}  // namespace atunner::nats
