// Runs with equal addresses as CUDA graphs: recorded once, then one launch each.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "atunner/base/result.h"
#include "runtime/cuda_driver.h"

namespace atunner::loader {

/// Puts a run into a stream.
using EnqueueRun = std::function<Status(cuda::Stream stream)>;

/// A run as an executable CUDA graph.
class RecordedRun {
 public:
  /// Records what `enqueue` puts into a stream of its own; nothing of it is executed. The context
  /// must be current.
  static Result<RecordedRun> Record(std::shared_ptr<const ContextOwner> context,
                                    const EnqueueRun& enqueue);
  RecordedRun(RecordedRun&& other) noexcept
      : context_(std::move(other.context_)), graph_(std::exchange(other.graph_, nullptr)) {}
  RecordedRun& operator=(RecordedRun&&) = delete;
  ~RecordedRun();

  Status Replay(cuda::Stream stream) const;

 private:
  explicit RecordedRun(std::shared_ptr<const ContextOwner> context)
      : context_(std::move(context)) {}

  std::shared_ptr<const ContextOwner> context_;
  GraphExec graph_ = nullptr;
};

/// The runs of one plan. The first run with certain addresses is enqueued as it is, so that the
/// driver has loaded all kernels before it records; the second one is recorded. A run that cannot
/// be recorded, or whose stream is being captured by the caller, is enqueued as it is. Thread-safe.
class RunCache {
 public:
  using Key = std::vector<uint64_t>;  ///< all addresses that the run depends on

  /// The context must be current.
  Status Run(const std::shared_ptr<const ContextOwner>& context, Key key, cuda::Stream stream,
             const EnqueueRun& enqueue);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const RecordedRun> recorded;
    bool refused = false;
  };

  /// The recorded run of the addresses, if it is time to use one.
  std::shared_ptr<const RecordedRun> Find(const std::shared_ptr<const ContextOwner>& context,
                                          Key key, const EnqueueRun& enqueue);

  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the latest first
};

}  // namespace atunner::loader
