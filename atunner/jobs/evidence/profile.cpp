#include "atunner/jobs/evidence/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/evidence/counted.h"
#include "atunner/evidence/measured.h"
#include "atunner/judge/judge.h"
#include "atunner/judge/predict.h"
#include "atunner/judge/prediction_buffers.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::jobs {
namespace {

constexpr uint64_t kLineBlocks = 8;  // of a launch, for costs by line

LaunchProfile ProfileOf(const vgpu::EstimateInput& in, const evidence::CounterSet& measured) {
  LaunchProfile launch;
  launch.entry = in.resources.entry;
  launch.grid = in.shape.grid;
  launch.block = in.shape.block;
  launch.estimate = EstimateTime(in);
  launch.counted = evidence::CountersOf(in, launch.estimate);
  launch.counters = evidence::Merged(measured, launch.counted);
  launch.roofline = evidence::RooflineOf(launch.counters, *in.profile);
  launch.findings = evidence::Classify({launch.counters, launch.estimate.limiter, &in});
  return launch;
}

/// The GPU's counters of each launch.
Result<std::vector<evidence::CounterSet>> MeasureLaunches(const KernelSpec& spec,
                                                          const CandidateKernel& kernel,
                                                          const Target& target,
                                                          const ProfileRequest& request,
                                                          Devices& devices) {
  constexpr double kStartSeconds = 60;  // of the process, beside the launches
  const auto judge = devices.MakeJudge(target, kStartSeconds + request.kernel.timeout_seconds);
  JudgeTask task;
  task.spec = spec;
  task.launch_timeout_seconds = request.kernel.timeout_seconds;
  ATUNNER_RETURN_IF_ERROR(judge->Begin(task));
  ATUNNER_TRY(const auto launches,
              judge->Count(kernel, evidence::MetricsOf(request.counters), task.seed));
  std::vector<evidence::CounterSet> measured;
  for (const LaunchMetrics& metrics : launches)
    measured.push_back(evidence::MeasuredCounters(metrics));
  return measured;
}

/// Blocks from all parts of the grid.
std::vector<uint64_t> SampleOf(uint64_t blocks) {
  std::vector<uint64_t> sample;
  for (uint64_t i = 0; i < std::min(blocks, kLineBlocks); ++i)
    sample.push_back(blocks <= kLineBlocks ? i : i * blocks / kLineBlocks);
  return sample;
}

Status CountLinesOf(const LoadedKernel& kernel, const Target& target, Compiler& compiler,
                    double timeout_seconds, KernelProfile& profile) {
  ATUNNER_TRY(const auto device, KernelOnVirtualGpu::Make(kernel, target, compiler));
  for (const BoundStep& step : device->steps()) {
    LaunchOptions options;
    options.check_hazards = false;
    options.timeout_seconds = timeout_seconds;
    if (!step.shape.cooperative) options.blocks = SampleOf(step.shape.grid.Count());
    ATUNNER_TRY(
        const vgpu::ExecResult result,
        device->gpu().LaunchCounted(device->module(), step.entry, step.shape, step.args, options));
    if (!result.outcome.completed())
      return Invalid("'" + step.entry + "' does not complete: " + result.outcome.message, "",
                     "`atunner sanitize` says why");
    for (const auto& [place, line] : result.lines) profile.lines[place] += line;
    profile.line_blocks += result.outcome.blocks_executed;
  }
  return {};
}

Json JsonOf(const LaunchProfile& launch) {
  Json counters = Json::array();
  for (const auto& [counter, value] : launch.counters) {
    const evidence::CounterInfo& info = evidence::InfoOf(counter);
    Json& json = counters.emplace_back(Json{{"name", info.name},
                                            {"value", value.value},
                                            {"unit", info.unit},
                                            {"origin", evidence::Name(value.origin)}});
    if (value.origin == evidence::Origin::kCounted) continue;
    const auto counted = evidence::ValueOf(launch.counted, counter);
    json["counted"] = counted ? Json(*counted) : Json();
  }
  Json findings = Json::array();
  for (const evidence::Finding& finding : launch.findings) {
    findings.push_back({{"bottleneck", evidence::Name(finding.bottleneck)},
                        {"evidence", finding.evidence},
                        {"gain", finding.gain ? Json(*finding.gain) : Json()}});
  }
  return {{"kernel", launch.entry},
          {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
          {"block", {launch.block.x, launch.block.y, launch.block.z}},
          {"predicted_ns", launch.estimate.time_ns},
          {"limiter", launch.estimate.limiter},
          {"counters", counters},
          {"roofline",
           {{"flops", launch.roofline.flops},
            {"flop_per_byte", launch.roofline.intensity},
            {"flop_per_s", launch.roofline.flop_rate},
            {"attainable_flop_per_s", launch.roofline.attainable_rate},
            {"ridge_flop_per_byte", launch.roofline.ridge}}},
          {"findings", findings}};
}

}  // namespace

const LaunchProfile& KernelProfile::Longest() const {
  return *std::ranges::max_element(
      launches, {}, [](const LaunchProfile& launch) { return launch.estimate.time_ns; });
}

Result<std::vector<LaunchProfile>> ProfileLaunches(
    const KernelSpec& spec, const CandidateKernel& kernel, const Target& target,
    const std::vector<evidence::CounterSet>& measured) {
  vgpu::VirtualGpu device(target.profile);
  device.Calibrate(target.calibration);
  std::vector<LaunchProfile> launches;
  device.Observe([&](const vgpu::EstimateInput& input) {
    const size_t i = launches.size();
    launches.push_back(
        ProfileOf(input, i < measured.size() ? measured[i] : evidence::CounterSet()));
  });
  ATUNNER_TRY(PredictionBuffers buffers, PredictionBuffers::Make(device, spec));
  ATUNNER_TRY(const auto module, device.Load(kernel.module));
  ATUNNER_RETURN_IF_ERROR(PredictPlan(device, spec, kernel, *module, buffers));
  if (launches.empty()) return Invalid("the kernel launches nothing");
  return launches;
}

Result<KernelProfile> Profile(const ProfileRequest& request, Services& services,
                              const EventSink& events) {
  ATUNNER_TRY(Target target, TargetOf(request.kernel, services.devices));
  if (target.real_index) target.calibration = Calibration::Expected(target.profile);
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  ATUNNER_TRY(const LoadedKernel kernel, LoadKernel(request.kernel, target, *compiler, events));
  KernelProfile profile;
  profile.kernel = kernel.name;
  profile.configuration = kernel.configuration;
  profile.gpu = target.profile.name;
  profile.rendered = kernel.rendered;
  profile.spec = kernel.spec;
  profile.source_name = kernel.source_name;
  profile.source = kernel.source;
  profile.folder = kernel.folder;
  std::vector<evidence::CounterSet> measured;
  if (request.measure && target.real_index) {
    auto counted = MeasureLaunches(kernel.spec, kernel.candidate, target, request,
                                   services.devices);
    if (counted)
      measured = *std::move(counted);
    else
      profile.not_measured = counted.error().ToString();
  }
  ATUNNER_TRY(profile.launches, ProfileLaunches(kernel.spec, kernel.candidate, target, measured));
  for (const LaunchProfile& launch : profile.launches) profile.time_ns += launch.estimate.time_ns;
  if (request.lines)
    ATUNNER_RETURN_IF_ERROR(
        CountLinesOf(kernel, target, *compiler, request.kernel.timeout_seconds, profile));
  return profile;
}

Json ToJson(const KernelProfile& profile) {
  Json json{{"kernel", profile.kernel},
            {"configuration", profile.configuration},
            {"target", profile.gpu},
            {"predicted_ns", profile.time_ns},
            {"not_measured", profile.not_measured},
            {"bottleneck", evidence::Name(profile.Longest().findings.front().bottleneck)},
            {"launches", Json::array()},
            {"line_blocks", profile.line_blocks},
            {"lines", Json::array()}};
  for (const LaunchProfile& launch : profile.launches) json["launches"].push_back(JsonOf(launch));
  for (const auto& [place, line] : profile.lines) {
    json["lines"].push_back({{"file", place.first},
                             {"line", place.second},
                             {"instructions", line.WarpInstructions()},
                             {"global_requests", line.memory.global_requests},
                             {"global_sectors", line.memory.global_sectors},
                             {"shared_requests", line.memory.shared_requests},
                             {"shared_wavefronts", line.memory.shared_wavefronts},
                             {"branches", line.memory.branches},
                             {"divergent_branches", line.memory.divergent_branches}});
  }
  return json;
}

}  // namespace atunner::jobs
