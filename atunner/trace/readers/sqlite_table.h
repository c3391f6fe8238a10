// Rows of tables whose columns depend on the version that wrote the file.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::trace {

/// A file opened for reading only.
class SqliteFile {
 public:
  static Result<SqliteFile> Open(const Path& path);
  /// A database given as bytes.
  static Result<SqliteFile> FromBytes(std::string_view bytes);
  ~SqliteFile() { sqlite3_close(handle_); }
  SqliteFile(SqliteFile&& other) noexcept : handle_(other.handle_), damaged_(other.damaged_) {
    other.handle_ = nullptr;
  }
  SqliteFile& operator=(SqliteFile&&) = delete;

  /// kInvalidInput if the bytes are no database.
  Status Check() const;
  /// True if a table could not be read to its end.
  bool damaged() const { return damaged_; }

 private:
  friend class TableRows;
  explicit SqliteFile(sqlite3* handle) : handle_(handle) {}
  bool HasTable(std::string_view table) const;
  std::vector<std::string> Columns(std::string_view table) const;

  sqlite3* handle_;
  mutable bool damaged_ = false;
};

/// Walks over a table. A wanted column that the table lacks is NULL in each row. Views are no
/// tables: they compute, and a hostile one never ends.
class TableRows {
 public:
  TableRows(const SqliteFile& file, const std::string& table,
            const std::vector<std::string>& wanted);
  ~TableRows() { sqlite3_finalize(statement_); }
  TableRows(const TableRows&) = delete;
  TableRows& operator=(const TableRows&) = delete;

  /// False at the end, and for a table that does not exist or is damaged.
  bool Next();
  /// Columns count from 0 in the order of `wanted`.
  std::optional<int64_t> Integer(int column) const;
  int64_t IntegerOr(int column, int64_t otherwise) const;
  std::string_view Text(int column) const;

 private:
  const SqliteFile& file_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace atunner::trace
