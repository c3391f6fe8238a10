// How jobs are announced on a stream of NATS: one message for each time that a job begins to wait.
// The server's queue stays the truth; a message only says which worker should ask for which job.
//
// The consumers of a stream are classes of jobs: the labels that they ask for, and whether their
// priority is high (above 0), normal (0) or low. A worker takes messages of the classes whose
// labels it has, high ones first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/queue/queue.h"

namespace atunner::platform {

/// "normal-any", or "high-gpu=H200,site=lab": the name of the consumer of such jobs. Labels are
/// percent-encoded.
std::string ConsumerOf(const queue::Job& job);

/// Those of `consumers` whose jobs a worker with these labels can take, in the order in which it
/// looks: high priorities before normal and low ones, among equal ones more labels first. Names
/// that are no classes of jobs are left out.
std::vector<std::string> ConsumersFor(const queue::Labels& labels,
                                      std::vector<std::string> consumers);

/// "atunner.jobs.normal-any.j-20261127-225512-3f2a9c01.7": the stream, the class, the job and its
/// version, which differs between the times that it waits.
std::string SubjectOf(const std::string& stream, const queue::Job& job);
/// All subjects of a class.
std::string SubjectsOf(const std::string& stream, const std::string& consumer);

struct JobSubject {
  std::string consumer;
  std::string job;
  int64_t version = 0;
};
/// nullopt for a subject of another stream or form.
std::optional<JobSubject> ParseSubject(const std::string& stream, std::string_view subject);

struct JobMessage {
  std::string job;
  std::string server;  ///< "http://host:8080"
};
std::string ToText(const JobMessage& message);
Result<JobMessage> ParseJobMessage(const std::string& text);

}  // namespace atunner::platform
