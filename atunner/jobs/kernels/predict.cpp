#include "atunner/jobs/kernels/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/requests/user_sources.h"
#include "atunner/judge/predict.h"
#include "atunner/judge/prediction_buffers.h"
#include "atunner/model/json/json.h"
#include "atunner/tune/compile_ahead.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::jobs {
namespace {

constexpr size_t kLargestList = size_t{1} << 30;
constexpr const char* kListForm =
    "write [[16, 2, \"shared\"], ...], values in the order of the parameters";

/// The configuration of one entry: a list of values, or a trial of a run's export.
Result<Configuration> ReadConfiguration(const Json& entry, size_t number,
                                        const ParameterSpace& space, const std::string& file) {
  const bool trial = entry.is_object() && entry.contains("configuration");
  const Json& values = trial ? entry["configuration"] : entry;
  if (!values.is_array())
    return Invalid(fmt::format("configuration {} is no list of values", number), file, kListForm);
  ATUNNER_TRY(Configuration configuration, FromJson<Configuration>(values));
  if (configuration.values.size() != space.parameters.size())
    return Invalid(fmt::format("configuration {} has {} values, the space {} parameters", number,
                               configuration.values.size(), space.parameters.size()),
                   file);
  return configuration;
}

/// A JSON array of configurations (arrays of values in the space's order), or the export of a run,
/// of which the trials' configurations are taken.
Result<std::vector<Configuration>> ReadConfigurations(const std::string& file,
                                                      const ParameterSpace& space) {
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargestList));
  ATUNNER_TRY(const Json json, ParseJson(text, file));
  const bool run = json.is_object() && json.contains("trials") && json["trials"].is_array();
  if (!run && !json.is_array())
    return Invalid("is neither a list of configurations nor a run's export", file, kListForm);
  std::vector<Configuration> configurations;
  for (const Json& entry : run ? json["trials"] : json) {
    ATUNNER_TRY(Configuration configuration,
                ReadConfiguration(entry, configurations.size() + 1, space, file));
    configurations.push_back(std::move(configuration));
  }
  return configurations;
}

Json CountsOf(const vgpu::EstimateInput& input) {
  Json json{
      {"kernel", input.resources.entry},
      {"registers", input.resources.registers},
      {"local_bytes", input.resources.local_bytes},
      {"shared_bytes", input.resources.static_shared_bytes + input.shape.dynamic_shared_bytes},
      {"grid", input.shape.grid.Count()},
      {"block", input.shape.block.Count()},
      {"cluster", input.shape.cluster.Count()},
      {"blocks_per_sm", input.occupancy.blocks_per_sm},
      {"footprint_bytes", input.footprint_bytes}};
  for (const auto& [name, value] : input.counts.Figures()) json[name] = value;
  return json;
}

/// Predicts one configuration after the other; sources compile ahead on all cores.
class Predictor {
 public:
  Predictor(const ScheduleTemplate& schedule, const Target& target, Compiler& compiler,
            Clock& clock, bool counts)
      : schedule_(schedule),
        device_(target.profile),
        compiler_(schedule, compiler, std::string(device_.arch())),
        clock_(clock) {
    device_.Calibrate(target.calibration);
    if (counts)
      device_.Observe(
          [this](const vgpu::EstimateInput& input) { launches_.push_back(CountsOf(input)); });
  }

  Result<std::vector<Prediction>> Run(const std::vector<Configuration>& configurations,
                                      size_t threads, const std::stop_token& stop) {
    ATUNNER_TRY(PredictionBuffers buffers, PredictionBuffers::Make(device_, schedule_.spec()));
    CompileAhead ahead([this](const Candidate& one, const std::stop_token& ended) {
      return compiler_.Compile(one, ended);
    });
    std::vector<Prediction> results;
    size_t submitted = 0;
    while (results.size() < configurations.size() && !stop.stop_requested()) {
      while (submitted < configurations.size() && ahead.size() < threads)
        ahead.Submit(MakeCandidate(schedule_.space(), configurations[submitted++], {"user", ""}));
      const auto compiled = ahead.Take([] { return false; }, kForever);
      results.push_back(Predict(*compiled, buffers));
    }
    return results;
  }

 private:
  static constexpr double kForever = 1e9;  // s; results stay in the order of the list

