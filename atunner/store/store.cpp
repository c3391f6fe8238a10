#include "atunner/store/store.h"

#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"
#include "atunner/store/schema.h"
#include "atunner/store/statement.h"

namespace atunner {
namespace {

constexpr int kBusyMilliseconds = 20000;

constexpr const char* kElsewhere = "choose a place you may write to with request.store";

/// The statement that reads runs; `rest` says which and in which order.
std::string SelectRuns(std::string_view rest) {
  std::string sql =
      "SELECT id, key, command, created, status, evidence, device, spec, space, summary, seconds "
      "FROM runs ";
  sql.append(rest);
  return sql;
}

RunRecord ReadRun(const Statement& row, const Path& store) {
  RunRecord run = {row.Column(0), row.Column(1), row.Column(2),     row.Column(3),
                   row.Column(4), row.Column(5), row.Column(6),     row.Column(7),
                   row.Column(8), row.Column(9), row.RealColumn(10)};
  if (run.status == "running" && !RunningMark::IsHeld(store, run.id)) run.status = "interrupted";
  return run;
}

}  // namespace

std::unexpected<Error> Store::Failure(std::string_view action) const {
  return StoreFailure(handle_, file_, action);
}

Result<std::unique_ptr<Store>> Store::Open(const Path& file,
                                           std::span<const RenamedParameter> renamed) {
  if (file.has_parent_path()) {
    if (auto made = MakeDirectories(file.parent_path()); !made) {
      made.error().hint = kElsewhere;
      return std::unexpected(std::move(made.error()));
    }
  }
  // The log is looked for first: another process that makes a store makes its log after it.
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
  ATUNNER_RETURN_IF_ERROR(PrepareSchema(handle, file));
  ATUNNER_RETURN_IF_ERROR(RenameStoredParameters(handle, file, renamed));
  return store;
}

Store::~Store() { sqlite3_close(handle_); }

/// Does nothing when the store has a run with the same key or with this id.
Status Store::InsertRun(const RunRecord& wanted, const std::string& id) {
  Statement insert(handle_,
                   "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING");
  insert.Text(1, id)
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
  return {};
}

Result<RunRecord> Store::OpenRun(const RunRecord& wanted, bool& resumed) {
  // An id has a part of the key only, so that runs of equal names and minutes may share it.
  for (int number = 1;; ++number) {
    const std::string suffix = number == 1 ? "" : "-" + std::to_string(number);
    ATUNNER_RETURN_IF_ERROR(InsertRun(wanted, wanted.id + suffix));
    resumed = sqlite3_changes(handle_) == 0;
    Statement find(handle_, SelectRuns("WHERE key = ?"));
    find.Text(1, wanted.key);
    const int found = find.Step();
    if (found == SQLITE_DONE) continue;
    if (found != SQLITE_ROW) return Failure("find the run");
    const std::string id = find.Column(0);
    running_.try_emplace(id, file_, id);
    return ReadRun(find, file_);
  }
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

Status Store::AppendTrial(const std::string& run, const Trial& trial) {
  const Candidate& candidate = trial.candidate;
  const auto& parent = candidate.provenance.parent;
  Statement insert(handle_,
                   "INSERT OR IGNORE INTO trials (run, number, candidate, kind, proposer, reason, "
                   "parent, binary_digest, verdict, objective_ns, body) "
                   "VALUES (?,?,?,?,?,?,?,?,?,?,?)");
  insert.Text(1, run).Integer(2, trial.number).Text(3, candidate.id.ToHex());
  insert.Text(4, std::string(Name(candidate.kind())))
      .Text(5, candidate.provenance.proposer)
      .Text(6, candidate.provenance.reason)
      .Text(7, parent ? parent->ToHex() : "");
  insert.Text(8, trial.binary.ToHex())
      .Text(9, std::string(Name(trial.verdict.kind)))
      .Real(10, trial.ObjectiveNs())
      .Text(11, DumpJson(ToJson(trial)));
  if (insert.Step() != SQLITE_DONE) return Failure("store a trial");
  return {};
}

Status Store::UpdateTrial(const std::string& run, const Trial& trial) {
  // Two processes that share a run number their trials independently, so a number is no key.
  Statement update(handle_,
                   "UPDATE trials SET verdict = ?, objective_ns = ?, body = ? WHERE run = ? AND "
                   "candidate = ?");
  update.Text(1, std::string(Name(trial.verdict.kind)))
      .Real(2, trial.ObjectiveNs())
      .Text(3, DumpJson(ToJson(trial)));
  update.Text(4, run).Text(5, trial.candidate.id.ToHex());
  if (update.Step() != SQLITE_DONE) return Failure("update a trial");
  return {};
}

Result<std::vector<Trial>> Store::Trials(const std::string& run) {
  Statement select(handle_, "SELECT body, candidate FROM trials WHERE run = ? ORDER BY number");
  select.Text(1, run);
  std::vector<Trial> trials;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    ATUNNER_TRY(Json json, ParseJson(select.Column(0), "trial in " + file_.string()));
    // Bodies of schema 1 have no id, and those of renamed parameters an old one.
    if (json.is_object()) json["candidate"] = select.Column(1);
    ATUNNER_TRY(Trial trial, FromJson<Trial>(json));
    trials.push_back(std::move(trial));
  }
  if (code != SQLITE_DONE) return Failure("read trials");
  return trials;
}

Result<RunRecord> Store::FindRun(const std::string& name) {
  const bool last = name.empty() || name == "last";
  Statement find(handle_,
                 SelectRuns(last ? "ORDER BY created DESC, id DESC LIMIT 1"
                                 : "WHERE id = ?1 OR substr(id, 1, length(?1)) = ?1 LIMIT 2"));
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
  Statement select(handle_, SelectRuns("ORDER BY created DESC, id DESC LIMIT ?"));
  select.Integer(1, limit);
  std::vector<RunRecord> runs;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) runs.push_back(ReadRun(select, file_));
  if (code != SQLITE_DONE) return Failure("read the runs");
  return runs;
}

}  // namespace atunner
