#include "atunner/compile/worker_compiler.h"

#include <fmt/format.h>
#include <malloc.h>

#include <nlohmann/json.hpp>

#include "atunner/compile/messages.h"
#include "atunner/model/json/json.h"

namespace atunner {
namespace {

/// True for the answer of a worker that cannot compile at all; its Error is the field "failure".
bool IsFailure(const Json& reply) { return reply.is_object() && reply.contains("failure"); }

/// The outcome of an answer that cannot be read: the source has damaged the compiler's memory.
CompileOutcome InvalidAnswer(const Error& error) {
  CompileOutcome outcome;
  outcome.crashed = true;
  outcome.error = "the answer of the compiler cannot be read: " + error.ToString();
  return outcome;
}

Json Serve(Compiler& compiler, const std::string& message) {
  const auto answer = [&]() -> Result<CompileOutcome> {
    ATUNNER_TRY(const Json json, ParseJson(message, "compile request"));
    ATUNNER_TRY(const CompileRequest request, RequestFromJson(json));
    return compiler.Compile(request);
  }();
  return answer ? ToJson(*answer) : Json{{"failure", answer.error().ToString()}};
}

/// One compilation allocates and frees tens of megabytes in small pieces. A worker that returned
/// them to the system after each compilation would spend a tenth of its time on page faults.
void KeepMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
}

}  // namespace

Result<WorkerProcess> WorkerCompiler::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      WorkerProcess worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return WorkerProcess::Start(options_.worker);
}

void WorkerCompiler::Return(WorkerProcess worker) {
  if (!worker.alive()) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

CompileOutcome WorkerCompiler::OutcomeOfDeath(const WorkerDeath& death,
                                              const std::stop_token& stop) const {
  CompileOutcome outcome;
  outcome.timed_out = death.timed_out;
  outcome.crashed = !death.timed_out;
  if (stop.stop_requested()) {
    outcome.error = "compiling was stopped";
  } else if (death.timed_out) {
    outcome.error = fmt::format("did not compile within {:g} s", options_.timeout_seconds);
  } else {
    outcome.error = "the compiler " + death.ToString() +
                    (death.last_words.empty() ? "" : "\n" + death.last_words);
  }
  return outcome;
}

Result<CompileOutcome> WorkerCompiler::Compile(const CompileRequest& request,
                                               const std::stop_token& stop) {
  ATUNNER_TRY(WorkerProcess worker, Take());
  const auto reply = worker.Call(DumpJson(ToJson(request)), options_.timeout_seconds, stop);
  if (!reply) return OutcomeOfDeath(*worker.death(), stop);
  const auto json = ParseJson(*reply, "the compile worker's answer");
  if (!json) return InvalidAnswer(json.error());  // the worker is not used again
  if (IsFailure(*json)) {
    return Fail(ErrorCode::kUnavailable,
                "the compile worker cannot compile: " + DumpJson((*json)["failure"]));
  }
  auto outcome = OutcomeFromJson(*json);
  if (!outcome) return InvalidAnswer(outcome.error());
  Return(std::move(worker));
  return outcome;
}

int ServeCompiler(Compiler& compiler) {
  KeepMemory();
  WorkerChannel channel;
  while (const std::optional<std::string> message = channel.Receive()) {
    if (!channel.Send(DumpJson(Serve(compiler, *message)))) break;
  }
  return 0;
}

}  // namespace atunner
