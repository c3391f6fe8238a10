#include "atunner/queue/sqlite_queue.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/base/wall_clock.h"
#include "atunner/model/json/json.h"
#include "atunner/queue/schema.h"
#include "atunner/store/statement.h"

namespace atunner::queue {
namespace {

constexpr int kBusyMilliseconds = 20000;

constexpr const char* kSelect =
    "SELECT id, name, payload, priority, labels, state, cancel, created, started, ended, attempts, "
    "max_attempts, worker, progress, result, error, version, failures, losses, max_losses FROM "
    "jobs ";

std::string LabelText(const Labels& labels) {
  Json json = Json::object();
  for (const auto& [name, value] : labels) json[name] = value;
  return DumpJson(json);
}

Labels ReadLabels(const std::string& text) {
  Labels labels;
  const auto json = ParseJson(text);
  if (!json || !json->is_object()) return labels;
  for (const auto& [name, value] : json->items()) labels[name] = value.get<std::string>();
  return labels;
}

Job ReadJob(const Statement& row) {
  Job job;
  job.id = row.Column(0);
  job.name = row.Column(1);
  job.payload = row.Column(2);
  job.priority = row.IntegerColumn(3);
  job.labels = ReadLabels(row.Column(4));
  job.state = ParseState(row.Column(5)).value_or(State::kFailed);
  job.cancel_requested = row.IntegerColumn(6) != 0;
  job.created = row.Column(7);
  job.started = row.Column(8);
  job.ended = row.Column(9);
  job.attempts = row.IntegerColumn(10);
  job.max_attempts = row.IntegerColumn(11);
  job.worker = row.Column(12);
  job.progress = row.Column(13);
  job.result = row.Column(14);
  job.error = row.Column(15);
  job.version = row.IntegerColumn(16);
  job.failures = row.IntegerColumn(17);
  job.losses = row.IntegerColumn(18);
  job.max_losses = row.IntegerColumn(19);
  return job;
}

/// 64 random bits from the system, as 16 hexadecimal digits.
std::string RandomHex() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// "j-20261127-225512-3f2a9c01".
std::string NewId() {
  const std::string now = UtcTimestamp();  // 2026-11-27T22:55:12Z
  return fmt::format("j-{}{}{}-{}{}{}-{}", now.substr(0, 4), now.substr(5, 2), now.substr(8, 2),
                     now.substr(11, 2), now.substr(14, 2), now.substr(17, 2),
                     RandomHex().substr(0, 8));
}

bool HasAll(const Labels& has, const Labels& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& one) {
    const auto found = has.find(one.first);
    return found != has.end() && found->second == one.second;
  });
}

std::unexpected<Error> LostLease(const std::string& job) {
  return Invalid("job '" + job + "' is no longer leased to this worker", std::string(kLeaseField),
                 "stop working on it, and ask for another job");
}

std::string StateList(const std::vector<State>& states) {
  std::string list;
  for (const State state : states)
    list += fmt::format("{}'{}'", list.empty() ? "" : ",", Name(state));
  return list;
}

}  // namespace

double SecondsSince1970() { return static_cast<double>(NanosecondsSince1970()) * 1e-9; }

Result<std::unique_ptr<SqliteQueue>> SqliteQueue::Open(const Path& file, WallClock now) {
  if (file.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(file.parent_path()));
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<SqliteQueue> queue(new SqliteQueue(handle, file, std::move(now)));
  if (code != SQLITE_OK) return queue->Failure("open the queue");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  ATUNNER_RETURN_IF_ERROR(PrepareQueueSchema(handle, file));
  return queue;
}

SqliteQueue::~SqliteQueue() { sqlite3_close(handle_); }

std::unexpected<Error> SqliteQueue::Failure(std::string_view action) const {
  return QueueFailure(handle_, file_, action);
}

Status SqliteQueue::Run(Statement& statement, std::string_view action) {
  if (statement.Step() != SQLITE_DONE) return Failure(action);
  return {};
}

