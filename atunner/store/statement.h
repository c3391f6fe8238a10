// A prepared SQLite statement.
#pragma once

#include <sqlite3.h>

#include <optional>
#include <string>

namespace atunner {

/// Parameters count from 1, columns from 0. Binding and stepping a statement that could not be
/// prepared is harmless: Step() then reports the error.
class Statement {
 public:
  Statement(sqlite3* handle, const std::string& sql)
      : ok_(sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK) {}
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
  /// SQL's NULL for nullopt.
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
  int IntegerColumn(int at) const { return sqlite3_column_int(statement_, at); }
  double RealColumn(int at) const { return sqlite3_column_double(statement_, at); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_;
};

}  // namespace atunner
