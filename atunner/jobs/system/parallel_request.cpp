#include "atunner/jobs/system/parallel_request.h"

#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/system/model_profile.h"

namespace atunner::jobs {
namespace {

Result<planning::LinkModel> ReadLink(const std::string& file) {
  ATUNNER_TRY(const std::string text, ReadFile(file));
  auto table = planning::ReadCommTable(text);
  if (!table) return Invalid(table.error().ToString(), file);
  auto link = planning::FitLink(*table);
  if (!link) return Invalid(link.error().ToString(), file);
  return link;
}

Result<planning::MeasuredPasses> ReadMeasured(const std::string& file) {
  ATUNNER_TRY(const std::string text, ReadFile(file));
  auto passes = planning::ReadMeasuredPasses(text);
  if (!passes) return Invalid(passes.error().ToString(), file);
  return passes;
}

}  // namespace

Result<planning::ParallelRequest> ReadParallelRequest(const ParallelModelRequest& request,
                                                      const importers::ImportedModel& model) {
  planning::ParallelRequest result;
  ATUNNER_TRY(const auto gpus, planning::ParseGpus(request.gpus, "request.gpus"));
  ATUNNER_TRY(result.cluster.device, FindProfile(gpus.second));
  result.cluster.gpus = gpus.first;
  result.cluster.link = planning::LinkOf(result.cluster.device);
  if (!request.comm_table.empty()) {
    ATUNNER_TRY(result.cluster.link, ReadLink(request.comm_table));
  }
  ATUNNER_TRY(result.model, ProfileOfModel(model));
  if (!request.measured.empty()) {
    ATUNNER_TRY(result.model.measured, ReadMeasured(request.measured));
    result.model.notes.emplace_back("passes and the update of one GPU are measured");
  }
  if (request.batch < 0) return Invalid("must be above 0", "request.batch");
  if (request.optimizer_bytes < 0)
    return Invalid("must not be negative", "request.optimizer_bytes");
  result.facts.batch = request.batch > 0 ? request.batch : result.model.batch * gpus.first;
  result.facts.optimizer_bytes = request.optimizer_bytes;
  const auto memory = static_cast<double>(result.cluster.device.dram_bytes);
  result.facts.capacity = request.capacity_gb > 0 ? request.capacity_gb * 1e9
                                                  : kUsableMemory * memory;
  result.objective = request.objective;
  return result;
}

Result<planning::ParallelRequest> ReadParallelRequest(const ParallelModelRequest& request) {
  ATUNNER_TRY(const importers::ImportedModel model, importers::ImportModel(request.model));
  return ReadParallelRequest(request, model);
}

}  // namespace atunner::jobs