template <class Work>
auto SqliteQueue::Atomically(const Work& work) -> decltype(work()) {
  const std::scoped_lock lock(mutex_);
  if (sqlite3_exec(handle_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK)
    return Failure("begin a change of the queue");
  auto result = work();
  const char* const end = result ? "COMMIT" : "ROLLBACK";
  if (sqlite3_exec(handle_, end, nullptr, nullptr, nullptr) != SQLITE_OK && result) {
    auto failure = Failure("change the queue");
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
    return failure;
  }
  return result;
}

Result<Submitted> SqliteQueue::Submit(const Submission& submission) {
  return Atomically([&]() -> Result<Submitted> {
    if (submission.key.empty()) return Insert(submission);
    ATUNNER_TRY(auto known, FindBy("key", submission.key));
    if (!known) return Insert(submission);
    if (known->payload != submission.payload)
      return Invalid("this key belongs to another request: job '" + known->id + "'",
                     std::string(kKeyField), "choose another key");
    return Submitted{*std::move(known), true};
  });
}

Result<Submitted> SqliteQueue::Insert(const Submission& submission) {
  const std::string id = NewId();
  Statement insert(handle_,
                   "INSERT INTO jobs (id, key, name, payload, priority, labels, state, created, "
                   "max_attempts, max_losses) "
                   "VALUES (?, nullif(?, ''), ?, ?, ?, ?, 'queued', ?, ?, ?)");
  insert.Text(1, id).Text(2, submission.key).Text(3, submission.name).Text(4, submission.payload);
  insert.Integer(5, submission.priority).Text(6, LabelText(submission.labels));
  insert.Text(7, UtcTimestamp()).Integer(8, submission.max_attempts);
  insert.Integer(9, submission.max_losses);
  ATUNNER_RETURN_IF_ERROR(Run(insert, "submit a job"));
  ATUNNER_RETURN_IF_ERROR(AddEvent(id, "state", "queued"));
  ATUNNER_TRY(Job job, FindUnlocked(id));
  return Submitted{std::move(job), false};
}

Result<std::optional<Job>> SqliteQueue::FirstFor(const Worker& worker) {
  Statement select(handle_, std::string(kSelect) +
                                "WHERE state = 'queued' ORDER BY priority DESC, losses, number");
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    Job job = ReadJob(select);
    if (HasAll(worker.labels, job.labels)) return job;
  }
  if (code != SQLITE_DONE) return Failure("look for a job");
  return std::nullopt;
}

Result<Lease> SqliteQueue::LeaseTo(const Worker& worker, Job job, double seconds) {
  Lease lease;
  lease.token = RandomHex() + RandomHex();
  Statement update(handle_,
                   "UPDATE jobs SET lease = ?, lease_until = ?, worker = ?, started = ?, "
                   "attempts = attempts + 1, batch = 0, progress = '' WHERE id = ?");
  update.Text(1, lease.token).Real(2, now_() + seconds).Text(3, worker.name);
  update.Text(4, UtcTimestamp()).Text(5, job.id);
  ATUNNER_RETURN_IF_ERROR(Run(update, "lease a job"));
  ATUNNER_RETURN_IF_ERROR(Enter(job, State::kRunning, "", ""));
  ATUNNER_TRY(lease.job, FindUnlocked(job.id));
  return lease;
}

Result<std::optional<Lease>> SqliteQueue::Take(const Worker& worker, double seconds) {
  return Atomically([&]() -> Result<std::optional<Lease>> {
    ATUNNER_TRY(auto job, FirstFor(worker));
    if (!job) return std::nullopt;
    ATUNNER_TRY(Lease lease, LeaseTo(worker, *std::move(job), seconds));
    return lease;
  });
}

Result<std::optional<Lease>> SqliteQueue::TakeJob(const Worker& worker, const std::string& job,
                                                  double seconds) {
  return Atomically([&]() -> Result<std::optional<Lease>> {
    ATUNNER_TRY(auto found, FindBy("id", job));
    if (!found || found->state != State::kQueued || !HasAll(worker.labels, found->labels))
      return std::nullopt;
    ATUNNER_TRY(Lease lease, LeaseTo(worker, *std::move(found), seconds));
    return lease;
  });
}

Result<Job> SqliteQueue::Leased(const std::string& job, const std::string& token) {
  Statement select(handle_, std::string(kSelect) + "WHERE id = ? AND lease = ?");
  select.Text(1, job).Text(2, token);
  if (token.empty() || select.Step() != SQLITE_ROW) return LostLease(job);
  return ReadJob(select);
}

Result<bool> SqliteQueue::Extend(const std::string& job, const std::string& token, double seconds) {
  return Atomically([&]() -> Result<bool> {
    ATUNNER_TRY(const Job leased, Leased(job, token));
    if (leased.state != State::kRunning) return LostLease(job);
    Statement update(handle_, "UPDATE jobs SET lease_until = ? WHERE id = ?");
    update.Real(1, now_() + seconds).Text(2, job);
    ATUNNER_RETURN_IF_ERROR(Run(update, "extend a lease"));
    return leased.cancel_requested;
  });
}

