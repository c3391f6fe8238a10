#include "atunner/nats/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner::nats {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NatsUrl, HasHostPortCredentialsAndName) {
  const Url plain = ParseUrl("nats://queue").value();
  EXPECT_EQ(plain.host, "queue");
  EXPECT_EQ(plain.port, "4222");
  EXPECT_EQ(plain.name, "atunner");
  EXPECT_FALSE(plain.tls);
  const Url full = ParseUrl("tls://me:p%40ss@[::1]:5222/lab_2").value();
  EXPECT_EQ(full.host, "::1");
  EXPECT_EQ(full.port, "5222");
  EXPECT_EQ(full.user, "me");
  EXPECT_EQ(full.password, "p@ss");
  EXPECT_EQ(full.name, "lab_2");
  EXPECT_TRUE(full.tls);
  EXPECT_THAT(full.Text(), Not(HasSubstr("p@ss")));
  EXPECT_EQ(ParseUrl("nats://secret@queue/").value().token, "secret");
}

TEST(NatsUrl, RefusalsDoNotRepeatPasswords) {
  for (const char* text : {"http://me:hidden@queue", "nats://me:hidden@", "nats://me:hidden@q:x",
                           "nats://me:hidden%4@q", "nats://me:hidden@q/a.b", "nats://me:hidden@q r",
                           "", "nats://me:hidden@q/*"}) {
    const auto url = ParseUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().where, "--queue");
    EXPECT_THAT(url.error().ToString(), Not(HasSubstr("hidden")));
  }
}

}  // namespace
}  // namespace atunner::nats
