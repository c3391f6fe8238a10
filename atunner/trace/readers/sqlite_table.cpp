#include "atunner/trace/readers/sqlite_table.h"

#include <algorithm>
#include <cstring>

namespace atunner::trace {
namespace {

sqlite3_stmt* Prepare(sqlite3* handle, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement, nullptr);
  return statement;
}

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

}  // namespace

Result<SqliteFile> SqliteFile::Open(const Path& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteFile file(handle);
  if (code != SQLITE_OK) return Invalid("cannot be opened as SQLite file", path.string());
  return file;
}

Result<SqliteFile> SqliteFile::FromBytes(std::string_view bytes) {
  sqlite3* handle = nullptr;
  sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteFile file(handle);
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
  if (copy == nullptr) return Fail(ErrorCode::kUnavailable, "no memory for the database");
  std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  constexpr unsigned kFlags = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY;
  if (sqlite3_deserialize(handle, "main", copy, size, size, kFlags) != SQLITE_OK)
    return Invalid("no SQLite database");
  return file;
}

Status SqliteFile::Check() const {
  sqlite3_stmt* statement = Prepare(handle_, "SELECT name FROM sqlite_master LIMIT 1");
  const int code = statement == nullptr ? SQLITE_ERROR : sqlite3_step(statement);
  sqlite3_finalize(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    return Invalid("the SQLite file is damaged: " + std::string(sqlite3_errmsg(handle_)));
  return {};
}

bool SqliteFile::HasTable(std::string_view table) const {
  sqlite3_stmt* statement = Prepare(
      handle_, "SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0");
  if (statement == nullptr) return false;
  sqlite3_bind_text(statement, 1, table.data(), static_cast<int>(table.size()), SQLITE_TRANSIENT);
  const bool found = sqlite3_step(statement) == SQLITE_ROW;
  sqlite3_finalize(statement);
  return found;
}

std::vector<std::string> SqliteFile::Columns(std::string_view table) const {
  std::vector<std::string> names;
  if (!HasTable(table)) return names;
  sqlite3_stmt* statement = Prepare(handle_, "PRAGMA table_info(" + Quoted(table) + ")");
  while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement, 1));
    names.emplace_back(name == nullptr ? "" : name);
  }
  sqlite3_finalize(statement);
  return names;
}

TableRows::TableRows(const SqliteFile& file, const std::string& table,
                     const std::vector<std::string>& wanted)
    : file_(file) {
  const std::vector<std::string> present = file.Columns(table);
  if (present.empty()) return;
  std::string sql;
  for (const std::string& column : wanted)
    sql += (sql.empty() ? "SELECT " : ", ") +
           (std::ranges::find(present, column) != present.end() ? Quoted(column) : "NULL");
  statement_ = Prepare(file.handle_, sql + " FROM " + Quoted(table));
}

bool TableRows::Next() {
  if (statement_ == nullptr) return false;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) file_.damaged_ = true;
  return code == SQLITE_ROW;
}

std::optional<int64_t> TableRows::Integer(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

int64_t TableRows::IntegerOr(int column, int64_t otherwise) const {
  return Integer(column).value_or(otherwise);
}

std::string_view TableRows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace atunner::trace
