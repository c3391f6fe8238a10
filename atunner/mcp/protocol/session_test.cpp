// The protocol with an offer of its own: no kernels are involved.
#include "atunner/mcp/protocol/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/mcp/protocol/schema.h"

namespace atunner::mcp {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class OneResource : public Resources {
 public:
  Result<std::vector<ResourceInfo>> List() override {
    return std::vector<ResourceInfo>{{"x://a", "a", "the one", "text/plain"}};
  }
  std::vector<ResourceInfo> Templates() override {
    return {{"x://{name}", "any", "", "text/plain"}};
  }
  Result<ResourceText> Read(const std::string& uri) override {
    if (uri != "x://a") return Fail(ErrorCode::kNotFound, "no such text");
    return ResourceText{"text/plain", "hello"};
  }
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    const Json schema = {{"type", "object"},
                         {"properties", {{"n", {{"type", "integer"}, {"minimum", 0}}}}},
                         {"required", {"n"}},
                         {"additionalProperties", false}};
    offer_.name = "test";
    offer_.version = "1";
    offer_.resources = &resources_;
    offer_.tools.push_back({"twice", "Twice", "2 n", schema, true,
                            [this](const Json& arguments, const CallContext& context) {
                              context.progress(1, 2, "half");
                              stop_ = context.stop;
                              return Result<Json>(Json{{"n", 2 * arguments["n"].get<int>()}});
                            }});
    offer_.tools.push_back({"fail", "Fail", "", Json{{"type", "object"}}, true,
                            [](const Json&, const CallContext&) -> Result<Json> {
                              return Invalid("no", "here", "mend it");
                            }});
    offer_.prompts.push_back({"greet", "Greet", "", {{"who", "whom", true}}, [](const Json& a) {
                                return "hello " + a["who"].get<std::string>();
                              }});
  }

