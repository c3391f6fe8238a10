#include "atunner/tune/compile_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace atunner {
namespace {

Candidate Named(const std::string& name) {
  ParameterSpace space;
  space.parameters = {{"name", {Value(name)}, ""}};
  return MakeCandidate(space, {{Value(name)}}, {});
}

bool Is(const Candidate& candidate, const std::string& name) {
  return candidate.id == Named(name).id;
}

/// "slow" compiles until it is told to stop.
Compiled Work(const Candidate& candidate, const std::stop_token& stop) {
  while (Is(candidate, "slow") && !stop.stop_requested())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return {candidate, RenderedKernel{}, CompileOutcome{}};
}

bool Never() { return false; }

TEST(CompileAhead, InTheOrderOfSubmission) {
  CompileAhead ahead([](const Candidate& one, const std::stop_token& stop) {
    if (Is(one, "first")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return Work(one, stop);
  });
  for (const char* name : {"first", "second", "third"}) ahead.Submit(Named(name));
  for (const char* name : {"first", "second", "third"})
    EXPECT_TRUE(Is(ahead.Take(Never, 1e9)->candidate, name));
  EXPECT_EQ(ahead.size(), 0u);
}

TEST(CompileAhead, WhatIsReadyOvertakesWhatIsSlow) {
  CompileAhead ahead(Work);
  ahead.Submit(Named("slow"));
  // one by one: which of two is ready first, a busy machine decides
  for (const char* name : {"second", "third"}) {
    ahead.Submit(Named(name));
    EXPECT_TRUE(Is(ahead.Take(Never, 0)->candidate, name));
  }
  EXPECT_EQ(ahead.size(), 1u);
}

TEST(CompileAhead, WhatIsReadyIsTakenByWhoWouldNotWait) {
  CompileAhead ahead(Work);
  for (const char* name : {"slow", "second"}) ahead.Submit(Named(name));
  while (ahead.ready() == 0) std::this_thread::yield();
  const auto taken = ahead.Take([] { return true; }, 0);
  ASSERT_TRUE(taken) << "the slow one is in front of it";
  EXPECT_TRUE(Is(taken->candidate, "second"));
  EXPECT_EQ(ahead.ready(), 0u);
}

TEST(CompileAhead, GivesUpWhenTold) {
  CompileAhead ahead(Work);
  ahead.Submit(Named("slow"));
  int asked = 0;
  EXPECT_FALSE(ahead.Take([&] { return ++asked == 3; }));
  EXPECT_EQ(ahead.size(), 1u);
}

TEST(CompileAhead, EndingItStopsWhoIsAtWork) {
  std::atomic<int> ended = 0;
  {
    CompileAhead ahead([&](const Candidate& one, const std::stop_token& stop) {
      Compiled compiled = Work(one, stop);
      ++ended;
      return compiled;
    });
    ahead.Submit(Named("slow"));
    ahead.Submit(Named("slow"));
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace atunner
