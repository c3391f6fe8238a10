#include "atunner/platform/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "atunner/platform/tar.h"

namespace atunner::platform {
namespace {

TEST(JobFiles, PathsThatLeadElsewhereAreNotSafe) {
  for (const char* path : {"kernel.cu", "size_1/kernel.cu", "a-b_c+d.x"})
    EXPECT_TRUE(IsSafePath(path)) << path;
  for (const char* path : {"", "/", "/etc/passwd", "..", "a/../b", "a//b", "a/", ".hidden", "a b",
                           "a\\b", "1/2/3/4/5/6/7/8/9", "a\n"})
    EXPECT_FALSE(IsSafePath(path)) << path;
  EXPECT_TRUE(IsSafeId("j-20261127-1"));
  EXPECT_FALSE(IsSafeId("../x"));
  EXPECT_FALSE(IsSafeId(""));
}

TEST(JobFiles, UploadsAreFoundByTheirId) {
  TemporaryDirectory folder;
  Uploads uploads(folder.path());
  const Upload begun = uploads.Begin("kernel.cu").value();
  EXPECT_EQ(uploads.Find(begun.id).error().code, ErrorCode::kNotFound);  // not finished
  ASSERT_TRUE(WriteFileAtomic(begun.file, "text"));
  const Upload found = uploads.Find(begun.id).value();
  EXPECT_EQ(found.name, "kernel.cu");
  EXPECT_EQ(found.bytes, 4);
  for (const char* name : {"", "x.exe", "../kernel.cu", ".cu", "a/b.cu", "kernel"})
    EXPECT_EQ(uploads.Begin(name).error().where, "name") << name;
  EXPECT_FALSE(uploads.Find("../" + begun.id));
  EXPECT_FALSE(uploads.Find("none"));
}

TEST(JobFiles, IncludesStayBesideTheSource) {
  for (const char* good : {"#include <cuda_fp16.h>\n", "#include \"mine.h\"", "int include = 1;",
                           "# pragma once\n", "// #include is a word\n"})
    EXPECT_TRUE(CheckIncludes(good)) << good;
  for (const char* bad :
       {"#include \"/etc/passwd\"", "  #  include </etc/passwd>", "#include \"../../store\"",
        "#include FILE", "#inc\\\nlude \"/etc/passwd\"", "%:include \"/etc/passwd\"",
        "#include_next </x>", "#if __has_include(\"/etc/passwd\")", "#embed \"/etc/passwd\"",
        "int a;\r\n#include \"/x\"\r\n"})
    EXPECT_FALSE(CheckIncludes(bad)) << bad;
}

TEST(JobFiles, LinksAreNoFilesOfAnArtifact) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "b", "bb"));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "a" / "c", "c"));
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "link");
  const auto files = FilesBelow(folder.path());
  ASSERT_EQ(files.size(), 2);
  EXPECT_EQ(files[0].path, "a/c");
  EXPECT_EQ(files[1].bytes, 2);
  EXPECT_TRUE(FilesBelow(folder.path() / "none").empty());
}

TEST(Tar, TheSystemsTarReadsIt) {
  TemporaryDirectory folder;
  const std::string text(1000, 'x');
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "in" / "sub" / "kernel.cu", text));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "in" / "empty", ""));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "a.tar", TarOf(folder.path() / "in", "job").value()));
  const std::string command = "tar -xf " + (folder.path() / "a.tar").string() + " -C " +
                              folder.path().string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(ReadFile(folder.path() / "job" / "sub" / "kernel.cu").value(), text);
  EXPECT_EQ(ReadFile(folder.path() / "job" / "empty").value(), "");
  EXPECT_FALSE(TarOf(folder.path() / "in", std::string(100, 'p')));
}

}  // namespace
}  // namespace atunner::platform
