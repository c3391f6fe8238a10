#include "atunner/workflow/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

namespace atunner::workflow {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kPollSeconds = 0.02;

/// Calls the node; an exception of its code becomes an error.
Result<NodeResult> Guarded(const StepSettings& settings, const Node& node,
                           const NodeContext& context, size_t task) {
  try {
    return settings.call(node, context, task);
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInternal, std::string("an exception: ") + error.what());
  }
}

bool IsWorthRetrying(const RetryPolicy& policy, int attempt, const Error& error) {
  return attempt < policy.attempts && (!policy.retry_on || policy.retry_on(error));
}

/// The end of an attempt in a thread of the pool.
struct Ended {
  size_t task;
  int attempt;
  Result<NodeResult> result;
};

/// Shared with the threads, which may outlive the step when a node ignores its stop token.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<Ended> ended;

  void Put(Ended one) {
    {
      const std::scoped_lock lock(mutex);
      ended.push_back(std::move(one));
    }
    arrived.notify_one();
  }
  std::vector<Ended> Take(double seconds) {
    std::unique_lock lock(mutex);
    arrived.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !ended.empty(); });
    return std::exchange(ended, {});
  }
};

}  // namespace

struct StepRunner::Pool {
  explicit Pool(int count) : threads(static_cast<size_t>(std::max(1, count))) {}
  ~Pool() { threads.join(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  boost::asio::thread_pool threads;
};

StepRunner::StepRunner(StepSettings settings) : settings_(std::move(settings)) {}
StepRunner::~StepRunner() = default;

void StepRunner::SleepBefore(const RetryPolicy& policy, int attempt) const {
  const double until = settings_.clock->Now() + policy.SecondsBefore(attempt);
  while (settings_.clock->Now() < until && !MustStop())
    settings_.clock->Sleep(std::min(kPollSeconds, until - settings_.clock->Now()));
}

Status StepRunner::RunHere(const State& state, std::vector<StepTask>& tasks, size_t at) {
  StepTask& task = tasks[at];
  const std::function<void(Json)> emit = [this, at](Json value) {
    settings_.emit(at, std::move(value));
  };
  settings_.on_start(at);
  for (int attempt = 1;; ++attempt) {
    const NodeContext context{state, task.input, task.answers, settings_.stop, attempt, emit};
    auto result = Guarded(settings_, *task.node, context, at);
    const RetryPolicy& policy = task.node->options.retry;
    if (result || MustStop() || !IsWorthRetrying(policy, attempt, result.error())) {
      task.result = std::move(result);
      return settings_.on_end(at);
    }
    settings_.on_retry(at, result.error());
    SleepBefore(policy, attempt + 1);
  }
}

Result<bool> StepRunner::Run(const std::shared_ptr<const State>& state,
                             std::vector<StepTask>& tasks) {
  const bool limited = std::ranges::any_of(
      tasks, [](const StepTask& task) { return task.node->options.timeout_seconds > 0; });
  if (limited || (settings_.threads > 1 && tasks.size() > 1)) return RunInPool(state, tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].result) continue;
    if (MustStop()) break;
    ATUNNER_RETURN_IF_ERROR(RunHere(*state, tasks, i));
  }
  return false;
}

/// One super-step in the pool.
class StepRunner::PoolStep {
 public:
  PoolStep(const StepSettings& settings, boost::asio::thread_pool& pool,
           std::shared_ptr<const State> state, std::vector<StepTask>& tasks)
      : settings_(settings),
        pool_(pool),
        state_(std::move(state)),
        tasks_(tasks),
        slots_(tasks.size()) {
    for (size_t i = 0; i < tasks.size(); ++i) slots_[i].done = tasks[i].result.has_value();
  }

  /// True if a node was abandoned.
  Result<bool> Run() {
    while (true) {
      const double now = settings_.clock->Now();
      const std::optional<double> next = StartDue(now);
      if (!next) break;
      for (Ended& one : mailbox_->Take(std::max(0.0, *next - now))) {
        const Slot& slot = slots_[one.task];
        if (slot.running && slot.attempt == one.attempt) End(one.task, std::move(one.result));
      }
      AbandonLate();
    }
    if (!status_) return std::unexpected(status_.error());
    return abandoned_;
  }