  Session::Work Accept(const std::string& text) { return session_.Accept(text, send_); }
  /// The last message that was sent, after the work that the text asks for.
  Json Answer(const std::string& text) {
    sent_.clear();
    if (const Session::Work work = Accept(text)) work();
    return sent_.empty() ? Json() : ParseJson(sent_.back()).value();
  }
  Json Request(const std::string& method, const Json& params) {
    return Answer(
        DumpJson({{"jsonrpc", "2.0"}, {"id", 7}, {"method", method}, {"params", params}}));
  }
  void Begin() { Request("initialize", {{"protocolVersion", "2025-11-25"}}); }
  static Json Meta(const char* version = "2026-07-28") {
    return {{"io.modelcontextprotocol/protocolVersion", version},
            {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  }

  OneResource resources_;
  Offer offer_;
  std::vector<std::string> sent_;
  std::stop_token stop_;
  Session::Send send_ = [this](const std::string& text) { sent_.push_back(text); };
  Session session_{offer_};
};

TEST_F(SessionTest, BeginsWithInitialize) {
  EXPECT_EQ(Request("tools/list", Json::object())["error"]["code"], -32602);
  EXPECT_EQ(Request("initialize", Json::object())["error"]["code"], -32602);
  EXPECT_EQ(Request("ping", Json::object())["result"], Json::object());
  const Json answer = Request("initialize", {{"protocolVersion", "2024-11-05"}});
  EXPECT_EQ(answer["result"]["protocolVersion"], "2025-11-25") << "the revision that is served";
  EXPECT_EQ(answer["result"]["serverInfo"]["name"], "test");
  EXPECT_THAT(Request("tools/list", Json::object())["result"]["tools"], SizeIs(2));
  EXPECT_TRUE(Answer(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").is_null());
}

TEST_F(SessionTest, CallsToolsWithCheckedArguments) {
  Begin();
  const Json called = Request("tools/call", {{"name", "twice"}, {"arguments", {{"n", 4}}}});
  EXPECT_EQ(called["result"]["structuredContent"]["n"], 8);
  EXPECT_EQ(called["result"]["isError"], false);
  EXPECT_EQ(called["result"]["content"][0]["text"], R"({"n":8})");
  EXPECT_THAT(sent_, SizeIs(1)) << "no progress unless it is asked for";
  const Json wrong = Request("tools/call", {{"name", "twice"}, {"arguments", {{"m", 4}}}});
  EXPECT_EQ(wrong["result"]["isError"], true);
  EXPECT_THAT(
      wrong["result"]["structuredContent"]["error"]["what"].get<std::string>(),
      testing::AllOf(HasSubstr("arguments.n is missing"), HasSubstr("arguments.m is no argument")));
  const Json failed = Request("tools/call", {{"name", "fail"}});
  EXPECT_EQ(failed["result"]["structuredContent"]["error"]["hint"], "mend it");
  EXPECT_EQ(Request("tools/call", {{"name", "none"}})["error"]["code"], -32602);
}

TEST_F(SessionTest, SaysHowFarACallIs) {
  Begin();
  Request("tools/call",
          {{"name", "twice"}, {"arguments", {{"n", 1}}}, {"_meta", {{"progressToken", "p"}}}});
  ASSERT_THAT(sent_, SizeIs(2));
  const Json progress = ParseJson(sent_.front()).value();
  EXPECT_EQ(progress["method"], "notifications/progress");
  EXPECT_EQ(progress["params"]["progressToken"], "p");
  EXPECT_EQ(progress["params"]["total"], 2.0);
}

TEST_F(SessionTest, ACancelledCallIsNotAnswered) {
  Begin();
  const char* call =
      R"({"jsonrpc":"2.0","id":"c","method":"tools/call",
          "params":{"name":"twice","arguments":{"n":1}}})";
  const Session::Work work = Accept(call);
  ASSERT_TRUE(work);
  sent_.clear();
  EXPECT_FALSE(Accept(call)) << "the id is taken";
  EXPECT_EQ(ParseJson(sent_.back()).value()["error"]["code"], -32600);
  Answer(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}})");
  Answer(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}})");
  work();
  EXPECT_TRUE(stop_.stop_requested());
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_TRUE(Accept(call)) << "the id is free again";
}

TEST_F(SessionTest, ServesResourcesAndPrompts) {
  Begin();
  EXPECT_EQ(Request("resources/list", Json::object())["result"]["resources"][0]["uri"], "x://a");
  EXPECT_EQ(Request("resources/templates/list",
                    Json::object())["result"]["resourceTemplates"][0]["uriTemplate"],
            "x://{name}");
  EXPECT_EQ(Request("resources/read", {{"uri", "x://a"}})["result"]["contents"][0]["text"],
            "hello");
  EXPECT_EQ(Request("resources/read", {{"uri", "x://b"}})["error"]["code"], -32002);
  EXPECT_EQ(Request("resources/read", {{"uri", "x://b"}, {"_meta", Meta()}})["error"]["code"],
            -32602);
  EXPECT_EQ(Request("prompts/list", Json::object())["result"]["prompts"][0]["name"], "greet");
  EXPECT_EQ(Request("prompts/get",
                    {{"name", "greet"},
                     {"arguments", {{"who", "you"}}}})["result"]["messages"][0]["content"]["text"],
            "hello you");
  EXPECT_EQ(Request("prompts/get", {{"name", "greet"}})["error"]["code"], -32602);
  EXPECT_EQ(Request("prompts/get", {{"name", "none"}})["error"]["code"], -32602);
}

