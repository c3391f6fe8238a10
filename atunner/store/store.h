// What is remembered: runs and their trials, in SQLite. A trial is durable when AppendTrial
// returns.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/files.h"
#include "atunner/base/result.h"
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
  /// "running", "finished", "stopped", "failed"; read back "interrupted", if nobody runs it
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
  /// Opens or makes the file. A clear message for a folder that is not writable, a full disk, a
  /// file that is no store or one of a newer version.
  static Result<std::unique_ptr<Store>> Open(const Path& file);
  ~Store();

  /// The run with this key if there is one (`resumed` tells), else the wanted one, inserted. It
  /// counts as running until its status becomes another, or this store is closed.
  Result<RunRecord> OpenRun(const RunRecord& wanted, bool& resumed);
  Status UpdateRun(const RunRecord& run);
  Status DeleteRun(const std::string& id);
  /// Ignores a configuration that the run has already (two processes may share a run).
  Status AppendTrial(const std::string& run, const ParameterSpace& space, const Trial& trial);
  /// What is known of the trial of this configuration now.
  Status UpdateTrial(const std::string& run, const ParameterSpace& space, const Trial& trial);
  Result<std::vector<Trial>> Trials(const std::string& run);
  /// By id, unique prefix of an id, or "last".
  Result<RunRecord> FindRun(const std::string& name);
  /// Newest first.
  Result<std::vector<RunRecord>> Runs(int limit);

 private:
  explicit Store(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  Status Execute(const char* sql);
  Status Migrate();
  std::unexpected<Error> Failure(std::string_view action) const;

  sqlite3* handle_;
  Path file_;
  std::map<std::string, RunningMark> running_;
};

}  // namespace atunner