 private:
  /// The progress of one task.
  struct Slot {
    int attempt = 0;
    bool running = false;
    bool done = false;
    double due = 0;            ///< when the next attempt begins
    double deadline = kNever;  ///< of the running attempt
    std::stop_source stop = std::stop_source(std::nostopstate);
  };

  bool MustStop() const {
    return settings_.stop.stop_requested() || settings_.drain.stop_requested() || !status_;
  }
  /// Starts the attempts that are due. Returns when to look again; nullopt: there is nothing to
  /// wait for.
  std::optional<double> StartDue(double now) {
    const bool stopping = MustStop();
    double next = now + kPollSeconds;
    bool waiting = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (slot.done) continue;
      if (!slot.running && !stopping && slot.due <= now) Start(i, now);
      if (slot.running && settings_.stop.stop_requested()) slot.stop.request_stop();
      waiting = waiting || slot.running || !stopping;
      next = std::min(next, slot.running ? slot.deadline : std::max(now, slot.due));
    }
    return waiting ? std::optional(next) : std::nullopt;
  }

  void Start(size_t at, double now) {
    Slot& slot = slots_[at];
    if (slot.attempt++ == 0) settings_.on_start(at);
    slot.running = true;
    slot.stop = std::stop_source();
    const double seconds = tasks_[at].node->options.timeout_seconds;
    slot.deadline = seconds > 0 ? now + seconds : kNever;
    Post(at, slot.attempt, slot.stop.get_token());
  }

  /// Everything that the thread uses is its own or shared: the step may end before it does.
  void Post(size_t at, int attempt, std::stop_token stop) {
    std::optional<Json> input;
    if (tasks_[at].input != nullptr) input = *tasks_[at].input;
    boost::asio::post(pool_, [mailbox = mailbox_, &settings = settings_, state = state_,
                              node = tasks_[at].node, input = std::move(input),
                              answers = tasks_[at].answers, at, attempt, stop = std::move(stop)] {
      const std::function<void(Json)> emit = [&](Json value) {
        const std::scoped_lock lock(mailbox->mutex);
        if (!stop.stop_requested()) settings.emit(at, std::move(value));
      };
      const NodeContext context{*state, input ? &*input : nullptr, answers, stop, attempt, emit};
      mailbox->Put({at, attempt, Guarded(settings, *node, context, at)});
    });
  }

  void End(size_t at, Result<NodeResult> result) {
    Slot& slot = slots_[at];
    slot.running = false;
    const RetryPolicy& policy = tasks_[at].node->options.retry;
    if (!result && !MustStop() && IsWorthRetrying(policy, slot.attempt, result.error())) {
      settings_.on_retry(at, result.error());
      slot.due = settings_.clock->Now() + policy.SecondsBefore(slot.attempt + 1);
      return;
    }
    slot.done = true;
    tasks_[at].result = std::move(result);
    if (auto kept = settings_.on_end(at); !kept && status_) status_ = std::move(kept);
  }

  void AbandonLate() {
    const double now = settings_.clock->Now();
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].running || now < slots_[i].deadline) continue;
      {
        const std::scoped_lock lock(mailbox_->mutex);  // no event of it is on its way after this
        slots_[i].stop.request_stop();
      }
      abandoned_ = true;
      End(i, Fail(ErrorCode::kTimeout,
                  fmt::format("no result after {} s", tasks_[i].node->options.timeout_seconds)));
    }
  }

  const StepSettings& settings_;
  boost::asio::thread_pool& pool_;
  std::shared_ptr<const State> state_;
  std::vector<StepTask>& tasks_;
  std::vector<Slot> slots_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  Status status_;
  bool abandoned_ = false;
};

Result<bool> StepRunner::RunInPool(const std::shared_ptr<const State>& state,
                                   std::vector<StepTask>& tasks) {
  if (!pool_) pool_ = std::make_unique<Pool>(settings_.threads);
  return PoolStep(settings_, pool_->threads, state, tasks).Run();
}

}  // namespace atunner::workflow
