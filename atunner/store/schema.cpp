#include "atunner/store/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/model/trial/trial.h"
#include "atunner/store/statement.h"

namespace atunner {
namespace {

constexpr const char* kCreate = R"(
CREATE TABLE runs (
  id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, command TEXT NOT NULL, created TEXT NOT NULL,
  status TEXT NOT NULL, evidence TEXT NOT NULL, device TEXT NOT NULL, spec TEXT NOT NULL,
  space TEXT NOT NULL, summary TEXT NOT NULL, seconds REAL NOT NULL);
CREATE TABLE trials (
  run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, number INTEGER NOT NULL,
  candidate TEXT NOT NULL, kind TEXT NOT NULL, proposer TEXT NOT NULL, reason TEXT NOT NULL,
  parent TEXT NOT NULL, binary_digest TEXT NOT NULL, verdict TEXT NOT NULL, objective_ns REAL,
  body TEXT NOT NULL,
  PRIMARY KEY (run, candidate));
CREATE INDEX trials_by_number ON trials (run, number);
PRAGMA user_version = 2;
)";

/// Schema 1 knew configurations alone, and its key was the digest that is a configuration's id now.
/// Its proposers were "default" and the bare names of strategies.
constexpr const char* kMigrate1To2 = R"(
ALTER TABLE trials RENAME COLUMN configuration TO candidate;
ALTER TABLE trials ADD COLUMN kind TEXT NOT NULL DEFAULT 'configuration';
ALTER TABLE trials ADD COLUMN proposer TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN parent TEXT NOT NULL DEFAULT '';
UPDATE trials SET proposer = json_extract(body, '$.proposer')
  WHERE json_valid(body) AND json_extract(body, '$.proposer') IS NOT NULL;
UPDATE trials SET proposer = 'search:' || proposer WHERE proposer NOT IN ('', 'default', 'user');
PRAGMA user_version = 2;
)";

constexpr const char* kNotAStore =
    "this file is no store, or it is damaged; move it away, or name another with request.store";

/// Rolls back when it is destroyed before Commit().
class Transaction {
 public:
  Transaction(sqlite3* handle, const Path& file) : handle_(handle), file_(file) {}
  ~Transaction() {
    if (open_) sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status Begin(const char* how = "BEGIN IMMEDIATE") {
    ATUNNER_RETURN_IF_ERROR(Execute(how));
    open_ = true;
    return {};
  }
  Status Commit() {
    ATUNNER_RETURN_IF_ERROR(Execute("COMMIT"));
    open_ = false;
    return {};
  }
  Status Execute(const char* sql) {
    if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return StoreFailure(handle_, file_, "prepare the store");
  }

 private:
  sqlite3* handle_;
  const Path& file_;
  bool open_ = false;
};

Result<int> ReadInteger(sqlite3* handle, const Path& file, const char* sql) {
  Statement query(handle, sql);
  if (query.Step() != SQLITE_ROW) return StoreFailure(handle, file, "read the store's version");
  return query.IntegerColumn(0);
}

/// True when the columns that every version has are there.
bool HasOurTables(sqlite3* handle) {
  return Statement(handle, "SELECT key, command, spec, space, summary FROM runs LIMIT 0").ok() &&
         Statement(handle, "SELECT run, number, binary_digest, body FROM trials LIMIT 0").ok();
}

/// The version of a store, 0 for an empty file.
Result<int> VersionOf(sqlite3* handle, const Path& file) {
  ATUNNER_TRY(const int version, ReadInteger(handle, file, "PRAGMA user_version"));
  ATUNNER_TRY(const int tables, ReadInteger(handle, file, "SELECT count(*) FROM sqlite_master"));
  if (version == 0 && tables == 0) return 0;
  if (version <= 0 || !HasOurTables(handle))
    return Invalid("the database holds tables of another program", file.string(),
                   "name a file of its own for the store with request.store");
  if (version > kSchemaVersion)
    return Invalid("the store was written by a newer atunner (schema " + std::to_string(version) +
                       ", this one knows " + std::to_string(kSchemaVersion) + ")",
                   file.string(), "use that version, or another file with request.store");
  return version;
}

/// VersionOf at one moment: without a transaction another process could make its tables between the
/// two questions.
Result<int> VersionAtOnce(sqlite3* handle, const Path& file) {
  Transaction reading(handle, file);
  ATUNNER_RETURN_IF_ERROR(reading.Begin("BEGIN"));
  return VersionOf(handle, file);
}

/// A space with today's names, as JSON; nullopt when it has no old name or cannot be read.
std::optional<ParameterSpace> Renamed(const std::string& stored,
                                      std::span<const RenamedParameter> renamed) {
  const auto json = ParseJson(stored);
  if (!json) return std::nullopt;
  auto space = FromJson<ParameterSpace>(*json);
  if (!space || !UseCurrentNames(*space, renamed)) return std::nullopt;
  return *std::move(space);
}

struct StoredTrial {
  std::string id;
  Configuration configuration;
};

Result<std::vector<StoredTrial>> ConfigurationsOf(sqlite3* handle, const Path& file,
                                                  const std::string& run) {
  Statement select(handle,
                   "SELECT candidate, body FROM trials WHERE run = ? AND kind = 'configuration'");
  select.Text(1, run);
  std::vector<StoredTrial> trials;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    ATUNNER_TRY(const Json json, ParseJson(select.Column(1), "trial in " + file.string()));
    ATUNNER_TRY(const Trial trial, FromJson<Trial>(json));
    trials.push_back({select.Column(0), trial.configuration()});
  }
  if (code != SQLITE_DONE) return StoreFailure(handle, file, "read trials");
  return trials;
}

