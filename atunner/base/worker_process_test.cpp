#include "atunner/base/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "atunner/base/clock.h"

namespace atunner {
namespace {

using testing::HasSubstr;

WorkerProcess StartShell(const std::string& script) {
  auto worker = WorkerProcess::Start(
      {.executable = "/bin/bash", .arguments = {"-c", script}, .environment = {}});
  EXPECT_TRUE(worker.has_value());
  return std::move(worker).value();
}

TEST(WorkerProcess, EchoesWholeMessages) {
  // The length prefix comes back with the bytes, so `cat` on the channel is a complete echo server.
  WorkerProcess worker = StartShell("exec cat <&3 >&3");
  EXPECT_EQ(worker.Call("hello", 5).value(), "hello");
  EXPECT_EQ(worker.Call("", 5).value(), "");
  EXPECT_TRUE(worker.alive());
}

TEST(WorkerProcess, TimeoutKills) {
  WorkerProcess worker = StartShell("sleep 100");
  const double start = SystemClock().Now();
  auto answer = worker.Call("x", 0.2);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(worker.alive());
  EXPECT_TRUE(worker.death()->timed_out);
  EXPECT_LT(SystemClock().Now() - start, 20.0);
}

// A request larger than the channel's buffer must not wait for ever.
TEST(WorkerProcess, WhoDoesNotReadIsKilledInTimeToo) {
  WorkerProcess worker = StartShell("sleep 100");
  auto answer = worker.Call(std::string(8 << 20, 'x'), 0.2);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
}

TEST(WorkerProcess, EchoesMoreThanTheChannelHolds) {
  WorkerProcess worker = StartShell(
      "text=$(head -c 8388616 <&3 | base64); base64 -d <<< \"$text\" >&3");
  const std::string message(8 << 20, 'x');
  EXPECT_EQ(worker.Call(message, 30).value_or(""), message);
}

TEST(WorkerProcess, DeathTellsExitCodeAndLastWords) {
  WorkerProcess worker = StartShell("echo last words >&2; exit 7");
  auto answer = worker.Call("x", 5);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker.death()->exit_code, 7);
  EXPECT_THAT(worker.death()->last_words, HasSubstr("last words"));
}

TEST(WorkerProcess, DeathTellsTheSignal) {
  WorkerProcess worker = StartShell("kill -SEGV $$");
  EXPECT_FALSE(worker.Call("x", 5).has_value());
  EXPECT_EQ(worker.death()->signal, SIGSEGV);
}

TEST(WorkerProcess, PrintingForEverDoesNotBlock) {
  WorkerProcess worker = StartShell("for i in $(seq 20000); do echo noise; done; exec cat <&3 >&3");
  EXPECT_EQ(worker.Call("still here", 30).value(), "still here");
}

}  // namespace
}  // namespace atunner
