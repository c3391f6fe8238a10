#include "atunner/platform/run_pages.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "atunner/store/running_mark.h"
#include "atunner/store/statement.h"

namespace atunner::platform {
namespace {

constexpr int kBusyMilliseconds = 20000;

constexpr const char* kRunColumns =
    "SELECT id, created, status, evidence, device, command, coalesce(json_extract(CASE WHEN "
    "json_valid(spec) THEN spec END, '$.name'), ''), (SELECT count(*) FROM trials WHERE run = "
    "runs.id), (SELECT min(objective_ns) FROM trials WHERE run = runs.id AND verdict = 'correct'), "
    "seconds, spec, space, summary FROM runs ";

constexpr std::string_view kRunFilter =
    "WHERE (?1 = '' OR status = ?1) AND (?2 = '' OR instr(id, ?2) OR instr(command, ?2) OR "
    "instr(device, ?2)) ";

bool IsNull(const Statement& row, int at) { return row.Column(at).empty(); }

Json RunSummary(const Statement& row, const Path& store) {
  Json json{{"id", row.Column(0)},
            {"created", row.Column(1)},
            {"status", row.Column(2)},
            {"evidence", row.Column(3)},
            {"device", row.Column(4)},
            {"command", row.Column(5)},
            {"task", row.Column(6)},
            {"trials", row.IntegerColumn(7)},
            {"best_ns", IsNull(row, 8) ? Json() : Json(row.RealColumn(8))},
            {"seconds", row.RealColumn(9)}};
  if (json["status"] == "running" && !RunningMark::IsHeld(store, row.Column(0)))
    json["status"] = "interrupted";
  return json;
}

Json ObjectOf(const std::string& text) {
  const auto json = ParseJson(text);
  return json && json->is_object() ? *json : Json::object();
}

Json NamedConfiguration(const std::vector<std::string>& names, const std::string& values) {
  Json named = Json::object();
  const auto list = ParseJson(values);
  if (!list || !list->is_array()) return named;
  for (size_t i = 0; i < names.size() && i < list->size(); ++i) named[names[i]] = (*list)[i];
  return named;
}

constexpr const char* kTrialColumns =
    "SELECT number, candidate, kind, proposer, verdict, json_extract(body, '$.verdict.reason'), "
    "objective_ns, coalesce(json_extract(body, '$.configuration'), '[]'), "
    "json_extract(body, '$.resources[0].registers'), json_extract(body, '$.compile_seconds'), "
    "json_extract(body, '$.judge_seconds'), coalesce(json_extract(body, '$.note'), ''), "
    "json_extract(body, '$.memory_bytes'), coalesce(json_extract(body, "
    "'$.measurement.energy_joules'), "
    "json_extract(body, '$.estimate.energy_joules')) FROM trials ";

Json TrialRow(const Statement& row, const std::vector<std::string>& names) {
  return {{"number", row.IntegerColumn(0)},
          {"candidate", row.Column(1)},
          {"kind", row.Column(2)},
          {"proposer", row.Column(3)},
          {"verdict", row.Column(4)},
          {"reason", row.Column(5)},
          {"time_ns", IsNull(row, 6) ? Json() : Json(row.RealColumn(6))},
          {"configuration", NamedConfiguration(names, row.Column(7))},
          {"registers", IsNull(row, 8) ? Json() : Json(row.IntegerColumn(8))},
          {"compile_seconds", row.RealColumn(9)},
          {"judge_seconds", row.RealColumn(10)},
          {"note", row.Column(11)},
          {"memory_bytes", IsNull(row, 12) ? Json() : Json(row.RealColumn(12))},
          {"energy_joules", IsNull(row, 13) ? Json() : Json(row.RealColumn(13))}};
}

/// The value of parameter number `at`.
std::string ParameterColumn(size_t at) {
  return fmt::format("json_extract(body, '$.configuration[{}]')", at);
}

Result<size_t> IndexOf(const std::vector<std::string>& names, const std::string& name,
                       const std::string& field) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return Invalid("the run has no parameter '" + name + "'", field,
                 fmt::format("its parameters are {}", fmt::join(names, ", ")));
}

Result<std::string> OrderOf(std::string sort, const std::vector<std::string>& names) {
  const bool down = sort.starts_with('-');
  if (down) sort.erase(0, 1);
  constexpr std::pair<std::string_view, std::string_view> kColumns[] = {{"number", "number"},
                                                                        {"time_ns", "objective_ns"},
                                                                        {"verdict", "verdict"},
                                                                        {"proposer", "proposer"}};
  std::string column;
  for (const auto& [name, each] : kColumns) {
    if (name == sort) column = each;
  }
  if (sort.starts_with("p.")) {
    ATUNNER_TRY(const size_t at, IndexOf(names, sort.substr(2), "sort"));
    column = ParameterColumn(at);
  }
  if (column.empty())
    return Invalid("cannot sort by '" + sort + "'", "sort",
                   "use number, time_ns, verdict, proposer or p.NAME, with - in front to reverse");
  return fmt::format("ORDER BY {0} IS NULL, {0} {1}, number ", column, down ? "DESC" : "ASC");
}

/// The condition of a query. Its parameters are bound by BindFilter.
Result<std::string> FilterOf(const TrialQuery& query, const std::vector<std::string>& names) {
  std::string filter =
      "WHERE run = ?1 AND (?2 = '' OR verdict = ?2) AND (?3 = '' OR proposer = ?3) AND "
      "(?4 IS NULL OR objective_ns >= ?4) AND (?5 IS NULL OR objective_ns <= ?5) ";
  int number = 6;
  for (const auto& [name, value] : query.parameters) {
    ATUNNER_TRY(const size_t at, IndexOf(names, name, "p." + name));
    // As text, so that 4 and "4" are the same; JSON's true is SQL's 1.
    filter += fmt::format("AND CAST({} AS TEXT) = ?{} ", ParameterColumn(at), number++);
  }
  return filter;
}

int BindFilter(Statement& statement, const std::string& run, const TrialQuery& query) {
  statement.Text(1, run).Text(2, query.verdict).Text(3, query.proposer);
  statement.Real(4, query.min_ns).Real(5, query.max_ns);
  int number = 6;
  for (const auto& [name, value] : query.parameters) {
    const bool truth = value == "true" || value == "false";
    statement.Text(number++, truth ? (value == "true" ? "1" : "0") : value);
  }
  return number;
}

}  // namespace

