// From a candidate of any kind to the kernel that a Judge examines: a configuration is rendered by
// its template and compiled, CUDA source is compiled, PTX is assembled without NVRTC.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "atunner/compile/compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/model/candidate/candidate.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

struct Compiled {
  Candidate candidate;
  Result<RenderedKernel> rendered;
  /// An Error: no compiling is possible at all.
  Result<CompileOutcome> outcome;

  bool ok() const { return rendered && outcome && outcome->ok(); }
  /// Why there is nothing to judge; nullopt when ok(), or when `outcome` is an Error.
  std::optional<Verdict> Refusal() const;
};

/// Thread-safe. Template and compiler must outlive the object.
class CandidateCompiler {
 public:
  CandidateCompiler(const ScheduleTemplate& schedule, Compiler& compiler, std::string arch)
      : schedule_(schedule), compiler_(compiler), arch_(std::move(arch)) {}

  Compiled Compile(const Candidate& candidate, const std::stop_token& stop = {}) const;
  Result<CompileOutcome> Compile(const RenderedKernel& kernel,
                                 const std::stop_token& stop = {}) const;
  /// `compiled` must be ok(). Only a template may name smaller sizes for the checks: a whole kernel
  /// is verified at the task's own size, whatever its proposer says.
  CandidateKernel KernelOf(Compiled compiled) const;

 private:
  const ScheduleTemplate& schedule_;
  Compiler& compiler_;
  std::string arch_;
};

/// Compiles and judges one candidate. A candidate that does not compile has a verdict that says so;
/// an Error means that nothing can be compiled or judged. `judge` must have begun with the task.
Result<JudgeAnswer> JudgeCandidate(Judge& judge, const CandidateCompiler& compiler,
                                   const Candidate& candidate, const JudgeOrder& order);

}  // namespace atunner
