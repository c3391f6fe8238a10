// Runs and their trials, remembered in one SQLite file (docs/formats/store.md). A trial is durable
// when AppendTrial returns.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/candidate/renamed_parameters.h"
#include "atunner/model/trial/trial.h"
#include "atunner/store/running_mark.h"

struct sqlite3;

namespace atunner {

struct RunRecord {
  std::string id;  ///< "20261121-0123-softmax-3f2a"
  /// Digest of everything that decides the run: the same command finds it again
  std::string key;
  std::string command;  ///< as the user gave it
  std::string created;  ///< UTC
  /// "running", "finished", "stopped", "failed"; reads "interrupted" when no process works on it
  std::string status;
  std::string evidence;  ///< "measured" or "predicted"
  std::string device;
  std::string spec;   ///< KernelSpec as JSON
  std::string space;  ///< ParameterSpace as JSON
  /// JSON: baselines, best, settings, or the error; written when the run ends
  std::string summary;
  double seconds = 0;  ///< wall time spent, all sessions together
};

class Store {
 public:
  /// Opens or makes the file; a store of an earlier version is migrated. kInvalidInput for a folder
  /// that is not writable, a full disk, a database of another program, a file that is no store or
  /// one of a newer version: the file then stays as it was. `renamed` is for tests.
  static Result<std::unique_ptr<Store>> Open(
      const Path& file, std::span<const RenamedParameter> renamed = RenamedParameters());
  ~Store();

  /// The run with this key if there is one (`resumed` becomes true), else `wanted`, inserted. The
  /// run counts as running until its status is changed or this store is closed. Where another run
  /// has the id of `wanted`, "-2", "-3", … is appended.
  Result<RunRecord> OpenRun(const RunRecord& wanted, bool& resumed);
  Status UpdateRun(const RunRecord& run);
  Status DeleteRun(const std::string& id);
  /// Ignores a candidate that the run has already (two processes may share a run).
  Status AppendTrial(const std::string& run, const Trial& trial);
  /// Replaces the results of the trial that has the same candidate.
  Status UpdateTrial(const std::string& run, const Trial& trial);
  /// In the order of their numbers.
  Result<std::vector<Trial>> Trials(const std::string& run);
  /// By id, unique prefix of an id, or "last".
  Result<RunRecord> FindRun(const std::string& name);
  /// Newest first.
  Result<std::vector<RunRecord>> Runs(int limit);

 private:
  explicit Store(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  Status InsertRun(const RunRecord& wanted, const std::string& id);
  std::unexpected<Error> Failure(std::string_view action) const;

  sqlite3* handle_;
  Path file_;
  std::map<std::string, RunningMark> running_;
};

}  // namespace atunner
