// Checkpoints in an SQLite file of their own, beside the store of runs (docs/workflow.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/workflow/checkpoint.h"

struct sqlite3;

namespace atunner::workflow {

class SqliteCheckpoints : public Checkpoints {
 public:
  /// Opens or makes the file. kInvalidInput for a file that cannot be written, that is no such
  /// database, or that a newer version wrote.
  static Result<std::unique_ptr<SqliteCheckpoints>> Open(const Path& file);
  ~SqliteCheckpoints() override;

  Status AddFlow(const FlowRecord& flow) override;
  Status SetStatus(const std::string& flow, const std::string& status,
                   const std::string& error) override;
  Result<std::optional<FlowRecord>> FindFlow(const std::string& id) override;
  Result<std::vector<FlowRecord>> Flows(int limit) override;
  Status Delete(const std::string& flow) override;
  Status RequestCancel(const std::string& flow, bool wanted) override;
  Result<bool> CancelRequested(const std::string& flow) override;
  Status Put(const std::string& flow, const Checkpoint& checkpoint) override;
  Result<std::optional<Checkpoint>> Get(const std::string& flow,
                                        std::optional<int64_t> number) override;
  Result<std::vector<Checkpoint>> List(const std::string& flow) override;
  Status PutWrite(const std::string& flow, int64_t number, const PendingWrite& write) override;
  Result<std::vector<PendingWrite>> Writes(const std::string& flow, int64_t number) override;
  Result<std::unique_ptr<Mark>> Occupy(const std::string& flow) override;

 private:
  SqliteCheckpoints(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  Status Prepare();
  Result<int> Version() const;
  Status Execute(const char* sql) const;
  std::unexpected<Error> Failure(const std::string& action) const;
  Result<std::vector<FlowRecord>> ReadFlows(const std::string& rest, const std::string& id,
                                            int limit);
  Result<std::vector<Checkpoint>> ReadCheckpoints(const std::string& rest, const std::string& flow,
                                                  int64_t number);

  sqlite3* handle_;
  Path file_;
};

}  // namespace atunner::workflow