Status SqliteQueue::Record(const std::string& job, const std::string& token, const Batch& batch) {
  return Atomically([&]() -> Status {
    ATUNNER_TRY(const Job leased, Leased(job, token));
    if (leased.state != State::kRunning) return LostLease(job);
    Statement update(handle_,
                     "UPDATE jobs SET batch = ?1, version = version + 1, "
                     "progress = CASE WHEN ?2 = '' THEN progress ELSE ?2 END "
                     "WHERE id = ?3 AND batch < ?1");
    update.Integer(1, batch.number).Text(2, batch.progress).Text(3, job);
    ATUNNER_RETURN_IF_ERROR(Run(update, "record events"));
    if (sqlite3_changes(handle_) == 0) return {};
    for (const auto& [type, data] : batch.events)
      ATUNNER_RETURN_IF_ERROR(AddEvent(job, type, data));
    return {};
  });
}

Status SqliteQueue::End(const std::string& job, const std::string& token, const Ending& ending) {
  return Atomically([&]() -> Status {
    ATUNNER_TRY(const Job leased, Leased(job, token));
    if (IsFinal(leased.state)) return {};
    if (leased.state != State::kRunning) return LostLease(job);
    if (ending.state == State::kQueued) return TakeBack(leased);
    if (ending.state == State::kFailed) ATUNNER_RETURN_IF_ERROR(AddTo("failures", leased));
    const bool again = ending.retry && !leased.cancel_requested &&
                       leased.failures + 1 < leased.max_attempts;
    const State state = again ? State::kQueued : ending.state;
    return Enter(leased, state, ending.result, ending.error);
  });
}

/// The worker ends for reasons of its own: the job is not to blame, so the attempt does not count.
Status SqliteQueue::TakeBack(const Job& job) {
  if (job.cancel_requested) return Enter(job, State::kCancelled, "", "");
  Statement update(handle_, "UPDATE jobs SET attempts = attempts - 1 WHERE id = ?");
  update.Text(1, job.id);
  ATUNNER_RETURN_IF_ERROR(Run(update, "take a job back"));
  return Enter(job, State::kQueued, "", "");
}

Status SqliteQueue::Enter(const Job& job, State state, const std::string& result,
                          const std::string& error) {
  // The lease of a job that ended stays, so that its worker may say so twice.
  Statement update(handle_,
                   "UPDATE jobs SET state = ?1, version = version + 1, ended = ?2, result = ?3, "
                   "error = ?4, lease = CASE WHEN ?1 = 'queued' THEN '' ELSE lease END "
                   "WHERE id = ?5");
  update.Text(1, std::string(Name(state))).Text(2, IsFinal(state) ? UtcTimestamp() : "");
  update.Text(3, result).Text(4, error).Text(5, job.id);
  ATUNNER_RETURN_IF_ERROR(Run(update, "change a job"));
  ATUNNER_RETURN_IF_ERROR(AddEvent(job.id, "state", std::string(Name(state))));
  if (IsFinal(state)) return AddEvent(job.id, "end", std::string(Name(state)));
  return {};
}

Status SqliteQueue::AddEvent(const std::string& job, const std::string& type,
                             const std::string& data) {
  Statement insert(handle_, "INSERT INTO events (job, type, data) VALUES (?, ?, ?)");
  insert.Text(1, job).Text(2, type).Text(3, data);
  return Run(insert, "record an event");
}

Result<Job> SqliteQueue::Cancel(const std::string& job) {
  return Atomically([&]() -> Result<Job> {
    ATUNNER_TRY(const Job found, FindUnlocked(job));
    if (IsFinal(found.state) || found.cancel_requested) return found;
    Statement update(handle_, "UPDATE jobs SET cancel = 1, version = version + 1 WHERE id = ?");
    update.Text(1, job);
    ATUNNER_RETURN_IF_ERROR(Run(update, "cancel a job"));
    if (found.state == State::kQueued)
      ATUNNER_RETURN_IF_ERROR(Enter(found, State::kCancelled, "", ""));
    else
      ATUNNER_RETURN_IF_ERROR(AddEvent(job, "state", "running"));
    return FindUnlocked(job);
  });
}

Result<bool> SqliteQueue::Abandon(const std::string& job, int64_t version,
                                  const std::string& error) {
  return Atomically([&]() -> Result<bool> {
    ATUNNER_TRY(const auto found, FindBy("id", job));
    if (!found || found->state != State::kQueued || found->version != version) return false;
    ATUNNER_RETURN_IF_ERROR(Enter(*found, State::kFailed, "", error));
    return true;
  });
}

Result<std::optional<Job>> SqliteQueue::FindBy(const char* column, const std::string& value) {
  Statement select(handle_, fmt::format("{} WHERE {} = ?", kSelect, column));
  select.Text(1, value);
  const int code = select.Step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return Failure("find a job");
  return ReadJob(select);
}

Result<Job> SqliteQueue::FindUnlocked(const std::string& job) {
  ATUNNER_TRY(auto found, FindBy("id", job));
  if (!found) return Fail(ErrorCode::kNotFound, "there is no job '" + job + "'", "id");
  return *std::move(found);
}

