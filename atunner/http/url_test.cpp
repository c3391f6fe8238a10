#include "atunner/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/http/origin.h"

namespace atunner::http {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Url, PathAndQueryAreDecoded) {
  const auto url = ParseUrl("/api/v1/runs/a%20b/?limit=5&q=x%26y+z&flag").value();
  EXPECT_THAT(url.path, ElementsAre("api", "v1", "runs", "a b"));
  EXPECT_THAT(url.query, ElementsAre(Pair("limit", "5"), Pair("q", "x&y z"), Pair("flag", "")));
  EXPECT_EQ(url.Find("limit"), "5");
  EXPECT_FALSE(url.Find("none"));
  EXPECT_TRUE(ParseUrl("/")->path.empty());
}

TEST(Url, PathsThatLeadElsewhereAreRefused) {
  for (const char* target :
       {"", "relative", "http://host/", "/a/../b", "/a/%2e%2e/b", "/a/..%2f..%2fetc", "/a//b",
        "/a/%5c..%5cb", "/a%00b", "/a/.", "/%", "/%4", "/%zz", "/a?x=%", "*"})
    EXPECT_FALSE(ParseUrl(target)) << target;
}

TEST(Url, EncodedTextIsDecodedAgain) {
  const std::string all = "a/b c%&=?\x7f\xc3\xa4.-_~";
  EXPECT_EQ(PercentDecode(PercentEncode(all), false), all);
  EXPECT_EQ(PercentEncode("a b"), "a%20b");
}

TEST(Origin, HostAndPort) {
  EXPECT_EQ(ParseOrigin("http://host:8080/", "--server")->Text(), "http://host:8080");
  EXPECT_EQ(ParseOrigin("http://host", "--server")->port, "80");
  const auto secure = ParseOrigin("https://host", "f");
  ASSERT_TRUE(secure);
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(secure->Text(), "https://host:443");
  for (const char* text :
       {"", "host:80", "http://", "http://h:x", "http://h/p", "http://u@h:1", "http://h:"})
    EXPECT_EQ(ParseOrigin(text, "f").error().where, "f") << text;
}

TEST(Origin, OnlyThisMachineIsLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  for (const char* host : {"", "127.", "127.example.org", "127.0.0.1.example.org", "128.0.0.1",
                           "localhost.example.org", "::2"})
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
}

}  // namespace
}  // namespace atunner::http
