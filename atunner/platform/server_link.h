// What a worker says to the server whose jobs it runs (faces/serve/openapi.yaml, /api/v1/work).
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/http/client.h"
#include "atunner/model/json/json.h"
#include "atunner/store/store.h"

namespace atunner::platform {

/// The hint of an error where no server answers.
inline constexpr const char* kServerHint = "is `atunner serve` running there?";

struct WorkerDescription {
  std::string name;
  std::vector<std::string> gpus;
  std::map<std::string, std::string> labels;
};

/// Its labels, with its first GPU as "gpu" unless it has a label of that name.
std::map<std::string, std::string> LabelsOf(const WorkerDescription& worker);

/// Which job a worker asks for.
struct Wanted {
  std::string job;           ///< only this one; "": the first that it can take
  double wait_seconds = 10;  ///< how long the server waits for one; not for a certain job
};

struct LeasedJob {
  std::string id;
  std::string lease;
  Json request;
};

/// A lease that the server no longer knows is kInvalidInput at "lease".
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  /// nullopt when there is no job for this worker now.
  virtual Result<std::optional<LeasedJob>> Lease(const WorkerDescription& worker,
                                                 const Wanted& wanted) = 0;
  /// True if the job is to be cancelled.
  virtual Result<bool> HeartBeat(const LeasedJob& job) = 0;
  virtual Status SendEvents(const LeasedJob& job, int64_t batch, const Json& events,
                            const Json& progress) = 0;
  /// Puts an uploaded file into `folder`. Returns its path.
  virtual Result<Path> Fetch(const std::string& upload, const Path& folder) = 0;
  virtual Status PutArtifact(const LeasedJob& job, const std::string& path, const Path& file) = 0;
  /// Returns the id under which the server keeps the run: that of an equal run if it has one, maybe
  /// of another worker.
  virtual Result<std::string> SendRun(const LeasedJob& job, const RunRecord& run,
                                      const std::vector<Trial>& trials) = 0;
  /// `state`: succeeded, cancelled, failed, or queued to give the job back. `retry`: another
  /// attempt may mend the failure.
  virtual Status End(const LeasedJob& job, const std::string& state, const Json& result,
                     const Json& error, bool retry) = 0;
};

/// Over HTTP. A server that does not answer is asked again for `patience_seconds`, so that it may
/// be restarted meanwhile.
std::unique_ptr<ServerLink> MakeHttpLink(http::Origin origin, std::string token, Clock& clock,
                                         double patience_seconds);

/// A run without its trials, for SendRun; and back.
Json RunJson(const RunRecord& run);
Result<RunRecord> RunFromJson(const Json& json);

/// What a server's answer with a status above 299 says. Problems become errors with their fields.
Error ErrorOf(const http::Response& response);

}  // namespace atunner::platform
