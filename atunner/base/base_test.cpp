#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "atunner/base/build_id.h"
#include "atunner/base/clock.h"
#include "atunner/base/command.h"
#include "atunner/base/demangle.h"
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
  const Error error{ErrorCode::kInvalidInput, "unknown operator 'sofmax'", "command line",
                    "did you mean 'softmax'?"};
  EXPECT_EQ(error.ToString(),
            "command line: unknown operator 'sofmax'\n  hint: did you mean 'softmax'?");
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
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1)
      << "no temporary is left";
}

TEST(Files, MissingFileAndFolderAreToldApart) {
  TemporaryDirectory dir;
  EXPECT_EQ(ReadFile(dir.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ReadFile(dir.path()).error().what, HasSubstr("folder"));
}

// Data files that are FIFOs or /dev/zero were read for ever.
TEST(Files, PipesAndDevicesAreNotRead) {
  const TemporaryDirectory dir;
  const Path fifo = dir.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const Path& path : {fifo, Path("/dev/zero"), Path("/dev/null")}) {
    EXPECT_EQ(ReadFile(path).error().code, ErrorCode::kInvalidInput) << path;
    EXPECT_THAT(ReadFile(path).error().what, HasSubstr("regular file")) << path;
    EXPECT_FALSE(ReadStart(path, 4).has_value()) << path;
  }
}

TEST(Files, TheLimitOfAReadIsKept) {
  const TemporaryDirectory dir;
  const Path path = dir.path() / "ten";
  ASSERT_TRUE(WriteFileAtomic(path, "0123456789"));
  EXPECT_EQ(ReadFile(path, 10).value(), "0123456789");
  EXPECT_THAT(ReadFile(path, 9).error().what, HasSubstr("larger than 9 bytes"));
  EXPECT_EQ(ReadStart(path, 4).value(), "0123");
  EXPECT_EQ(ReadStart(path, 40).value(), "0123456789");
  // The kernel states no size for this one.
  EXPECT_THAT(ReadFile("/proc/self/status").value(), HasSubstr("Pid:"));
  EXPECT_FALSE(ReadFile("/proc/self/status", 10).has_value());
}

TEST(Files, WhatCannotBeLookedAtIsNotThere) {
  const Path endless(std::string(5000, 'a'));
  EXPECT_FALSE(Exists(endless));
  EXPECT_FALSE(IsFolder(endless));
  EXPECT_FALSE(ReadFile(endless).has_value());
  EXPECT_FALSE(WriteFileAtomic(endless / "file", "").has_value());
}

// Writing to a device or a link must not replace it by a file.
TEST(Files, WhatIsNoFileIsWrittenInto) {
  const TemporaryDirectory dir;
  const Path null = dir.path() / "null", link = dir.path() / "link", file = dir.path() / "file";
  std::filesystem::create_symlink("/dev/null", null);
  EXPECT_TRUE(WriteFileAtomic(null, "text"));
  EXPECT_TRUE(std::filesystem::is_character_file(null));
  ASSERT_TRUE(WriteFileAtomic(file, "old"));
  std::filesystem::create_symlink(file, link);
  EXPECT_TRUE(WriteFileAtomic(link, "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(file).value(), "new");
  std::filesystem::create_symlink("/dev/full", dir.path() / "full");
  EXPECT_FALSE(WriteFileAtomic(dir.path() / "full", "text").has_value());
}

TEST(Files, WhereNoTemporaryFolderCanBeMadeThatIsSaid) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", "/proc", 1);
  const auto made = TemporaryDirectory::Make();
  if (before)
    ::setenv("TMPDIR", kept.c_str(), 1);
  else
    ::unsetenv("TMPDIR");
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().ToString(), HasSubstr("TMPDIR"));
}

TEST(Demangling, LeavesNamesOfCAlone) {
  EXPECT_EQ(Demangled("_Z5scalePfi"), "scale(float*, int)");
  EXPECT_EQ(Demangled("scale"), "scale");
  EXPECT_EQ(Demangled("_Z"), "_Z");
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

TEST(Command, FindsProgramsInPath) {
  EXPECT_TRUE(FindProgram("sh"));
  EXPECT_TRUE(FindProgram("/bin/sh"));
  EXPECT_FALSE(FindProgram("no-such-program"));
  EXPECT_FALSE(FindProgram("/no/such/program"));
  EXPECT_FALSE(FindProgram("/tmp")) << "a folder";
}

TEST(Command, RunsToItsEndAndKeepsWhatItWrites) {
  const TemporaryDirectory folder;
  const Path log = folder.path() / "log";
  EXPECT_EQ(RunCommand({"/bin/sh", "-c", "echo out; echo \"$1\" >&2; exit 7", "sh", "a b"}, log),
            7);
  EXPECT_EQ(ReadFile(log).value(), "out\na b\n");
  EXPECT_EQ(RunCommand({"/bin/sh", "-c", "kill -9 $$"}, log), 128 + 9);
  EXPECT_EQ(RunCommand({"/no/such/program"}, log).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace atunner