TEST_F(SessionTest, AnswersEachStatelessRequestForItself) {
  const Json found = Request("server/discover", {{"_meta", Meta()}})["result"];
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_FALSE(found["capabilities"].contains("logging")) << "levels are stated by each request";
  EXPECT_EQ(found["supportedVersions"], Json::array({"2026-07-28"}));
  EXPECT_EQ(found["cacheScope"], "private");
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], "1");
  const Json called = Request("tools/call",
                              {{"name", "twice"}, {"arguments", {{"n", 1}}}, {"_meta", Meta()}});
  EXPECT_EQ(called["result"]["resultType"], "complete");
  EXPECT_FALSE(called["result"].contains("ttlMs")) << "a call is not to be cached";
  EXPECT_EQ(Request("ping", {{"_meta", Meta()}})["error"]["code"], -32601);
  EXPECT_EQ(Request("initialize", {{"_meta", Meta()}})["error"]["code"], -32601);
  EXPECT_EQ(Request("server/discover", Json::object())["error"]["code"], -32602);
  Begin();
  EXPECT_EQ(Request("server/discover", Json::object())["error"]["code"], -32602)
      << "also in a session";
  Json incomplete = Meta();
  incomplete.erase("io.modelcontextprotocol/clientCapabilities");
  EXPECT_EQ(Request("tools/list", {{"_meta", incomplete}})["error"]["code"], -32602);
  const Json newer = Request("tools/list", {{"_meta", Meta("2099-01-01")}})["error"];
  EXPECT_EQ(newer["code"], -32022);
  EXPECT_EQ(newer["data"]["requested"], "2099-01-01");
}

TEST_F(SessionTest, RefusesWhatIsNoMessage) {
  EXPECT_EQ(Answer("{")["error"]["code"], -32700);
  EXPECT_EQ(Answer("[]")["error"]["code"], -32600);
  EXPECT_EQ(Answer(R"({"id":1,"method":"ping"})")["error"]["code"], -32600);
  EXPECT_EQ(Answer(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})")["error"]["code"], -32600);
  const Json wrong = Answer(R"({"jsonrpc":"2.0","id":3,"method":"ping","params":[]})");
  EXPECT_EQ(wrong["error"]["code"], -32602);
  EXPECT_EQ(wrong["id"], 3);
  EXPECT_EQ(Answer(std::string(kLargestMessage + 1, ' '))["error"]["code"], -32600);
  EXPECT_TRUE(Answer(R"({"jsonrpc":"2.0","id":1,"result":{}})").is_null()) << "an answer";
}

TEST(Schema, NamesEveryFaultWithItsPlace) {
  const Json schema = ParseJson(R"({"type":"object","additionalProperties":{"type":"boolean"},
    "properties":{"list":{"type":"array","minItems":1,"maxItems":2,"items":{"type":["integer","string"],
    "maxLength":3,"maximum":9}},"one":{"enum":["a","b"]},"any":{"anyOf":[{"type":"null"},
    {"type":"number","minimum":1}]}}})")
                          .value();
  const auto fault = [&](const char* value) {
    const Status fits = CheckSchema(schema, ParseJson(value).value(), "x");
    return fits ? std::string() : fits.error().what;
  };
  EXPECT_EQ(fault(R"({"list":[1,"abc"],"one":"a","any":null,"more":true})"), "");
  EXPECT_EQ(fault(R"({"any":1.5})"), "");
  EXPECT_EQ(fault("[]"), "x must be of type object");
  EXPECT_EQ(fault(R"({"list":[]})"), "x.list needs at least 1 items");
  EXPECT_EQ(fault(R"({"list":[1,2,3]})"), "x.list may have at most 2 items");
  EXPECT_EQ(fault(R"({"list":[10,"abcd"]})"),
            "x.list[0] must be at most 9; x.list[1] may have at most 3 bytes");
  EXPECT_EQ(fault(R"({"list":[1.5]})"), "x.list[0] must be of type integer or string");
  EXPECT_EQ(fault(R"({"one":"c"})"), "x.one must be one of [\"a\",\"b\"]");
  EXPECT_EQ(fault(R"({"any":0})"), "x.any must be of type null");
  EXPECT_EQ(fault(R"({"more":1})"), "x.more must be of type boolean");
}

}  // namespace
}  // namespace atunner::mcp