  Prediction Predict(const Compiled& compiled, PredictionBuffers& buffers) {
    Prediction one;
    one.configuration = *compiled.candidate.configuration();
    one.described = compiled.candidate.Describe(schedule_.space());
    auto estimate = EstimateOf(compiled, buffers, one);
    if (estimate)
      one.estimate = *std::move(estimate);
    else
      one.error = estimate.error();
    return one;
  }

  Result<Estimate> EstimateOf(const Compiled& compiled, PredictionBuffers& buffers,
                              Prediction& one) {
    if (!compiled.rendered) return std::unexpected(compiled.rendered.error());
    if (!compiled.outcome) return std::unexpected(compiled.outcome.error());
    if (!compiled.outcome->ok()) return Invalid(compiled.outcome->error);
    launches_ = Json::array();
    const CandidateKernel candidate{*compiled.outcome->module, compiled.rendered->plan, {}};
    const double start = clock_.Now();
    ATUNNER_TRY(const auto module, device_.Load(candidate.module));
    auto estimate = PredictPlan(device_, schedule_.spec(), candidate, *module, buffers);
    one.seconds = clock_.Now() - start;
    one.launches = launches_;
    return estimate;
  }

  const ScheduleTemplate& schedule_;
  vgpu::VirtualGpu device_;
  CandidateCompiler compiler_;
  Clock& clock_;
  Json launches_ = Json::array();
};

Result<std::unique_ptr<ScheduleTemplate>> ScheduleOf(const PredictRequest& request,
                                                     const std::string& kernel,
                                                     const Target& target,
                                                     const EventSink& events) {
  if (request.file.empty()) {
    ATUNNER_TRY(const KernelSpec spec, SpecOf(request.task.value_or(TaskRequest{})));
    return MakeTemplate(spec, target.profile);
  }
  SourceOptions options;
  options.kernel = kernel;
  // This is the space that `hardware-optimize` searches, so that a run's export fits.
  options.extra_tunables = true;
  options.multiprocessors = target.profile.sms;
  ATUNNER_TRY(UserKernel read, ReadUserKernel(request.file.string(), options));
  return TemplateOf(read, request.file.string(), events, false);
}

Result<PredictedKernel> PredictOne(const PredictRequest& request, const std::string& kernel,
                                   const Target& target, Compiler& compiler, Clock& clock,
                                   const EventSink& events, const std::stop_token& stop) {
  ATUNNER_TRY(const auto schedule, ScheduleOf(request, kernel, target, events));
  std::vector<Configuration> configurations = {schedule->Default()};
  if (!request.configurations.empty()) {
    ATUNNER_TRY(configurations,
                ReadConfigurations(request.configurations.string(), schedule->space()));
  }
  Predictor predictor(*schedule, target, compiler, clock, request.counts);
  const double start = clock.Now();
  PredictedKernel predicted;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  ATUNNER_TRY(predicted.predictions, predictor.Run(configurations, cores, stop));
  predicted.kernel = schedule->spec().name;
  predicted.gpu = target.profile.full_name;
  predicted.calibration = target.calibration.source;
  predicted.seconds = clock.Now() - start;
  return predicted;
}

}  // namespace

Result<std::vector<Prediction>> PredictConfigurations(
    const ScheduleTemplate& schedule, const Target& target,
    const std::vector<Configuration>& configurations, Compiler& compiler, Clock& clock,
    const std::stop_token& stop) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return Predictor(schedule, target, compiler, clock, false).Run(configurations, cores, stop);
}

Result<PredictResult> Predict(const PredictRequest& request, Services& services,
                              const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const Target target, services.devices.Choose({request.gpu, true}));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(request.compile_timeout_seconds));
  const auto kernels = KernelsOf(request.file.string(), request.kernel);
  const bool several = kernels.size() > 1;
  if (several && !request.configurations.empty())
    return Invalid("whose configurations these are is not clear", "request.configurations",
                   "name the kernel by request.kernel");
  PredictResult result;
  for (const std::string& kernel : kernels) {
    if (several) events(KernelStartedEvent{kernel});
    auto predicted = PredictOne(request, kernel, target, *compiler, services.clock, events, stop);
    if (predicted) {
      events(KernelPredictedEvent{*predicted});
    } else if (!several || predicted.error().code != ErrorCode::kInvalidInput) {
      return std::unexpected(predicted.error());
    } else {
      events(KernelRefusedEvent{kernel, predicted.error()});
    }
    result.kernels.push_back({kernel, std::move(predicted)});
  }
  return result;
}

}  // namespace atunner::jobs