Status UpdateSpace(sqlite3* handle, const Path& file, const std::string& run,
                   const ParameterSpace& space) {
  ATUNNER_TRY(const auto trials, ConfigurationsOf(handle, file, run));
  for (const StoredTrial& trial : trials) {
    if (trial.configuration.values.size() != space.parameters.size()) continue;
    Statement update(handle, "UPDATE trials SET candidate = ? WHERE run = ? AND candidate = ?");
    update.Text(1, space.DigestOfConfiguration(trial.configuration).ToHex())
        .Text(2, run)
        .Text(3, trial.id);
    if (update.Step() != SQLITE_DONE) return StoreFailure(handle, file, "update a trial");
  }
  Statement update(handle, "UPDATE runs SET space = ? WHERE id = ?");
  update.Text(1, DumpJson(ToJson(space))).Text(2, run);
  if (update.Step() != SQLITE_DONE) return StoreFailure(handle, file, "update the run");
  return {};
}

}  // namespace

std::unexpected<Error> StoreFailure(sqlite3* handle, const Path& file, std::string_view action) {
  const int code = sqlite3_errcode(handle);
  std::string hint;
  if (code == SQLITE_FULL || code == SQLITE_IOERR)
    hint = "free some disk space, or choose another place with request.store";
  else if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM)
    hint = "choose a place you may write to with request.store";
  else if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    hint = kNotAStore;
  else if (code == SQLITE_BUSY)
    hint = "another process holds the store; try again";
  return Fail(hint.empty() ? ErrorCode::kInternal : ErrorCode::kInvalidInput,
              "cannot " + std::string(action) + ": " + sqlite3_errmsg(handle), file.string(), hint);
}

Status PrepareSchema(sqlite3* handle, const Path& file) {
  ATUNNER_TRY(int version, VersionAtOnce(handle, file));
  Transaction transaction(handle, file);
  ATUNNER_RETURN_IF_ERROR(
      transaction.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                          "PRAGMA foreign_keys = ON;"));
  if (version == kSchemaVersion) return {};
  ATUNNER_RETURN_IF_ERROR(transaction.Begin());
  ATUNNER_TRY(version, VersionOf(handle, file));  // another process may have been faster
  if (version == 0) ATUNNER_RETURN_IF_ERROR(transaction.Execute(kCreate));
  if (version == 1) ATUNNER_RETURN_IF_ERROR(transaction.Execute(kMigrate1To2));
  return transaction.Commit();
}

Status RenameStoredParameters(sqlite3* handle, const Path& file,
                              std::span<const RenamedParameter> renamed) {
  if (renamed.empty()) return {};
  std::vector<std::pair<std::string, ParameterSpace>> changed;
  Statement select(handle, "SELECT id, space FROM runs");
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    if (auto space = Renamed(select.Column(1), renamed))
      changed.emplace_back(select.Column(0), *std::move(space));
  }
  if (code != SQLITE_DONE) return StoreFailure(handle, file, "read the runs");
  if (changed.empty()) return {};
  Transaction transaction(handle, file);
  ATUNNER_RETURN_IF_ERROR(transaction.Begin());
  for (const auto& [run, space] : changed)
    ATUNNER_RETURN_IF_ERROR(UpdateSpace(handle, file, run, space));
  return transaction.Commit();
}

}  // namespace atunner
