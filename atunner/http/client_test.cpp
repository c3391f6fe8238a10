#include "atunner/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace atunner::http {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ServiceUrl, Parts) {
  const ServiceUrl url = ParseServiceUrl("https://api.example.com/v1/chat?x=1#part").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "api.example.com");
  EXPECT_EQ(url.port, "443");
  EXPECT_EQ(url.target, "/v1/chat?x=1");
  EXPECT_EQ(ParseServiceUrl("http://localhost:8000").value().port, "8000");
  EXPECT_EQ(ParseServiceUrl("http://localhost:8000").value().target, "/");
  EXPECT_EQ(ParseServiceUrl("http://[::1]:80/x").value().host, "::1");
}

TEST(ServiceUrl, RefusesWhatIsNoService) {
  for (const char* text : {"", "ftp://x", "localhost:8000", "http://", "http://:80", "http://a:b/",
                           "http://a b/", "http://a\r\nHost: b/", "http://a:123456/"})
    EXPECT_FALSE(ParseServiceUrl(text)) << text;
  const auto secret = ParseServiceUrl("http://user:secret@host/");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().ToString(), Not(HasSubstr("secret@")));
}

TEST(Send, NobodyListens) {
  ClientRequest request{.url = "http://127.0.0.1:1/", .timeout_seconds = 5};
  request.headers = {{"Authorization", "Bearer key-1234"}};
  const auto response = Send(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().ToString(), HasSubstr("127.0.0.1"));
  EXPECT_THAT(response.error().ToString(), Not(HasSubstr("key-1234")));
}

TEST(Send, AStopComesFirst) {
  std::stop_source stop;
  stop.request_stop();
  const auto response = Send({.url = "http://127.0.0.1:1/"}, stop.get_token());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace atunner::http
