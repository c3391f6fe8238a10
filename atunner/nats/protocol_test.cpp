#include "atunner/nats/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner::nats {
namespace {

using Kind = Operation::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// What a nats-server 2.9.10 sent for a subscription, a pull of a stored message and a pull from an
// empty consumer.
constexpr std::string_view kSession =
    "INFO {\"server_id\":\"NA\",\"headers\":true,\"jetstream\":true} \r\n"
    "+OK\r\n"
    "PONG\r\n"
    "MSG news.today 7 5\r\nhello\r\n"
    "MSG _INBOX.1 12 $JS.ACK.s.c.1.1.1.1.0 0\r\n\r\n"
    "HMSG _INBOX.2 13 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n"
    "HMSG a.b 14 back 36 38\r\nNATS/1.0\r\nNats-Msg-Id: 5\r\nEmpty:\r\n\r\nhi\r\n"
    "PING\r\n"
    "-ERR 'Authorization Violation'\r\n";

std::vector<Operation> All(Parser& parser) {
  std::vector<Operation> operations;
  while (auto next = parser.Next().value()) operations.push_back(*std::move(next));
  return operations;
}

void ExpectSession(const std::vector<Operation>& got) {
  ASSERT_EQ(got.size(), 9);
  EXPECT_EQ(got[0].kind, Kind::kInfo);
  EXPECT_THAT(got[0].text, HasSubstr("jetstream"));
  EXPECT_EQ(got[1].kind, Kind::kOk);
  EXPECT_EQ(got[2].kind, Kind::kPong);
  EXPECT_EQ(got[3].message.subject, "news.today");
  EXPECT_EQ(got[3].subscription, 7);
  EXPECT_EQ(got[3].message.payload, "hello");
  EXPECT_EQ(got[4].message.reply, "$JS.ACK.s.c.1.1.1.1.0");
  EXPECT_EQ(got[4].message.payload, "");
  EXPECT_EQ(got[5].message.status, 404);
  EXPECT_EQ(got[5].message.description, "No Messages");
  EXPECT_EQ(got[6].message.reply, "back");
  EXPECT_EQ(got[6].message.status, 0);
  EXPECT_EQ(got[6].message.payload, "hi");
  EXPECT_THAT(got[6].message.headers, ElementsAre(Pair("Nats-Msg-Id", "5"), Pair("Empty", "")));
  EXPECT_EQ(got[7].kind, Kind::kPing);
  EXPECT_EQ(got[8].kind, Kind::kError);
  EXPECT_EQ(got[8].text, "Authorization Violation");
}

TEST(NatsParser, GivesTheOperationsOfASession) {
  Parser parser;
  parser.Feed(kSession);
  ExpectSession(All(parser));
}

TEST(NatsParser, TakesPiecesOfAnySize) {
  for (size_t size = 1; size < 40; ++size) {
    Parser parser;
    std::vector<Operation> operations;
    for (size_t begin = 0; begin < kSession.size(); begin += size) {
      parser.Feed(kSession.substr(begin, size));
      for (Operation& one : All(parser)) operations.push_back(std::move(one));
    }
    ExpectSession(operations);
  }
}

TEST(NatsParser, RefusesWhatIsNotTheProtocol) {
  for (const char* text :
       {"HTTP/1.1 400 Bad Request\r\n", "MSG a 1\r\n", "MSG a x 3\r\nabc\r\n", "MSG a 1 3\r\nabcde",
        "MSG a 1 -3\r\n", "MSG a 1 99999999999\r\n", "HMSG a 1 9 4\r\n", "\r\n",
        "HMSG a 1 4 4\r\nNATS\r\n", "HMSG a 1 14 14\r\nNATS/1.0 x\r\n\r\n\r\n",
        "HMSG a 1 16 16\r\nNATS/1.0\r\nab\r\n\r\n\r\n"}) {
    Parser parser;
    parser.Feed(text);
    EXPECT_FALSE(parser.Next()) << text;
  }
  Parser parser;
  parser.Feed(std::string(300 << 10, 'x'));
  EXPECT_FALSE(parser.Next());
}

TEST(NatsText, IsTheProtocols) {
  EXPECT_EQ(PublishText("a.b", "", {}, "hi"), "PUB a.b 2\r\nhi\r\n");
  EXPECT_EQ(PublishText("a.b", "r", {}, ""), "PUB a.b r 0\r\n\r\n");
  EXPECT_EQ(PublishText("a", "r", {{"K", "v"}}, "hi"),
            "HPUB a r 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n");
  EXPECT_EQ(SubscribeText("a.>", 3), "SUB a.> 3\r\n");
  EXPECT_EQ(UnsubscribeText(3, 1), "UNSUB 3 1\r\n");
  EXPECT_EQ(UnsubscribeText(3, 0), "UNSUB 3\r\n");
}

TEST(NatsText, SubjectsHaveNoBlanksOrWildcards) {
  for (const char* good : {"a", "a.b-c", "$JS.API.INFO", "gpu=H200%20NVL,site=lab"})
    EXPECT_TRUE(IsSubject(good)) << good;
  for (const char* bad : {"", ".a", "a.", "a..b", "a b", "a\r\nPUB x", "a.*", "a.>"})
    EXPECT_FALSE(IsSubject(bad)) << bad;
}

}  // namespace
}  // namespace atunner::nats
