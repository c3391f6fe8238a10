#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/build_id.h"
#include "atunner/base/clock.h"
#include "atunner/base/digest.h"
#include "atunner/base/dylib.h"
#include "atunner/base/files.h"
#include "atunner/base/random.h"

namespace atunner {
namespace {

using testing::HasSubstr;

TEST(BuildId, IsWhatTheLinkerWrote) {
  const std::string id = BuildId();
  EXPECT_GE(id.size(), 16u) << "another build's trials would be taken for this one's";
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(id, BuildId());
}

TEST(Result, ErrorSaysWhereWhatHint) {
  const Error error{ErrorCode::kInvalidInput, "unknown operator 'sofmax'", "command line", "did you mean 'softmax'?"};
  EXPECT_EQ(error.ToString(), "command line: unknown operator 'sofmax'\n  hint: did you mean 'softmax'?");
  EXPECT_EQ(ExitCode(error.code), 2);
}

TEST(Digest, FieldBoundariesCount) {
  const std::string a[] = {"ab", "c"};
  const std::string b[] = {"a", "bc"};
  EXPECT_NE(DigestOf(a), DigestOf(b));
  EXPECT_EQ(DigestOf("x").ToHex().size(), 32u);
}

TEST(Files, WriteIsAtomicAndMakesParents) {
  TemporaryDirectory dir;
  const Path path = dir.path() / "a" / "b.txt";
  ASSERT_TRUE(WriteFileAtomic(path, "one"));
  ASSERT_TRUE(WriteFileAtomic(path, "two"));
  EXPECT_EQ(ReadFile(path).value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1) << "no temporary is left";
}

TEST(Files, MissingFileAndFolderAreToldApart) {
  TemporaryDirectory dir;
  EXPECT_EQ(ReadFile(dir.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ReadFile(dir.path()).error().what, HasSubstr("folder"));
}

TEST(Random, IsDeterministicAndInRange) {
  Random a(7), b(7);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(a.Next(), b.Next());
    const double u = a.Uniform();
    b.Uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ASSERT_LT(a.Below(3), 3u);
    b.Below(3);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(DynamicLibrary, SaysWhatIsMissing) {
  const std::string names[] = {"libdoes-not-exist.so.1"};
  auto library = DynamicLibrary::Open(names);
  ASSERT_FALSE(library.has_value());
  EXPECT_EQ(library.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(library.error().what, HasSubstr("libdoes-not-exist"));
}

}  // namespace
}  // namespace atunner
