#include "atunner/platform/job_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/nats/protocol.h"

namespace atunner::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

queue::Job JobOf(int priority, queue::Labels labels) {
  queue::Job job;
  job.id = "j-1";
  job.priority = priority;
  job.labels = std::move(labels);
  job.version = 3;
  return job;
}

TEST(JobMessages, ClassesNamePriorityAndLabels) {
  EXPECT_EQ(ConsumerOf(JobOf(0, {})), "normal-any");
  EXPECT_EQ(ConsumerOf(JobOf(5, {{"site", "lab"}, {"gpu", "H200"}})), "high-gpu=H200,site=lab");
  const queue::Job hostile = JobOf(-1, {{"a.b", "x y>*,=%"}});
  EXPECT_TRUE(nats::IsSubject(SubjectOf("s", hostile))) << SubjectOf("s", hostile);
  EXPECT_THAT(ConsumersFor(hostile.labels, {ConsumerOf(hostile)}),
              ElementsAre(ConsumerOf(hostile)));
  EXPECT_THAT(ConsumersFor({{"a.b", "x"}}, {ConsumerOf(hostile)}), IsEmpty());
}

TEST(JobMessages, WorkersLookAtHighPrioritiesAndManyLabelsFirst) {
  EXPECT_THAT(ConsumersFor({{"gpu", "H200"}, {"site", "lab"}},
                           {"low-any", "normal-any", "other", "normal-gpu=H200", "high-any",
                            "normal-gpu=A100", "high-gpu=H200,site=lab", "urgent-any", "high-x"}),
              ElementsAre("high-gpu=H200,site=lab", "high-any", "normal-gpu=H200", "normal-any",
                          "low-any"));
}

TEST(JobMessages, SubjectsNameJobAndVersion) {
  const std::string subject = SubjectOf("lab", JobOf(0, {{"v", "1.5"}}));
  EXPECT_EQ(subject, "lab.jobs.normal-v=1%2E5.j-1.3");
  const auto parsed = ParseSubject("lab", subject);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->job, "j-1");
  EXPECT_EQ(parsed->version, 3);
  EXPECT_EQ(parsed->consumer, "normal-v=1%2E5");
  for (const char* wrong : {"lab.jobs.normal-any.j-1", "lab.jobs.a.j-1.x", "other.jobs.a.j-1.3",
                            "lab.jobs.", "lab.jobs.a.j/1.3", "lab.jobs.a.b.j-1.3"})
    EXPECT_FALSE(ParseSubject("lab", wrong)) << wrong;
}

TEST(JobMessages, ForeignTextsAreRefused) {
  const JobMessage message = ParseJobMessage(ToText({"j-1", "http://host:80"})).value();
  EXPECT_EQ(message.job, "j-1");
  EXPECT_EQ(message.server, "http://host:80");
  for (const char* wrong : {"", "[]", "{}", R"({"job": "j-1"})", R"({"job": 1, "server": ""})",
                            R"({"job": "../x", "server": "http://h"})"})
    EXPECT_FALSE(ParseJobMessage(wrong)) << wrong;
}

}  // namespace
}  // namespace atunner::platform
