#include "atunner/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stop_token>
#include <string>

namespace atunner::http {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ServiceUrl, Parts) {
  const ServiceUrl url = ParseServiceUrl("https://api.example.com/v1/chat?x=1#part").value();
  EXPECT_TRUE(url.origin.tls);
  EXPECT_EQ(url.origin.host, "api.example.com");
  EXPECT_EQ(url.origin.port, "443");
  EXPECT_EQ(url.target, "/v1/chat?x=1");
  EXPECT_EQ(ParseServiceUrl("http://localhost:8000").value().origin.port, "8000");
  EXPECT_EQ(ParseServiceUrl("http://localhost:8000").value().target, "/");
  EXPECT_EQ(ParseServiceUrl("http://[::1]:80/x").value().origin.host, "::1");
}

TEST(ServiceUrl, RefusesWhatIsNoService) {
  for (const char* text : {"", "ftp://x", "localhost:8000", "http://", "http://:80", "http://a:b/",
                           "http://a b/", "http://a\r\nHost: b/", "http://a:123456/"})
    EXPECT_FALSE(ParseServiceUrl(text)) << text;
  const auto secret = ParseServiceUrl("http://user:secret@host/");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().ToString(), Not(HasSubstr("secret@")));
}

TEST(Proxy, IsTheEnvironmentsExceptForItsExceptions) {
  const auto proxy = [](const char* to, std::map<std::string, std::string> variables) {
    const auto found = ProxyFor(ParseOrigin(to, "to").value(),
                                [&](const std::string& name) -> std::optional<std::string> {
                                  const auto at = variables.find(name);
                                  if (at == variables.end()) return std::nullopt;
                                  return at->second;
                                });
    if (!found) return "refused at " + found.error().where;
    return *found ? (*found)->Text() : std::string("none");
  };
  EXPECT_EQ(proxy("https://a.org", {}), "none");
  EXPECT_EQ(proxy("https://a.org", {{"https_proxy", "http://p:3128"}}), "http://p:3128");
  EXPECT_EQ(proxy("https://a.org", {{"HTTPS_PROXY", "p:3128/"}}), "http://p:3128");
  EXPECT_EQ(proxy("http://a.org", {{"https_proxy", "http://p:3128"}}), "none");
  EXPECT_EQ(proxy("http://a.org", {{"HTTP_PROXY", "http://p:3128"}}), "none");
  EXPECT_EQ(proxy("http://a.org", {{"http_proxy", "http://p:3128"}}), "http://p:3128");
  EXPECT_EQ(proxy("http://127.0.0.1:8000", {{"http_proxy", "http://p:3128"}}), "none");
  for (const char* list : {"a.org", ".org", "x, a.org", "*", "org"})
    EXPECT_EQ(proxy("http://a.org", {{"http_proxy", "http://p:1"}, {"no_proxy", list}}), "none")
        << list;
  EXPECT_EQ(proxy("http://ba.org", {{"http_proxy", "http://p:1"}, {"no_proxy", "a.org"}}),
            "http://p:1");
  EXPECT_EQ(proxy("http://a.org", {{"http_proxy", "socks5://p:1"}}), "refused at https_proxy");
}

TEST(Call, NobodyListens) {
  Request request{.method = "POST", .target = "/"};
  request.headers = {{"Authorization", "Bearer key-1234"}};
  CallOptions options;
  options.seconds = 5;
  options.hint = "is it running?";
  const auto response = Call({.host = "127.0.0.1", .port = "1"}, request, options);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().hint, "is it running?");
  EXPECT_THAT(response.error().ToString(), HasSubstr("127.0.0.1"));
  EXPECT_THAT(response.error().ToString(), Not(HasSubstr("key-1234")));
}

TEST(Call, AStopComesFirst) {
  std::stop_source stop;
  stop.request_stop();
  CallOptions options;
  options.stop = stop.get_token();
  const auto response = Call({.host = "127.0.0.1", .port = "1"}, {.method = "GET"}, options);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace atunner::http