Result<Job> SqliteQueue::Find(const std::string& job) {
  const std::scoped_lock lock(mutex_);
  return FindUnlocked(job);
}

Result<JobPage> SqliteQueue::List(const JobFilter& filter) {
  const std::scoped_lock lock(mutex_);
  const std::string where = filter.states.empty()
                                ? ""
                                : "WHERE state IN (" + StateList(filter.states) + ") ";
  JobPage page;
  Statement count(handle_, "SELECT count(*) FROM jobs " + where);
  if (count.Step() != SQLITE_ROW) return Failure("count the jobs");
  page.total = count.IntegerColumn(0);
  Statement select(handle_, kSelect + where + "ORDER BY number DESC LIMIT ? OFFSET ?");
  select.Integer(1, filter.limit).Integer(2, filter.offset);
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) page.jobs.push_back(ReadJob(select));
  if (code != SQLITE_DONE) return Failure("list the jobs");
  return page;
}

Result<std::vector<Event>> SqliteQueue::Events(const std::string& job, int64_t after, int limit) {
  const std::scoped_lock lock(mutex_);
  Statement select(handle_, fmt::format("SELECT id, job, type, data FROM events WHERE id > ?1 {} "
                                        "ORDER BY id LIMIT ?2",
                                        job.empty() ? "" : "AND job = ?3"));
  select.Integer(1, after).Integer(2, limit);
  if (!job.empty()) select.Text(3, job);
  std::vector<Event> events;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW)
    events.push_back(
        {select.IntegerColumn(0), select.Column(1), select.Column(2), select.Column(3)});
  if (code != SQLITE_DONE) return Failure("read the events");
  return events;
}

Result<int64_t> SqliteQueue::LastEvent() {
  const std::scoped_lock lock(mutex_);
  Statement select(handle_, "SELECT coalesce(max(id), 0) FROM events");
  if (select.Step() != SQLITE_ROW) return Failure("read the events");
  return select.IntegerColumn(0);
}

Result<std::map<State, int64_t>> SqliteQueue::Counts() {
  const std::scoped_lock lock(mutex_);
  std::map<State, int64_t> counts;
  for (int state = 0; state <= std::to_underlying(State::kCancelled); ++state)
    counts[static_cast<State>(state)] = 0;
  Statement select(handle_, "SELECT state, count(*) FROM jobs GROUP BY state");
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    if (const auto state = ParseState(select.Column(0))) counts[*state] = select.IntegerColumn(1);
  }
  if (code != SQLITE_DONE) return Failure("count the jobs");
  return counts;
}

Status SqliteQueue::AddTo(const char* column, const Job& job) {
  Statement update(handle_, fmt::format("UPDATE jobs SET {0} = {0} + 1 WHERE id = ?", column));
  update.Text(1, job.id);
  return Run(update, "count an attempt");
}

/// A worker vanishes for many reasons that are not the job's: its server or machine was stopped.
/// But a job that makes every worker crash must end, too.
Status SqliteQueue::Lose(Job job, bool blame) {
  if (job.cancel_requested) return Enter(job, State::kCancelled, "", "");
  if (blame) {
    ATUNNER_RETURN_IF_ERROR(AddTo("losses", job));
    ++job.losses;
  }
  if (job.losses < job.max_losses) return Enter(job, State::kQueued, "", "");
  const Json error{
      {"code", "unavailable"},
      {"detail", fmt::format("{} workers vanished while they ran this job, the last was '{}'",
                             job.losses, job.worker)},
      {"hint", "the job may make its worker crash: the worker's log says more"}};
  return Enter(job, State::kFailed, "", DumpJson(error));
}

Result<int> SqliteQueue::TakeAway(const char* where, const std::string& parameter, bool blame) {
  return Atomically([&]() -> Result<int> {
    Statement select(handle_, fmt::format("{}WHERE state = 'running' AND {}", kSelect, where));
    select.Text(1, parameter);
    std::vector<Job> gone;
    int code = 0;
    while ((code = select.Step()) == SQLITE_ROW) gone.push_back(ReadJob(select));
    if (code != SQLITE_DONE) return Failure("look for jobs without a worker");
    for (const Job& job : gone) ATUNNER_RETURN_IF_ERROR(Lose(job, blame));
    return static_cast<int>(gone.size());
  });
}

Result<int> SqliteQueue::ExpireLeases() {
  return TakeAway("lease_until < CAST(? AS REAL)", fmt::format("{}", now_()), true);
}

Result<int> SqliteQueue::Reclaim(const std::string& worker, bool blame) {
  return TakeAway("worker = ?", worker, blame);
}

}  // namespace atunner::queue
