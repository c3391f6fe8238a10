#include "atunner/workflow/memory_checkpoints.h"

#include <algorithm>
#include <utility>

namespace atunner::workflow {

struct MemoryCheckpoints::Held : Checkpoints::Mark {
  Held(std::shared_ptr<std::set<std::string>> all, std::string flow)
      : occupied(std::move(all)), id(std::move(flow)) {}
  ~Held() override { occupied->erase(id); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  std::shared_ptr<std::set<std::string>> occupied;
  std::string id;
};

Status MemoryCheckpoints::AddFlow(const FlowRecord& flow) {
  const auto same = [&](const FlowRecord& other) { return other.id == flow.id; };
  if (std::ranges::any_of(records_, same)) return Invalid("there is a flow '" + flow.id + "'");
  records_.push_back(flow);
  return {};
}

Status MemoryCheckpoints::SetStatus(const std::string& flow, const std::string& status,
                                    const std::string& error) {
  for (FlowRecord& record : records_) {
    if (record.id != flow) continue;
    record.status = status;
    record.error = error;
  }
  return {};
}

Result<std::optional<FlowRecord>> MemoryCheckpoints::FindFlow(const std::string& id) {
  for (const FlowRecord& record : records_) {
    if (record.id != id) continue;
    FlowRecord found = record;
    if (found.status == "running" && !occupied_->contains(id)) found.status = "interrupted";
    return found;
  }
  return std::nullopt;
}

Result<std::vector<FlowRecord>> MemoryCheckpoints::Flows(int limit) {
  std::vector<FlowRecord> flows;
  for (auto at = records_.rbegin(); at != records_.rend(); ++at) {
    if (std::ssize(flows) >= limit) break;
    ATUNNER_TRY(auto record, FindFlow(at->id));
    flows.push_back(*std::move(record));
  }
  return flows;
}

Status MemoryCheckpoints::Delete(const std::string& flow) {
  std::erase_if(records_, [&](const FlowRecord& record) { return record.id == flow; });
  std::erase_if(flows_, [&](const auto& pair) {
    return pair.first == flow || pair.first.starts_with(flow + "/");
  });
  cancelled_.erase(flow);
  return {};
}

Status MemoryCheckpoints::RequestCancel(const std::string& flow, bool wanted) {
  if (wanted)
    cancelled_.insert(flow);
  else
    cancelled_.erase(flow);
  return {};
}

Result<bool> MemoryCheckpoints::CancelRequested(const std::string& flow) {
  return cancelled_.contains(flow);
}

Status MemoryCheckpoints::Put(const std::string& flow, const Checkpoint& checkpoint) {
  if (!flows_[flow].checkpoints.emplace(checkpoint.number, checkpoint).second)
    return Invalid("the flow has a checkpoint " + std::to_string(checkpoint.number), flow);
  return {};
}

Result<std::optional<Checkpoint>> MemoryCheckpoints::Get(const std::string& flow,
                                                         std::optional<int64_t> number) {
  const auto found = flows_.find(flow);
  if (found == flows_.end() || found->second.checkpoints.empty()) return std::nullopt;
  const auto& checkpoints = found->second.checkpoints;
  if (!number) return checkpoints.rbegin()->second;
  const auto at = checkpoints.find(*number);
  if (at == checkpoints.end()) return std::nullopt;
  return at->second;
}

Result<std::vector<Checkpoint>> MemoryCheckpoints::List(const std::string& flow) {
  std::vector<Checkpoint> all;
  if (const auto found = flows_.find(flow); found != flows_.end()) {
    for (const auto& [number, checkpoint] : found->second.checkpoints) all.push_back(checkpoint);
  }
  return all;
}

Status MemoryCheckpoints::PutWrite(const std::string& flow, int64_t number,
                                   const PendingWrite& write) {
  flows_[flow].writes[number].insert_or_assign({write.task, write.kind, write.index}, write);
  return {};
}

Result<std::vector<PendingWrite>> MemoryCheckpoints::Writes(const std::string& flow,
                                                            int64_t number) {
  std::vector<PendingWrite> all;
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return all;
  const auto at = found->second.writes.find(number);
  if (at == found->second.writes.end()) return all;
  for (const auto& [key, write] : at->second) all.push_back(write);
  return all;
}

Result<std::unique_ptr<Checkpoints::Mark>> MemoryCheckpoints::Occupy(const std::string& flow) {
  if (!occupied_->insert(flow).second) return Invalid("the flow is being worked on", flow);
  return std::make_unique<Held>(occupied_, flow);
}

}  // namespace atunner::workflow
