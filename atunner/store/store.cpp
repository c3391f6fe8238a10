#include "atunner/store/store.h"

#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyMilliseconds = 20000;

constexpr const char* kSchema = R"(
CREATE TABLE runs (
  id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, command TEXT NOT NULL, created TEXT NOT NULL, status TEXT NOT NULL,
  evidence TEXT NOT NULL, device TEXT NOT NULL, spec TEXT NOT NULL, space TEXT NOT NULL, summary TEXT NOT NULL, seconds REAL NOT NULL);
CREATE TABLE trials (
  run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, number INTEGER NOT NULL, configuration TEXT NOT NULL,
  binary_digest TEXT NOT NULL, verdict TEXT NOT NULL, objective_ns REAL, body TEXT NOT NULL,
  PRIMARY KEY (run, configuration));
CREATE INDEX trials_by_number ON trials (run, number);
PRAGMA user_version = 1;
)";

/// A prepared statement; parameters count from 1.
class Statement {
 public:
  Statement(sqlite3* handle, const char* sql)
      : ok_(sqlite3_prepare_v2(handle, sql, -1, &statement_, nullptr) == SQLITE_OK) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool ok() const { return ok_; }
  Statement& Text(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Integer(int at, int64_t value) {
    sqlite3_bind_int64(statement_, at, value);
    return *this;
  }
  Statement& Real(int at, std::optional<double> value) {
    if (value)
      sqlite3_bind_double(statement_, at, *value);
    else
      sqlite3_bind_null(statement_, at);
    return *this;
  }
  /// SQLITE_ROW, SQLITE_DONE or an error.
  int Step() { return ok_ ? sqlite3_step(statement_) : SQLITE_ERROR; }
  std::string Column(int at) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, at))) : "";
  }
  double RealColumn(int at) const { return sqlite3_column_double(statement_, at); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_;
};

constexpr const char* kElsewhere = "choose a place you may write to with --store";

constexpr const char* kRunColumns =
    "SELECT id, key, command, created, status, evidence, device, spec, space, summary, seconds "
    "FROM runs ";

RunRecord ReadRun(const Statement& row, const Path& store) {
  RunRecord run = {row.Column(0), row.Column(1), row.Column(2),     row.Column(3),
                   row.Column(4), row.Column(5), row.Column(6),     row.Column(7),
                   row.Column(8), row.Column(9), row.RealColumn(10)};
  if (run.status == "running" && !RunningMark::IsHeld(store, run.id)) run.status = "interrupted";
  return run;
}

}  // namespace

std::unexpected<Error> Store::Failure(std::string_view action) const {
  const int code = sqlite3_errcode(handle_);
  std::string hint;
  if (code == SQLITE_FULL || code == SQLITE_IOERR)
    hint = "free some disk space, or choose another place with --store";
  else if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM)
    hint = kElsewhere;
  else if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    hint = "this file is no store, or it is damaged; move it away, or name another with --store";
  else if (code == SQLITE_BUSY)
    hint = "another process holds the store; try again";
  return Fail(hint.empty() ? ErrorCode::kInternal : ErrorCode::kInvalidInput,
              "cannot " + std::string(action) + ": " + sqlite3_errmsg(handle_), file_.string(),
              hint);
}

Status Store::Execute(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return Failure("use the store");
  return {};
}

