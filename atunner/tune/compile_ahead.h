// Compiling in the background while the device judges.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>

#include "atunner/judge/candidate_compiler.h"

namespace atunner {

/// One thread per candidate that was submitted and not taken. The destructor asks those that still
/// compile to stop, and waits for them.
class CompileAhead {
 public:
  using Work = std::function<Compiled(const Candidate&, const std::stop_token&)>;

  explicit CompileAhead(Work work) : work_(std::move(work)) {}
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  void Submit(Candidate candidate);
  size_t size() const { return ahead_.size(); }
  /// How many of them are compiled.
  size_t ready() const;
  /// The oldest one, so that equal seeds give equal runs; when that takes longer than
  /// `timeout_seconds`, the first that is compiled. nullopt when `give_up` returns true before.
  /// size() must not be 0.
  std::optional<Compiled> Take(const std::function<bool()>& give_up, double timeout_seconds = 1);

 private:
  Work work_;
  std::stop_source stop_;
  std::deque<std::future<Compiled>> ahead_;
};

}  // namespace atunner
