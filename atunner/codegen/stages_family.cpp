// Stages: graphs that no other family computes at once are partitioned into subgraphs, which run
// one after the other: losses of rows and their totals, norms over all elements that every element
// needs, products behind products. Each subgraph is scheduled by another family and tuned as a task
// of its own; the whole chooses among the results. A configuration of the whole is one of the
// subgraph that should take longest; the others use their defaults.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "atunner/codegen/stages.h"
#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/schedule/joined_kernel.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/operators/part_task.h"

namespace atunner {
namespace {

std::optional<std::vector<PartTask>> TasksOf(const Task& task, bool pairs) {
  auto divided = StagesOf(task, pairs);
  if (!divided) return std::nullopt;
  std::vector<PartTask> tasks;
  for (Stage& stage : divided->stages) tasks.push_back(std::move(stage.task));
  return tasks;
}

using Templates = std::vector<std::unique_ptr<ScheduleTemplate>>;

/// The templates of tasks, made on all cores: each costs many configurations for its default.
Result<Templates> TemplatesOf(const std::vector<const Task*>& tasks, const DeviceProfile& profile) {
  Templates made(tasks.size());
  std::vector<std::optional<Error>> errors(tasks.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      auto one = MakeTemplate(*tasks[i], profile);
      if (one)
        made[i] = *std::move(one);
      else
        errors[i] = std::move(one.error());
    }
  };
  {
    const size_t most = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(most, tasks.size()); ++i) threads.emplace_back(work);
    work();
  }
  for (std::optional<Error>& error : errors) {
    if (error) return std::unexpected(*std::move(error));
  }
  return made;
}

class StagesTemplate : public BoundTemplate, public PartitionedSchedule {
 public:
  StagesTemplate(const KernelSpec& spec, const DeviceProfile& profile, std::vector<PartTask> stages)
      : BoundTemplate(spec, profile), stages_(std::move(stages)) {}

  /// Equal stages are one part. The space is that of the part with most work.
  Status BindParts() {
    std::vector<const Task*> tasks;
    for (const PartTask& stage : stages_) {
      const auto known = std::ranges::find_if(tasks, [&](const Task* task) {
        return task->spec().oracle.graph == stage.task.spec().oracle.graph;
      });
      part_of_.push_back(static_cast<size_t>(known - tasks.begin()));
      if (known == tasks.end()) tasks.push_back(&stage.task);
    }
    ATUNNER_TRY(parts_, TemplatesOf(tasks, profile_));
    const auto longest = std::ranges::max_element(
        tasks, {}, [&](const Task* task) { return LeastNs(task->spec()); });
    main_ = static_cast<size_t>(longest - tasks.begin());
    space_ = parts_[main_]->space();
    return {};
  }

  Configuration Default() const override { return parts_[main_]->Default(); }
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    return parts_[main_]->Cost(configuration, profile);
  }
  std::vector<const ScheduleTemplate*> Parts() const override {
    std::vector<const ScheduleTemplate*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    return parts;
  }

  std::vector<PartStage> Stages() const override {
    std::vector<PartStage> stages;
    for (size_t i = 0; i < stages_.size(); ++i) stages.push_back({part_of_[i], stages_[i].names});
    return stages;
  }

  bool SharesSizes(size_t part) const override {
    return stages_[static_cast<size_t>(std::ranges::find(part_of_, part) - part_of_.begin())]
        .sizes.empty();
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return CheckDimsOf(OfParts(configuration), spec_.dims);
  }
  ValidSizes FreeSizes(const Configuration& configuration) const override {
    return FreeSizesOf(OfParts(configuration), spec_.dims);
  }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return RenderParts(OfParts(configuration));
  }

  Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const override {
    JoinedKernel all(spec_, CapabilitiesOf(profile_).programmatic_launch);
    for (size_t i = 0; i < stages_.size(); ++i) {
      ATUNNER_TRY(RenderedKernel stage, parts_[part_of_[i]]->Render(configurations[part_of_[i]]));
      ATUNNER_RETURN_IF_ERROR(
          all.Add(std::move(stage), stages_[i].task.spec(), stages_[i].names, stages_[i].sizes));
    }
    return std::move(all).Finish();
  }

 private:
  /// By memory's and tensor cores' peaks.
  double LeastNs(const KernelSpec& task) const {
    const double flops = FlopCount(task, task.dims).value_or(0);
    return std::max(
        MinimumBytes(task, task.dims).value_or(0) / profile_.dram_gbps,
        flops / (2 * profile_.tensor_fp16_fma_per_clk * profile_.sms * profile_.clock_ghz));
  }

  /// The configuration of the longest part, with the defaults of the others.
  std::vector<Configuration> OfParts(const Configuration& configuration) const {
    std::vector<Configuration> all;
    for (const auto& part : parts_) all.push_back(part->Default());
    all[main_] = configuration;
    return all;
  }

  std::vector<PartTask> stages_;
  Templates parts_;
  std::vector<size_t> part_of_;  ///< each stage's
  size_t main_ = 0;
};

BoundSchedule Bind(const KernelSpec& spec, std::vector<PartTask> stages,
                   const DeviceProfile& profile) {
  auto bound = std::make_unique<StagesTemplate>(spec, profile, std::move(stages));
  ATUNNER_RETURN_IF_ERROR(bound->BindParts());
  return bound;
}

/// Kernels of two products at once take Hopper: for other devices the graph is partitioned again.
BoundSchedule BindWithoutPairs(const Task& task, const DeviceProfile& profile) {
  auto stages = TasksOf(task, /*pairs=*/false);
  if (stages) return Bind(task.spec(), *std::move(stages), profile);
  return Fail(ErrorCode::kUnsupported,
              "the parts of '" + task.spec().name + "' take a GPU of Hopper");
}

Binding Try(const Task& task) {
  auto stages = TasksOf(task, /*pairs=*/true);
  if (!stages) return {};
  return {.bind = [task, stages = *std::move(stages)](const DeviceProfile& profile) {
    return CapabilitiesOf(profile).wgmma ? Bind(task.spec(), stages, profile)
                                         : BindWithoutPairs(task, profile);
  }};
}

}  // namespace

constinit const Family kStagesFamily{.name = "stages", .Try = Try, .partitions = true};

}  // namespace atunner
