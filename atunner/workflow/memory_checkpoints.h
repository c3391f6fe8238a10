// Checkpoints that live as long as the object: for flows inside one process, and for tests.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "atunner/workflow/checkpoint.h"

namespace atunner::workflow {

class MemoryCheckpoints : public Checkpoints {
 public:
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
  using WriteKey = std::tuple<int64_t, PendingWrite::Kind, int64_t>;
  struct Flow {
    std::map<int64_t, Checkpoint> checkpoints;
    std::map<int64_t, std::map<WriteKey, PendingWrite>> writes;
  };
  struct Held;

  std::vector<FlowRecord> records_;
  std::map<std::string, Flow> flows_;
  std::set<std::string> cancelled_;
  std::shared_ptr<std::set<std::string>> occupied_ = std::make_shared<std::set<std::string>>();
};

}  // namespace atunner::workflow
