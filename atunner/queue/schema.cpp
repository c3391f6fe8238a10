#include "atunner/queue/schema.h"

#include <sqlite3.h>

#include <string>

#include "atunner/store/statement.h"

namespace atunner::queue {
namespace {

/// "atqu" as a number: marks the file as a queue of this program.
constexpr int kApplication = 0x61747175;
constexpr int kVersion = 2;

// `number` orders equal priorities. Events outlive nothing: they belong to their job.
constexpr const char* kCreate = R"(
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key TEXT UNIQUE, name TEXT NOT NULL,
  payload TEXT NOT NULL, priority INTEGER NOT NULL, labels TEXT NOT NULL, state TEXT NOT NULL,
  cancel INTEGER NOT NULL DEFAULT 0, created TEXT NOT NULL, started TEXT NOT NULL DEFAULT '',
  ended TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '',
  progress TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '', lease TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0,
  batch INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL DEFAULT 1,
  failures INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0,
  max_losses INTEGER NOT NULL DEFAULT 10);
CREATE INDEX jobs_by_state ON jobs (state, priority DESC, number);
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  type TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX events_by_job ON events (job, id);
PRAGMA application_id = 1635021173;
PRAGMA user_version = 2;
)";

/// Version 1 did not tell failures from losses.
constexpr const char* kUpgrade = R"(
BEGIN IMMEDIATE;
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN max_losses INTEGER NOT NULL DEFAULT 10;
PRAGMA user_version = 2;
COMMIT;
)";
static_assert(kApplication == 1635021173);

Status Execute(sqlite3* handle, const Path& file, const char* sql) {
  if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return QueueFailure(handle, file, "prepare the queue");
}

int ReadInteger(sqlite3* handle, const char* sql) {
  Statement query(handle, sql);
  return query.Step() == SQLITE_ROW ? query.IntegerColumn(0) : -1;
}

Status CreateTables(sqlite3* handle, const Path& file) {
  ATUNNER_RETURN_IF_ERROR(Execute(handle, file, "BEGIN IMMEDIATE"));
  Status made;
  // Another process may have been faster.
  if (ReadInteger(handle, "SELECT count(*) FROM sqlite_master") == 0)
    made = Execute(handle, file, kCreate);
  const Status ended = Execute(handle, file, made ? "COMMIT" : "ROLLBACK");
  return made ? ended : made;
}

}  // namespace

std::unexpected<Error> QueueFailure(sqlite3* handle, const Path& file, std::string_view action) {
  const int code = sqlite3_errcode(handle);
  const bool users = code == SQLITE_FULL || code == SQLITE_READONLY || code == SQLITE_CANTOPEN ||
                     code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  return Fail(users ? ErrorCode::kInvalidInput : ErrorCode::kInternal,
              "cannot " + std::string(action) + ": " + sqlite3_errmsg(handle), file.string(),
              users ? "free some disk space, or choose another folder with --data" : "");
}

Status PrepareQueueSchema(sqlite3* handle, const Path& file) {
  ATUNNER_RETURN_IF_ERROR(Execute(handle, file,
                                  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                                  "PRAGMA foreign_keys = ON;"));
  if (ReadInteger(handle, "SELECT count(*) FROM sqlite_master") == 0)
    ATUNNER_RETURN_IF_ERROR(CreateTables(handle, file));
  if (ReadInteger(handle, "PRAGMA application_id") == kApplication &&
      ReadInteger(handle, "PRAGMA user_version") == 1)
    ATUNNER_RETURN_IF_ERROR(Execute(handle, file, kUpgrade));
  if (ReadInteger(handle, "PRAGMA application_id") != kApplication ||
      ReadInteger(handle, "PRAGMA user_version") != kVersion)
    return Invalid("the file is no queue of this version of atunner", file.string(),
                   "choose another folder with --data");
  return {};
}

}  // namespace atunner::queue
