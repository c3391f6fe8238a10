#include "atunner/jobs/evidence/recognised_kernels.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "atunner/codegen/template/family.h"
#include "atunner/graph/text.h"
#include "atunner/model/kernel/substitution.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/recognition/recognise.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::jobs {
namespace {

constexpr size_t kMostOffered = 6;     // at a time: as many as a rewrite has forms
constexpr uint64_t kMostRanked = 500;  // configurations whose cost is asked

/// The plan with the names of the user's arguments in place of the graph's.
Status UseNames(const std::map<std::string, std::string>& names, LaunchPlan& plan) {
  ATUNNER_RETURN_IF_ERROR(Substitute(plan, {}));
  for (LaunchStep& step : plan.steps) {
    for (ArgBinding& arg : step.args) {
      const auto known = names.find(arg.name);
      const bool tensor = arg.kind == ArgBinding::Kind::kTensor ||
                          arg.kind == ArgBinding::Kind::kTensorMap;
      if (tensor && known != names.end()) arg.name = known->second;
    }
  }
  return {};
}

}  // namespace

RecognisedKernels::RecognisedKernels(recognition::Hypothesis hypothesis,
                                     std::unique_ptr<ScheduleTemplate> schedule, SpaceIndex space,
                                     const DeviceProfile& profile)
    : hypothesis_(std::move(hypothesis)),
      schedule_(std::move(schedule)),
      space_(std::move(space)),
      profile_(profile) {}

Result<std::unique_ptr<RecognisedKernels>> RecognisedKernels::Find(const ScheduleTemplate& user,
                                                                   const RenderedKernel& own,
                                                                   const Target& target,
                                                                   Compiler& compiler) {
  vgpu::VirtualGpu gpu(target.profile);
  gpu.TrackMemory();
  ATUNNER_TRY(auto found, recognition::Recognise(own, user.spec(), user.CheckDims(user.Default()),
                                                 gpu, compiler));
  if (!found) return nullptr;
  ATUNNER_TRY(const graph::ValidGraph graph, graph::Parse(found->graph));
  ATUNNER_TRY(const KernelSpec spec, SpecOfGraph(graph, {}));
  ATUNNER_TRY(auto schedule, MakeTemplate(spec, target.profile));
  ATUNNER_TRY(SpaceIndex space, SpaceIndex::Build(schedule->space(), spec.dims));
  return std::unique_ptr<RecognisedKernels>(new RecognisedKernels(
      *std::move(found), std::move(schedule), std::move(space), target.profile));
}

std::string RecognisedKernels::Describe() const {
  const bool named = hypothesis_.form.starts_with(hypothesis_.name);
  return named ? hypothesis_.form : hypothesis_.name + ": " + hypothesis_.form;
}

double RecognisedKernels::CostOf(uint64_t index) const {
  return schedule_->Cost(space_.At(index), profile_)
      .value_or(std::numeric_limits<double>::infinity());
}

std::optional<OfferedKernel> RecognisedKernels::Offer(uint64_t index) const {
  const Configuration configuration = space_.At(index);
  auto kernel = schedule_->Render(configuration);
  if (!kernel || !UseNames(hypothesis_.names, kernel->plan)) return std::nullopt;
  return OfferedKernel{index, schedule_->space().Describe(configuration), *std::move(kernel)};
}

std::vector<OfferedKernel> RecognisedKernels::Rendered(std::vector<uint64_t> indices) const {
  std::vector<OfferedKernel> offers;
  for (const uint64_t index : indices) {
    if (offers.size() == kMostOffered) break;
    if (auto offer = Offer(index)) offers.push_back(*std::move(offer));
  }
  return offers;
}

std::vector<OfferedKernel> RecognisedKernels::First() const {
  std::vector<std::pair<double, uint64_t>> ranked;
  const uint64_t step = std::max<uint64_t>(1, space_.size() / kMostRanked);
  const uint64_t first = space_.IndexOf(schedule_->Default());
  for (uint64_t i = 0; i < space_.size(); i += step) {
    if (i != first) ranked.emplace_back(CostOf(i), i);
  }
  std::ranges::sort(ranked);
  std::vector<uint64_t> indices;
  if (first < space_.size()) indices.push_back(first);
  for (const auto& [cost, index] : ranked) indices.push_back(index);
  return Rendered(std::move(indices));
}

std::vector<OfferedKernel> RecognisedKernels::Near(uint64_t index) const {
  std::vector<uint64_t> near = space_.Neighbours(index, Neighbourhood::kHamming);
  std::ranges::stable_sort(near, {}, [this](uint64_t one) { return CostOf(one); });
  return Rendered(std::move(near));
}

}  // namespace atunner::jobs
