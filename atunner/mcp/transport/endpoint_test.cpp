// The transport over HTTP, with the conformance suite's fixtures and without a network.
#include "atunner/mcp/transport/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/mcp/fixtures.h"
#include "atunner/mcp/protocol/sealed_state.h"

namespace atunner::mcp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kInitialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{"elicitation":{},"sampling":{}},"clientInfo":{"name":"t","version":"1"}}})";

/// What a client sees: the answer, after a wait where the server is not ready.
http::Response Ready(http::Response response) {
  while (response.later) {
    if (auto ready = response.later()) return *std::move(ready);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return response;
}

/// All that a stream brings until it ends.
std::string AllOf(http::Stream& stream) {
  std::string text;
  for (;;) {
    const auto [bytes, ended] = stream.Take();
    text += bytes;
    if (ended) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class EndpointTest : public testing::Test {
 protected:
  http::Response Post(const std::string& body, http::Headers headers = {},
                      const std::string& owner = "me") {
    http::Request request{.method = "POST", .target = "/mcp", .body = body};
    request.headers = std::move(headers);
    if (!request.headers.Has("Content-Type"))
      request.headers.Set("Content-Type", "application/json");
    if (!request.headers.Has("Accept"))
      request.headers.Set("Accept", "application/json, text/event-stream");
    return endpoint_.Answer(request, owner);
  }
  http::Response InSession(const std::string& body, const std::string& owner = "me") {
    return Post(body, {{"Mcp-Session-Id", session_}}, owner);
  }
  void Begin() { session_ = Ready(Post(kInitialize)).headers.Get("Mcp-Session-Id"); }
  static std::string CallText(const std::string& tool, const Json& more = Json::object()) {
    Json params{{"name", tool}, {"arguments", Json::object()}};
    params.update(more);
    return DumpJson({{"jsonrpc", "2.0"}, {"id", 7}, {"method", "tools/call"}, {"params", params}});
  }
  /// A stateless call of a tool.
  http::Response Stateless(const std::string& tool, Json more = Json::object(),
                           Json capabilities = {{"elicitation", Json::object()}}) {
    more["_meta"] = {{std::string(kVersionKey), kStateless},
                     {std::string(kCapabilitiesKey), std::move(capabilities)}};
    return Ready(Post(CallText(tool, more), {{"MCP-Protocol-Version", std::string(kStateless)},
                                             {"Mcp-Method", "tools/call"},
                                             {"Mcp-Name", tool}}));
  }
  static Json BodyOf(const http::Response& response) {
    return ParseJson(response.body, "body").value();
  }

  ManualClock clock_;
  Endpoint endpoint_{ConformanceFixtures(), clock_, {.sessions = 2, .calls = 1}};
  std::string session_;
};

TEST_F(EndpointTest, ASessionIsForTheOneWhoBeganIt) {
  Begin();
  EXPECT_EQ(session_.size(), 32);
  const std::string list = R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})";
  EXPECT_EQ(InSession(list).status, 200);
  EXPECT_EQ(InSession(list, "you").status, 404);
  EXPECT_EQ(Post(list).status, 400) << "no session";
  EXPECT_EQ(Post(list, {{"Mcp-Session-Id", "unknown"}}).status, 404);
  EXPECT_EQ(InSession(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").status, 202);
  http::Request end{.method = "DELETE", .target = "/mcp"};
  end.headers.Set("Mcp-Session-Id", session_);
  EXPECT_EQ(endpoint_.Answer(end, "you").status, 404);
  EXPECT_EQ(endpoint_.Answer(end, "me").status, 204);
  EXPECT_EQ(InSession(list).status, 404);
  EXPECT_EQ(endpoint_.Answer({.method = "GET", .target = "/mcp"}, "me").status, 405);
}

TEST_F(EndpointTest, RefusesOtherFormsOfBodies) {
  EXPECT_EQ(Post(kInitialize, {{"Content-Type", "text/plain"}}).status, 415);
  EXPECT_EQ(Post(kInitialize, {{"Accept", "text/html"}}).status, 406);
  EXPECT_EQ(Post("{").status, 400);
  EXPECT_EQ(Post("[]").status, 400);
  EXPECT_EQ(Post(kInitialize, {{"Accept", "*/*"}}).status, 200);
}

TEST_F(EndpointTest, OldSessionsMakeRoom) {
  Begin();
  clock_.Advance(1);
  const std::string first = session_;
  Begin();
  Begin();
  EXPECT_EQ(endpoint_.sessions(), 2);
  EXPECT_EQ(Post(R"({"jsonrpc":"2.0","id":2,"method":"ping"})", {{"Mcp-Session-Id", first}}).status,
            404);
  clock_.Advance(4000);
  Begin();
  EXPECT_EQ(endpoint_.sessions(), 1) << "those that were silent for an hour have ended";
}

TEST_F(EndpointTest, AnswersByStreamWhereMoreIsSaid) {
  Begin();
  const http::Response quick = Ready(InSession(CallText("test_simple_text")));
  EXPECT_EQ(quick.headers.Get("Content-Type"), "application/json");
  EXPECT_EQ(BodyOf(quick)["result"]["content"][0]["type"], "text");
  const http::Response slow = Ready(
      InSession(CallText("test_tool_with_progress", {{"_meta", {{"progressToken", "p"}}}})));
  ASSERT_TRUE(slow.stream);
  const std::string events = AllOf(*slow.stream);
  EXPECT_THAT(events, StartsWith("event: message\ndata: {"));
  EXPECT_THAT(events, HasSubstr("\"progress\":50.0"));
  EXPECT_THAT(events, HasSubstr("\"id\":7"));
}

TEST_F(EndpointTest, AsksTheClientOverTheStream) {
  Begin();
  const http::Response asked = Ready(
      InSession(CallText("test_elicitation", {{"arguments", {{"message", "who?"}}}})));
  ASSERT_TRUE(asked.stream);
  const http::Response busy = InSession(
      R"({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"test_simple_text"}})");
  EXPECT_EQ(busy.status, 503) << "one call at a time";
  EXPECT_EQ(
      InSession(R"({"jsonrpc":"2.0","id":"question-1","result":{"action":"decline"}})").status,
      202);
  EXPECT_THAT(AllOf(*asked.stream), HasSubstr("decline"));
}

TEST_F(EndpointTest, AStatelessCallAsksByItsAnswer) {
  const Json asked = BodyOf(Stateless("test_input_required_result_request_state"))["result"];
  EXPECT_EQ(asked["resultType"], "input_required");
  EXPECT_EQ(asked["inputRequests"]["confirm"]["method"], "elicitation/create");
  const Json answers = {{"confirm", {{"action", "accept"}, {"content", {{"ok", true}}}}}};
  const std::string state = asked["requestState"];
  const Json done = BodyOf(Stateless("test_input_required_result_request_state",
                                     {{"inputResponses", answers}, {"requestState", state}}));
  EXPECT_EQ(done["result"]["content"][0]["text"], "state-ok");
  // The state of one tool is none of another, and cannot be changed.
  for (const auto& [tool, wrong] :
       {std::pair{"test_input_required_result_request_state", state + "x"},
        std::pair{"test_input_required_result_tampered_state", state}}) {
    const http::Response refused = Stateless(
        tool, {{"inputResponses", answers}, {"requestState", wrong}});
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(BodyOf(refused)["error"]["code"], -32602);
  }
  const http::Response lacking = Stateless("test_missing_capability");
  EXPECT_EQ(lacking.status, 400);
  EXPECT_EQ(BodyOf(lacking)["error"]["data"]["requiredCapabilities"],
            Json({{"sampling", Json::object()}}));
}

TEST_F(EndpointTest, HeadersMustSayWhatTheMessageSays) {
  const std::string body = CallText("test_simple_text",
                                    {{"_meta",
                                      {{std::string(kVersionKey), kStateless},
                                       {std::string(kCapabilitiesKey), Json::object()}}}});
  const auto code = [&](http::Headers headers) {
    const http::Response response = Ready(Post(body, std::move(headers)));
    return response.status == 200 ? 0 : BodyOf(response)["error"]["code"].get<int>();
  };
  const std::string version(kStateless);
  EXPECT_EQ(code({{"MCP-Protocol-Version", version},
                  {"Mcp-Method", "tools/call"},
                  {"Mcp-Name", " test_simple_text "}}),
            0);
  EXPECT_EQ(code({{"MCP-Protocol-Version", version},
                  {"Mcp-Method", "tools/call"},
                  {"Mcp-Name", "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?="}}),
            0);
  EXPECT_EQ(code({{"Mcp-Method", "tools/call"}, {"Mcp-Name", "test_simple_text"}}), -32020);
  EXPECT_EQ(code({{"MCP-Protocol-Version", version}, {"Mcp-Method", "tools/call"}}), -32020);
  EXPECT_EQ(code({{"MCP-Protocol-Version", version},
                  {"Mcp-Method", "tools/list"},
                  {"Mcp-Name", "test_simple_text"}}),
            -32020);
}

TEST(SealedState, HoldsForItsPurposeAlone) {
  const std::string sealed = Seal("secret", "a", "text");
  EXPECT_EQ(Unseal("secret", "a", sealed), "text");
  EXPECT_FALSE(Unseal("secret", "b", sealed));
  EXPECT_FALSE(Unseal("other", "a", sealed));
  EXPECT_FALSE(Unseal("secret", "a", "text"));
  EXPECT_FALSE(Unseal("secret", "a", ".text"));
  EXPECT_NE(RandomId(16), RandomId(16));
}

}  // namespace
}  // namespace atunner::mcp
