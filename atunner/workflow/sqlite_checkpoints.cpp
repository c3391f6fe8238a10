#include "atunner/workflow/sqlite_checkpoints.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "atunner/store/running_mark.h"
#include "atunner/store/statement.h"

namespace atunner::workflow {
namespace {

constexpr int kVersion = 1;
constexpr int kBusyMilliseconds = 20000;

// A process that ends loses nothing. A power failure may lose the last steps, which then run again
// (synchronous = NORMAL in WAL mode never damages the file).
constexpr const char* kSettings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";

constexpr const char* kCreate = R"(
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS flows (
  id TEXT PRIMARY KEY, graph TEXT NOT NULL, title TEXT NOT NULL, created TEXT NOT NULL,
  status TEXT NOT NULL, request TEXT NOT NULL, parent TEXT NOT NULL,
  parent_number INTEGER NOT NULL, error TEXT NOT NULL, cancel INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS checkpoints (
  flow TEXT NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL, step INTEGER NOT NULL,
  origin TEXT NOT NULL, state TEXT NOT NULL, next TEXT NOT NULL, deferred TEXT NOT NULL,
  arrivals TEXT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (flow, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS writes (
  flow TEXT NOT NULL, number INTEGER NOT NULL, task INTEGER NOT NULL, kind INTEGER NOT NULL,
  position INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (flow, number, task, kind, position)) WITHOUT ROWID;
PRAGMA user_version = 1;
COMMIT;
)";

/// A locked file at the place where RunningMark looks. Unlike a RunningMark it is exclusive.
class FileMark : public Checkpoints::Mark {
 public:
  explicit FileMark(int file) : file_(file) {}
  ~FileMark() override {
    if (file_ >= 0) ::close(file_);
  }
  FileMark(const FileMark&) = delete;
  FileMark& operator=(const FileMark&) = delete;

 private:
  int file_;
};

Result<Checkpoint> ReadCheckpoint(const Statement& row, const Path& file) {
  const std::string where = "checkpoint in " + file.string();
  Checkpoint checkpoint;
  checkpoint.number = row.IntegerColumn(0);
  checkpoint.parent = row.IntegerColumn(1);
  checkpoint.step = row.IntegerColumn(2);
  checkpoint.origin = row.Column(3);
  checkpoint.created = row.Column(8);
  ATUNNER_TRY(checkpoint.state, ParseJson(row.Column(4), where));
  ATUNNER_TRY(const Json next, ParseJson(row.Column(5), where));
  ATUNNER_TRY(checkpoint.next, TargetsFromJson(next));
  ATUNNER_TRY(const Json deferred, ParseJson(row.Column(6), where));
  ATUNNER_TRY(checkpoint.deferred, TargetsFromJson(deferred));
  ATUNNER_TRY(checkpoint.arrivals, ParseJson(row.Column(7), where));
  return checkpoint;
}

}  // namespace

std::unexpected<Error> SqliteCheckpoints::Failure(const std::string& action) const {
  const int code = sqlite3_errcode(handle_);
  const bool ours = code == SQLITE_ERROR || code == SQLITE_MISUSE;
  return Fail(ours ? ErrorCode::kInternal : ErrorCode::kInvalidInput,
              "cannot " + action + ": " + sqlite3_errmsg(handle_), file_.string(),
              code == SQLITE_NOTADB ? "move the file away; it is no list of flows"
                                    : "name another store with request.store");
}

Result<std::unique_ptr<SqliteCheckpoints>> SqliteCheckpoints::Open(const Path& file) {
  if (file.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(file.parent_path()));
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<SqliteCheckpoints> opened(new SqliteCheckpoints(handle, file));
  if (code != SQLITE_OK) return opened->Failure("open the checkpoints");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  ATUNNER_RETURN_IF_ERROR(opened->Prepare());
  return opened;
}

SqliteCheckpoints::~SqliteCheckpoints() { sqlite3_close(handle_); }

Status SqliteCheckpoints::Execute(const char* sql) const {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  const auto failure = Failure("prepare the checkpoints");
  sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  return failure;
}

Result<int> SqliteCheckpoints::Version() const {
  Statement query(handle_, "PRAGMA user_version");
  if (query.Step() != SQLITE_ROW) return Failure("read the version of the checkpoints");
  return query.IntegerColumn(0);
}

Status SqliteCheckpoints::Prepare() {
  ATUNNER_TRY(const int version, Version());
  if (version > kVersion)
    return Invalid("the checkpoints were written by a newer atunner", file_.string(),
                   "use that version");
  ATUNNER_RETURN_IF_ERROR(Execute(kSettings));
  return version == kVersion ? Status() : Execute(kCreate);
}

Status SqliteCheckpoints::AddFlow(const FlowRecord& flow) {
  Statement insert(handle_,
                   "INSERT INTO flows (id, graph, title, created, status, request, parent, "
                   "parent_number, error) VALUES (?,?,?,?,?,?,?,?,?)");
  insert.Text(1, flow.id).Text(2, flow.graph).Text(3, flow.title).Text(4, flow.created);
  insert.Text(5, flow.status).Text(6, DumpJson(flow.request)).Text(7, flow.parent);
  insert.Integer(8, flow.parent_number).Text(9, flow.error);
  const int code = insert.Step();
  if (code == SQLITE_CONSTRAINT) return Invalid("there is a flow '" + flow.id + "'");
  if (code != SQLITE_DONE) return Failure("record the flow");
  return {};
}

Status SqliteCheckpoints::SetStatus(const std::string& flow, const std::string& status,
                                    const std::string& error) {
  Statement update(handle_, "UPDATE flows SET status = ?, error = ? WHERE id = ?");
  update.Text(1, status).Text(2, error).Text(3, flow);
  if (update.Step() != SQLITE_DONE) return Failure("update the flow");
  return {};
}

Result<std::vector<FlowRecord>> SqliteCheckpoints::ReadFlows(const std::string& rest,
                                                             const std::string& id, int limit) {
  Statement select(handle_,
                   "SELECT id, graph, title, created, status, request, parent, parent_number, "
                   "error FROM flows " +
                       rest);
  if (!id.empty())
    select.Text(1, id);
  else
    select.Integer(1, limit);
  std::vector<FlowRecord> flows;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    FlowRecord flow{select.Column(0), select.Column(1), select.Column(2), select.Column(3),
                    select.Column(4)};
    ATUNNER_TRY(flow.request, ParseJson(select.Column(5), "flow in " + file_.string()));
    flow.parent = select.Column(6);
    flow.parent_number = select.IntegerColumn(7);
    flow.error = select.Column(8);
    if (flow.status == "running" && !RunningMark::IsHeld(file_, flow.id))
      flow.status = "interrupted";
    flows.push_back(std::move(flow));
  }
  if (code != SQLITE_DONE) return Failure("read the flows");
  return flows;
}

Result<std::optional<FlowRecord>> SqliteCheckpoints::FindFlow(const std::string& id) {
  ATUNNER_TRY(std::vector<FlowRecord> flows, ReadFlows("WHERE id = ?", id, 1));
  if (flows.empty()) return std::nullopt;
  return std::move(flows.front());
}

Result<std::vector<FlowRecord>> SqliteCheckpoints::Flows(int limit) {
  return ReadFlows("ORDER BY rowid DESC LIMIT ?", "", limit);
}

Status SqliteCheckpoints::Delete(const std::string& flow) {
  for (const char* sql :
       {"DELETE FROM writes WHERE flow = ?1 OR (flow >= ?1 || '/' AND flow < ?1 || '0')",
        "DELETE FROM checkpoints WHERE flow = ?1 OR (flow >= ?1 || '/' AND flow < ?1 || '0')",
        "DELETE FROM flows WHERE id = ?1"}) {
    Statement remove(handle_, sql);
    remove.Text(1, flow);
    if (remove.Step() != SQLITE_DONE) return Failure("remove the flow");
  }
  return {};
}

Status SqliteCheckpoints::RequestCancel(const std::string& flow, bool wanted) {
  Statement update(handle_, "UPDATE flows SET cancel = ? WHERE id = ?");
  update.Integer(1, wanted ? 1 : 0).Text(2, flow);
  if (update.Step() != SQLITE_DONE) return Failure("update the flow");
  return {};
}

Result<bool> SqliteCheckpoints::CancelRequested(const std::string& flow) {
  Statement select(handle_, "SELECT cancel FROM flows WHERE id = ?");
  select.Text(1, flow);
  const int code = select.Step();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return Failure("read the flow");
  return code == SQLITE_ROW && select.IntegerColumn(0) != 0;
}

Status SqliteCheckpoints::Put(const std::string& flow, const Checkpoint& checkpoint) {
  Statement insert(handle_, "INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?,?,?,?)");
  insert.Text(1, flow).Integer(2, checkpoint.number).Integer(3, checkpoint.parent);
  insert.Integer(4, checkpoint.step).Text(5, checkpoint.origin);
  insert.Text(6, DumpJson(checkpoint.state)).Text(7, DumpJson(ToJson(checkpoint.next)));
  insert.Text(8, DumpJson(ToJson(checkpoint.deferred))).Text(9, DumpJson(checkpoint.arrivals));
  insert.Text(10, checkpoint.created);
  const int code = insert.Step();
  if (code == SQLITE_CONSTRAINT)
    return Invalid("the flow has a checkpoint " + std::to_string(checkpoint.number), flow);
  if (code != SQLITE_DONE) return Failure("write a checkpoint");
  return {};
}

Result<std::vector<Checkpoint>> SqliteCheckpoints::ReadCheckpoints(const std::string& rest,
                                                                   const std::string& flow,
                                                                   int64_t number) {
  Statement select(handle_,
                   "SELECT number, parent, step, origin, state, next, deferred, arrivals, created "
                   "FROM checkpoints WHERE flow = ?1 " +
                       rest);
  select.Text(1, flow);
  if (number > 0) select.Integer(2, number);
  std::vector<Checkpoint> all;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    ATUNNER_TRY(Checkpoint checkpoint, ReadCheckpoint(select, file_));
    all.push_back(std::move(checkpoint));
  }
  if (code != SQLITE_DONE) return Failure("read checkpoints");
  return all;
}

Result<std::optional<Checkpoint>> SqliteCheckpoints::Get(const std::string& flow,
                                                         std::optional<int64_t> number) {
  if (number && *number <= 0) return std::nullopt;
  ATUNNER_TRY(std::vector<Checkpoint> found,
              number ? ReadCheckpoints("AND number = ?2", flow, *number)
                     : ReadCheckpoints("ORDER BY number DESC LIMIT 1", flow, 0));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Result<std::vector<Checkpoint>> SqliteCheckpoints::List(const std::string& flow) {
  return ReadCheckpoints("ORDER BY number", flow, 0);
}

Status SqliteCheckpoints::PutWrite(const std::string& flow, int64_t number,
                                   const PendingWrite& write) {
  Statement insert(handle_, "INSERT OR REPLACE INTO writes VALUES (?,?,?,?,?,?)");
  insert.Text(1, flow).Integer(2, number).Integer(3, write.task);
  insert.Integer(4, static_cast<int64_t>(write.kind)).Integer(5, write.index);
  insert.Text(6, DumpJson(write.body));
  if (insert.Step() != SQLITE_DONE) return Failure("write a task's result");
  return {};
}

Result<std::vector<PendingWrite>> SqliteCheckpoints::Writes(const std::string& flow,
                                                            int64_t number) {
  Statement select(handle_,
                   "SELECT task, kind, position, body FROM writes WHERE flow = ? AND number = ? "
                   "ORDER BY task, kind, position");
  select.Text(1, flow).Integer(2, number);
  std::vector<PendingWrite> all;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    PendingWrite write;
    write.task = select.IntegerColumn(0);
    write.kind = static_cast<PendingWrite::Kind>(select.IntegerColumn(1));
    write.index = select.IntegerColumn(2);
    ATUNNER_TRY(write.body, ParseJson(select.Column(3), "write in " + file_.string()));
    all.push_back(std::move(write));
  }
  if (code != SQLITE_DONE) return Failure("read results of tasks");
  return all;
}

Result<std::unique_ptr<Checkpoints::Mark>> SqliteCheckpoints::Occupy(const std::string& flow) {
  const Path folder = file_.string() + ".running";
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder));
  const int file = ::open((folder / flow).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  auto mark = std::make_unique<FileMark>(file);
  if (file < 0) return Invalid("no mark can be made in this folder", folder.string());
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return Invalid("another process works on the flow", flow, "wait for it, or cancel it");
  return mark;
}

}  // namespace atunner::workflow
