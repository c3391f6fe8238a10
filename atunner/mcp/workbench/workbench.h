// The state behind the tools: problems that clients described, tuning jobs, and long texts.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/problems.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/mcp/workbench/texts.h"
#include "atunner/mcp/workbench/tuning_jobs.h"

namespace atunner::mcp {

/// A problem for one GPU. Its task does not change once it has an id.
struct Problem {
  std::string id;  ///< "softmax-3f2a51c0": its name, and the digest of its task and GPU
  jobs::ProblemRequest request;
  Target target;
  std::shared_ptr<const ScheduleTemplate> schedule;
  std::vector<std::string> notes;
};

struct WorkbenchSettings {
  /// Clients may name files of this machine. Only for clients that run as the same user.
  bool files = false;
};

class Workbench {
 public:
  /// `services` must outlive the object.
  static Result<std::unique_ptr<Workbench>> Make(jobs::Services& services,
                                                 WorkbenchSettings settings);

  /// Thread-safe. `gpu` "": the GPU of this machine, else the A100.
  Result<std::shared_ptr<const Problem>> Register(const jobs::ProblemRequest& request,
                                                  const std::string& gpu);
  /// kNotFound for an id that this session did not describe.
  Result<std::shared_ptr<const Problem>> Find(const std::string& id) const;
  /// A file with this text in a folder of its own, for the readers of sources.
  Result<Path> Write(const std::string& name, const std::string& text);

  jobs::Services& services() { return services_; }
  Texts& texts() { return texts_; }
  TuningJobs& tuning() { return tuning_; }
  const WorkbenchSettings& settings() const { return settings_; }

 private:
  Workbench(jobs::Services& services, WorkbenchSettings settings, TemporaryDirectory folder)
      : services_(services), settings_(settings), folder_(std::move(folder)), tuning_(services) {}
  Result<Target> TargetOf(const std::string& gpu);

  jobs::Services& services_;
  WorkbenchSettings settings_;
  TemporaryDirectory folder_;
  Texts texts_;
  TuningJobs tuning_;
  mutable std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::shared_ptr<const Problem>> problems_;
  int files_ = 0;
};

}  // namespace atunner::mcp
