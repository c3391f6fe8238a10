#include "runtime/run_cache.h"

#include <algorithm>

namespace atunner::loader {
namespace {

/// Runs with other addresses than these many are forgotten, the oldest first.
constexpr size_t kMostRuns = 16;

/// A stream that waits for no other one.
class PrivateStream {
 public:
  static Result<PrivateStream> Make(const Driver& driver) {
    PrivateStream made(driver);
    ATUNNER_RETURN_IF_ERROR(
        driver.Check(driver.cu().graphs.create_stream(&made.stream_, kStreamNonBlocking),
                     "make a stream to record in"));
    return made;
  }
  PrivateStream(PrivateStream&& other) noexcept
      : driver_(other.driver_), stream_(std::exchange(other.stream_, nullptr)) {}
  PrivateStream& operator=(PrivateStream&&) = delete;
  ~PrivateStream() {
    if (stream_ != nullptr) driver_.cu().graphs.destroy_stream(stream_);
  }
  cuda::Stream get() const { return stream_; }

 private:
  explicit PrivateStream(const Driver& driver) : driver_(driver) {}
  const Driver& driver_;
  cuda::Stream stream_ = nullptr;
};

/// What `enqueue` puts into the stream, as a graph; the capture ends in any case.
Result<Graph> Capture(const Driver& driver, cuda::Stream stream, const EnqueueRun& enqueue) {
  const GraphFunctions& graphs = driver.cu().graphs;
  // Thread-local: what other threads do with the driver meanwhile is none of this recording's.
  ATUNNER_RETURN_IF_ERROR(
      driver.Check(graphs.begin_capture(stream, kCaptureThreadLocal), "record a run"));
  const Status enqueued = enqueue(stream);
  Graph graph = nullptr;
  const Status ended = driver.Check(graphs.end_capture(stream, &graph), "record a run");
  if (enqueued && ended) return graph;
  if (graph != nullptr) graphs.destroy_graph(graph);
  return std::unexpected(enqueued ? ended.error() : enqueued.error());
}

}  // namespace

Result<RecordedRun> RecordedRun::Record(std::shared_ptr<const ContextOwner> context,
                                        const EnqueueRun& enqueue) {
  RecordedRun recorded(std::move(context));
  const Driver& driver = recorded.context_->driver();
  ATUNNER_TRY(const PrivateStream stream, PrivateStream::Make(driver));
  ATUNNER_TRY(const Graph graph, Capture(driver, stream.get(), enqueue));
  const Status made = driver.Check(driver.cu().graphs.instantiate(&recorded.graph_, graph, 0),
                                   "make a CUDA graph of a run");
  driver.cu().graphs.destroy_graph(graph);
  if (!made) return std::unexpected(made.error());
  return recorded;
}

RecordedRun::~RecordedRun() {
  if (graph_ == nullptr) return;
  const ContextScope scope(*context_);
  if (scope.status()) context_->driver().cu().graphs.destroy_exec(graph_);
}

Status RecordedRun::Replay(cuda::Stream stream) const {
  const Driver& driver = context_->driver();
  return driver.Check(driver.cu().graphs.launch(graph_, stream), "launch a recorded run");
}

std::shared_ptr<const RecordedRun> RunCache::Find(
    const std::shared_ptr<const ContextOwner>& context, Key key, const EnqueueRun& enqueue) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(entries_, key, &Entry::key);
  if (known == entries_.end()) {
    entries_.push_front({std::move(key), nullptr, false});
    if (entries_.size() > kMostRuns) entries_.pop_back();
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, known);
  if (known->recorded || known->refused) return known->recorded;
  auto recorded = RecordedRun::Record(context, enqueue);
  known->refused = !recorded;
  if (recorded) known->recorded = std::make_shared<const RecordedRun>(*std::move(recorded));
  return known->recorded;
}

Status RunCache::Run(const std::shared_ptr<const ContextOwner>& context, Key key,
                     cuda::Stream stream, const EnqueueRun& enqueue) {
  const Driver& driver = context->driver();
  if (!driver.cu().graphs.Complete()) return enqueue(stream);
  // The driver does not answer for the legacy stream while another one is captured.
  int capturing = 0;
  const cuda::Result asked = driver.cu().graphs.is_capturing(stream, &capturing);
  if (asked != cuda::kSuccess || capturing != 0) return enqueue(stream);
  const auto recorded = Find(context, std::move(key), enqueue);
  return recorded ? recorded->Replay(stream) : enqueue(stream);
}

}  // namespace atunner::loader