Result<std::unique_ptr<RunPages>> RunPages::Open(const Path& store) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(store.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<RunPages> pages(new RunPages(handle, store));
  if (code != SQLITE_OK) return pages->Failure("open the store");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  if (sqlite3_exec(handle, "PRAGMA query_only = ON", nullptr, nullptr, nullptr) != SQLITE_OK)
    return pages->Failure("open the store");
  return pages;
}

RunPages::~RunPages() { sqlite3_close(handle_); }

std::unexpected<Error> RunPages::Failure(std::string_view action) const {
  return Fail(ErrorCode::kInternal,
              "cannot " + std::string(action) + ": " + sqlite3_errmsg(handle_), file_.string());
}

Result<Json> RunPages::Runs(const RunQuery& query) {
  const std::scoped_lock lock(mutex_);
  Statement count(handle_, fmt::format("SELECT count(*) FROM runs {}", kRunFilter));
  count.Text(1, query.status).Text(2, query.text);
  if (count.Step() != SQLITE_ROW) return Failure("count the runs");
  Json page{{"runs", Json::array()}, {"total", count.IntegerColumn(0)}};
  Statement select(handle_, fmt::format("{} {} ORDER BY created DESC, id DESC LIMIT ?3 OFFSET ?4",
                                        kRunColumns, kRunFilter));
  select.Text(1, query.status).Text(2, query.text).Integer(3, query.limit).Integer(4, query.offset);
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) page["runs"].push_back(RunSummary(select, file_));
  if (code != SQLITE_DONE) return Failure("read the runs");
  return page;
}

Result<Json> RunPages::Run(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  Statement select(handle_, fmt::format("{} WHERE id = ?", kRunColumns));
  select.Text(1, id);
  if (select.Step() != SQLITE_ROW)
    return Fail(ErrorCode::kNotFound, "there is no run '" + id + "'", "id");
  Json json = RunSummary(select, file_);
  json["spec"] = ObjectOf(select.Column(10));
  json["space"] = ObjectOf(select.Column(11));
  const Json summary = ObjectOf(select.Column(12));
  json["summary"] = summary.empty() ? Json() : summary;
  return json;
}

Result<std::vector<std::string>> RunPages::ParametersOf(const std::string& run) {
  Statement select(handle_, "SELECT space FROM runs WHERE id = ?");
  select.Text(1, run);
  if (select.Step() != SQLITE_ROW)
    return Fail(ErrorCode::kNotFound, "there is no run '" + run + "'", "id");
  const Json space = ObjectOf(select.Column(0));
  std::vector<std::string> names;
  const auto parameters = space.find("parameters");
  if (parameters == space.end() || !parameters->is_array()) return names;
  for (const Json& one : *parameters) names.push_back(one.value("name", ""));
  return names;
}

Result<Json> RunPages::Trials(const std::string& run, const TrialQuery& query) {
  const std::scoped_lock lock(mutex_);
  ATUNNER_TRY(const std::vector<std::string> names, ParametersOf(run));
  ATUNNER_TRY(const std::string filter, FilterOf(query, names));
  ATUNNER_TRY(const std::string order, OrderOf(query.sort, names));
  Statement count(handle_, fmt::format("SELECT count(*) FROM trials {}", filter));
  BindFilter(count, run, query);
  if (count.Step() != SQLITE_ROW) return Failure("count the trials");
  Json page{{"trials", Json::array()}, {"total", count.IntegerColumn(0)}};
  Statement select(handle_, fmt::format("{} {} {} LIMIT {} OFFSET {}", kTrialColumns, filter, order,
                                        query.limit, query.offset));
  BindFilter(select, run, query);
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) page["trials"].push_back(TrialRow(select, names));
  if (code != SQLITE_DONE) return Failure("read the trials");
  return page;
}

Result<Json> RunPages::Trial(const std::string& run, int64_t number) {
  const std::scoped_lock lock(mutex_);
  Statement select(handle_, "SELECT body FROM trials WHERE run = ? AND number = ? LIMIT 1");
  select.Text(1, run).Integer(2, number);
  if (select.Step() != SQLITE_ROW)
    return Fail(ErrorCode::kNotFound, fmt::format("run '{}' has no trial {}", run, number),
                "number");
  return ObjectOf(select.Column(0));
}

}  // namespace atunner::platform
