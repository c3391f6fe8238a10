#include "atunner/platform/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace atunner::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Access, KnownHash) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Access, ScopesAreReadAndNamed) {
  EXPECT_EQ(ParseScopes("submit,read").value(), kSubmit | kRead);
  EXPECT_THAT(ScopeNames(kAdmin | kRead), ElementsAre("read", "admin"));
  EXPECT_EQ(ParseScopes("write").error().where, "scopes");
  EXPECT_FALSE(ParseScopes(""));
  EXPECT_TRUE((Token{"", "", kAdmin, "", "", ""}).May(kSubmit));
  EXPECT_TRUE((Token{"", "", kRead, "", "", ""}).May(kRead));
  EXPECT_FALSE((Token{"", "", kRead | kWork, "", "", ""}).May(kSubmit));
}

TEST(Access, ATokenWorksUntilItIsRevoked) {
  TemporaryDirectory folder;
  const auto tokens = Tokens::Open(folder.path() / "tokens.db").value();
  const NewToken made = tokens->Create("ci", kRead, std::nullopt).value();
  EXPECT_EQ(tokens->Check(made.secret).value()->name, "ci");
  EXPECT_FALSE(tokens->Check(made.secret + "0").value());
  EXPECT_FALSE(tokens->Check("").value());
  EXPECT_FALSE(tokens->List()->front().last_used.empty());
  EXPECT_EQ(tokens->Revoke(made.token.id).value(), 1);
  EXPECT_FALSE(tokens->Check(made.secret).value());
  EXPECT_EQ(tokens->Revoke("ci").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tokens->Create("", kRead, std::nullopt).error().where, "name");
}

TEST(Access, ATokenExpires) {
  TemporaryDirectory folder;
  const auto tokens = Tokens::Open(folder.path() / "tokens.db").value();
  EXPECT_TRUE(tokens->Check(tokens->Create("a", kRead, 1)->secret).value());
  EXPECT_FALSE(tokens->Check(tokens->Create("b", kRead, -1)->secret).value());
}

TEST(Access, TheFileHoldsNoSecretAndIsTheOwnersAlone) {
  TemporaryDirectory folder;
  const Path file = folder.path() / "tokens.db";
  std::string secret;
  {
    const auto tokens = Tokens::Open(file).value();
    secret = tokens->Create("ci", kRead, std::nullopt)->secret;
  }
  EXPECT_THAT(ReadFile(file).value(), Not(HasSubstr(secret.substr(4))));
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0);
}

}  // namespace
}  // namespace atunner::platform
