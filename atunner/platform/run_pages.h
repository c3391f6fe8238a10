// Pages of runs and trials, filtered and sorted by the database, for stores with many trials.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"

struct sqlite3;

namespace atunner::platform {

struct RunQuery {
  std::string status;  ///< "" = any
  std::string text;    ///< part of id, command or device
  int limit = 100;
  int offset = 0;
};

struct TrialQuery {
  std::string sort = "number";  ///< number, time_ns, verdict, proposer or p.NAME; "-" reverses
  std::string verdict;
  std::string proposer;
  std::optional<double> min_ns;
  std::optional<double> max_ns;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< name and value as text
  int limit = 100;
  int offset = 0;
};

/// Reads a store (docs/formats/store.md) without changing it, beside whoever writes it. Safe to use
/// from several threads.
class RunPages {
 public:
  /// The store must exist.
  static Result<std::unique_ptr<RunPages>> Open(const Path& store);
  ~RunPages();

  /// {"runs": [RunSummary…], "total": n}
  Result<Json> Runs(const RunQuery& query);
  /// RunSummary with spec, space and summary. kNotFound at "id" for an unknown run.
  Result<Json> Run(const std::string& id);
  /// {"trials": [TrialRow…], "total": n}. kInvalidInput at "sort" or "p.NAME" for an unknown
  /// parameter.
  Result<Json> Trials(const std::string& run, const TrialQuery& query);
  /// The trial as it is stored. kNotFound at "number".
  Result<Json> Trial(const std::string& run, int64_t number);

 private:
  RunPages(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  std::unexpected<Error> Failure(std::string_view action) const;
  /// Names of the run's parameters in their order.
  Result<std::vector<std::string>> ParametersOf(const std::string& run);

  sqlite3* handle_;
  Path file_;
  std::mutex mutex_;
};

}  // namespace atunner::platform