Result<std::unique_ptr<Store>> Store::Open(const Path& file) {
  if (file.has_parent_path()) {
    if (auto made = MakeDirectories(file.parent_path()); !made) {
      made.error().hint = kElsewhere;
      return std::unexpected(std::move(made.error()));
    }
  }
  // In this order: who makes a store makes its log after it.
  const Path log = file.string() + "-wal";
  if (Exists(log) && !Exists(file))
    return Invalid("the store is gone, and the log of its last changes is still there",
                   file.string(), "put the store back, or remove " + log.string() + " too");
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Store> store(new Store(handle, file));
  if (code != SQLITE_OK) return store->Failure("open the store");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  ATUNNER_RETURN_IF_ERROR(store->Execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
  ATUNNER_RETURN_IF_ERROR(store->Migrate());
  return store;
}

Store::~Store() { sqlite3_close(handle_); }

Status Store::Migrate() {
  ATUNNER_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  int version = 0;
  {
    Statement pragma(handle_, "PRAGMA user_version");
    if (pragma.Step() != SQLITE_ROW) return Failure("read the store's version");
    version = static_cast<int>(pragma.RealColumn(0));
  }
  if (version > kSchemaVersion) {
    (void)Execute("ROLLBACK");
    return Invalid("the store was written by a newer atunner (schema " + std::to_string(version) +
                       ", this one knows " + std::to_string(kSchemaVersion) + ")",
                   file_.string(), "use that version, or another file with --store");
  }
  if (version == 0) ATUNNER_RETURN_IF_ERROR(Execute(kSchema));
  return Execute("COMMIT");
}

Result<RunRecord> Store::OpenRun(const RunRecord& wanted, bool& resumed) {
  resumed = false;
  Statement insert(handle_,
                   "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING");
  insert.Text(1, wanted.id)
      .Text(2, wanted.key)
      .Text(3, wanted.command)
      .Text(4, wanted.created)
      .Text(5, wanted.status)
      .Text(6, wanted.evidence);
  insert.Text(7, wanted.device)
      .Text(8, wanted.spec)
      .Text(9, wanted.space)
      .Text(10, wanted.summary)
      .Real(11, wanted.seconds);
  if (insert.Step() != SQLITE_DONE) return Failure("record the run");
  resumed = sqlite3_changes(handle_) == 0;
  Statement find(handle_, (std::string(kRunColumns) + "WHERE key = ?").c_str());
  find.Text(1, wanted.key);
  if (find.Step() != SQLITE_ROW) return Failure("find the run");
  const std::string id = find.Column(0);
  running_.try_emplace(id, file_, id);
  return ReadRun(find, file_);
}

Status Store::UpdateRun(const RunRecord& run) {
  Statement update(handle_, "UPDATE runs SET status = ?, summary = ?, seconds = ? WHERE id = ?");
  update.Text(1, run.status).Text(2, run.summary).Real(3, run.seconds).Text(4, run.id);
  if (update.Step() != SQLITE_DONE) return Failure("update the run");
  if (run.status != "running" && running_.erase(run.id) > 0) RunningMark::Remove(file_, run.id);
  return {};
}

Status Store::DeleteRun(const std::string& id) {
  Statement remove(handle_, "DELETE FROM runs WHERE id = ?");
  remove.Text(1, id);
  if (remove.Step() != SQLITE_DONE) return Failure("remove the run");
  running_.erase(id);
  RunningMark::Remove(file_, id);
  return {};
}

Status Store::AppendTrial(const std::string& run, const ParameterSpace& space, const Trial& trial) {
  Statement insert(handle_, "INSERT OR IGNORE INTO trials VALUES (?,?,?,?,?,?,?)");
  insert.Text(1, run)
      .Integer(2, trial.number)
      .Text(3, space.DigestOfConfiguration(trial.configuration).ToHex());
  insert.Text(4, trial.binary.ToHex())
      .Text(5, std::string(Name(trial.verdict.kind)))
      .Real(6, trial.ObjectiveNs())
      .Text(7, DumpJson(ToJson(trial)));
  if (insert.Step() != SQLITE_DONE) return Failure("store a trial");
  return {};
}

Status Store::UpdateTrial(const std::string& run, const ParameterSpace& space, const Trial& trial) {
  // Two processes that share a run count their trials each for itself: the number names several.
  Statement update(handle_,
                   "UPDATE trials SET verdict = ?, objective_ns = ?, body = ? WHERE run = ? AND "
                   "configuration = ?");
  update.Text(1, std::string(Name(trial.verdict.kind)))
      .Real(2, trial.ObjectiveNs())
      .Text(3, DumpJson(ToJson(trial)));
  update.Text(4, run).Text(5, space.DigestOfConfiguration(trial.configuration).ToHex());
  if (update.Step() != SQLITE_DONE) return Failure("update a trial");
  return {};
}

Result<std::vector<Trial>> Store::Trials(const std::string& run) {
  Statement select(handle_, "SELECT body FROM trials WHERE run = ? ORDER BY number");
  select.Text(1, run);
  std::vector<Trial> trials;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    ATUNNER_TRY(const Json json, ParseJson(select.Column(0), "trial in " + file_.string()));
    ATUNNER_TRY(Trial trial, FromJson<Trial>(json));
    trials.push_back(std::move(trial));
  }
  if (code != SQLITE_DONE) return Failure("read trials");
  return trials;
}

Result<RunRecord> Store::FindRun(const std::string& name) {
  const bool last = name.empty() || name == "last";
  Statement find(handle_, (std::string(kRunColumns) +
                           (last ? "ORDER BY created DESC, id DESC LIMIT 1"
                                 : "WHERE id = ?1 OR substr(id, 1, length(?1)) = ?1 LIMIT 2"))
                              .c_str());
  if (!last) find.Text(1, name);
  if (find.Step() != SQLITE_ROW) {
    return Fail(ErrorCode::kNotFound,
                last ? "there is no run yet" : "there is no run '" + name + "'", file_.string(),
                last ? "start one with `atunner optimize`" : "`atunner history` lists the runs");
  }
  RunRecord run = ReadRun(find, file_);
  if (!last && run.id != name && find.Step() == SQLITE_ROW)
    return Invalid("more than one run begins with '" + name + "'", "",
                   "`atunner history` lists the runs");
  return run;
}

Result<std::vector<RunRecord>> Store::Runs(int limit) {
  Statement select(handle_,
                   (std::string(kRunColumns) + "ORDER BY created DESC, id DESC LIMIT ?").c_str());
  select.Integer(1, limit);
  std::vector<RunRecord> runs;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) runs.push_back(ReadRun(select, file_));
  if (code != SQLITE_DONE) return Failure("read the runs");
  return runs;
}

}  // namespace atunner
