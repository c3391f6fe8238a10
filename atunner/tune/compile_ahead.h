// Compiling in the background while the device judges.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>

#include "atunner/compile/compiler.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// A configuration on its way from the searcher to the judge.
struct Compiled {
  Configuration configuration;
  Result<RenderedKernel> rendered;
  Result<CompileOutcome> outcome;
};

/// One thread per configuration that was submitted and not taken. Ending it asks those still at
/// work to stop and waits.
class CompileAhead {
 public:
  using Work = std::function<Compiled(const Configuration&, const std::stop_token&)>;

  explicit CompileAhead(Work work) : work_(std::move(work)) {}
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  void Submit(Configuration configuration);
  size_t size() const { return ahead_.size(); }
  /// How many of them are done.
  size_t ready() const;
  /// The oldest, so that equal seeds give equal runs; after `patience_seconds` of waiting for it,
  /// whichever is ready. nullopt when `give_up` says so first. size() must not be 0.
  std::optional<Compiled> Take(const std::function<bool()>& give_up, double patience_seconds = 1);

 private:
  Work work_;
  std::stop_source stop_;
  std::deque<std::future<Compiled>> ahead_;
};

}  // namespace atunner
