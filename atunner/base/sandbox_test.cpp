#include "atunner/base/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace atunner {
namespace {

/// The errno of a system call that failed, or 0.
int ErrorOf(long result) { return result < 0 ? errno : 0; }

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindSandboxSupport().Full())
      GTEST_SKIP() << "the kernel gives " << FindSandboxSupport().ToString();
    ASSERT_TRUE(WriteFileAtomic(folder_.path() / "store.db", "secret"));
    ASSERT_TRUE(WriteFileAtomic(folder_.path() / "upload" / "kernel.cu", "text"));
  }
  /// What `attempt` returns in a process inside the sandbox; -1 if the process died.
  int Inside(const std::function<int()>& attempt, bool device = false) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const Status entered = EnterSandbox({{folder_.path() / "upload"}, device});
      ::_exit(entered ? attempt() : 254);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string In(const char* name) const { return folder_.path() / name; }

  TemporaryDirectory folder_;
};

TEST_F(SandboxTest, NoSockets) {
  EXPECT_EQ(Inside([] { return ErrorOf(::socket(AF_INET, SOCK_STREAM, 0)); }), EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::socket(AF_INET6, SOCK_DGRAM, 0)); }), EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::socket(AF_UNIX, SOCK_STREAM, 0)); }), EPERM);
}

TEST_F(SandboxTest, NoProcessesAndPrograms) {
  EXPECT_EQ(Inside([] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return ErrorOf(child);
            }),
            EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::execl("/bin/true", "true", nullptr)); }), EPERM);
}

TEST_F(SandboxTest, OthersAreOutOfReach) {
  EXPECT_EQ(Inside([] { return ErrorOf(::kill(::getppid(), SIGTERM)); }), EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::ptrace(PTRACE_ATTACH, ::getppid(), 0, 0)); }), EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::open("/proc/1/environ", O_RDONLY)); }), EACCES);
}

TEST_F(SandboxTest, TheStoreCannotBeReadAndTheUploadCan) {
  EXPECT_EQ(Inside([&] { return ErrorOf(::open(In("store.db").c_str(), O_RDONLY)); }), EACCES);
  EXPECT_EQ(Inside([&] { return ErrorOf(::open(In("upload/kernel.cu").c_str(), O_RDONLY)); }), 0);
  const std::string around = In("upload/../store.db");
  EXPECT_EQ(Inside([&] { return ErrorOf(::open(around.c_str(), O_RDONLY)); }), EACCES);
  EXPECT_EQ(Inside([] { return ErrorOf(::open("/etc/passwd", O_RDONLY)); }), EACCES);
}

TEST_F(SandboxTest, TheDiskCannotBeFilled) {
  for (const char* name : {"store.db", "new", "upload/new", "upload/kernel.cu"})
    EXPECT_EQ(Inside([&] { return ErrorOf(::open(In(name).c_str(), O_WRONLY | O_CREAT, 0600)); }),
              EPERM)
        << name;
  EXPECT_EQ(Inside([&] { return ErrorOf(::mkdir(In("folder").c_str(), 0700)); }), EPERM);
  EXPECT_EQ(Inside([&] { return ErrorOf(::unlink(In("upload/kernel.cu").c_str())); }), EPERM);
  EXPECT_EQ(Inside([&] { return ErrorOf(::truncate(In("store.db").c_str(), 0)); }), EPERM);
  EXPECT_EQ(ReadFile(In("store.db")).value(), "secret");
}

TEST_F(SandboxTest, ThreadsMemoryAndTheSystemsFilesStay) {
  EXPECT_EQ(
      Inside([] {
        int sum = 0;
        std::thread([&] { sum = static_cast<int>(std::string(1 << 20, 'a').size() >> 20); }).join();
        return sum;
      }),
      1);
  EXPECT_EQ(Inside([] { return ErrorOf(::open("/usr/bin/env", O_RDONLY)); }), 0);
  EXPECT_EQ(Inside([] {
              ::raise(SIGKILL);
              return 0;
            }),
            -1)
      << "a process may end itself";
}

TEST_F(SandboxTest, ADeviceKeepsFilesAndLocalSockets) {
  EXPECT_EQ(Inside([] { return ErrorOf(::socket(AF_UNIX, SOCK_STREAM, 0)); }, true), 0);
  EXPECT_EQ(Inside([] { return ErrorOf(::socket(AF_INET, SOCK_STREAM, 0)); }, true), EPERM);
  EXPECT_EQ(Inside([] { return ErrorOf(::execl("/bin/true", "true", nullptr)); }, true), EPERM);
  EXPECT_EQ(Inside([&] { return ErrorOf(::open(In("store.db").c_str(), O_RDWR)); }, true), 0);
}

TEST(SandboxSupport, IsSaid) {
  EXPECT_EQ((SandboxSupport{3, true}.ToString()), "files (Landlock 3) and system calls (seccomp)");
  EXPECT_EQ((SandboxSupport{0, true}.ToString()), "system calls (seccomp)");
  EXPECT_EQ((SandboxSupport{}.ToString()), "nothing");
}

}  // namespace
}  // namespace atunner
