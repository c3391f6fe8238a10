// `predict`: listed configurations on the virtual GPU, without judging them.
#include "atunner/judge/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/json/json.h"
#include "atunner/tune/compile_ahead.h"
#include "atunner/vgpu/virtual_gpu.h"
#include "faces/cli/cli.h"
#include "faces/cli/field_paths.h"

namespace atunner::cli {
namespace {

constexpr size_t kLargestList = size_t{1} << 30;

/// A JSON array of configurations (arrays of values in the space's order), or the export of a run,
/// whose trials' are taken.
Result<std::vector<Configuration>> ReadConfigurations(const std::string& file,
                                                      const ParameterSpace& space) {
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargestList));
  ATUNNER_TRY(const Json json, ParseJson(text, file));
  static constexpr const char* kForm =
      "write [[16, 2, \"shared\"], ...], values in the order of the parameters";
  const bool run = json.is_object() && json.contains("trials") && json["trials"].is_array();
  if (!run && !json.is_array())
    return Invalid("is neither a list of configurations nor a run's export", file, kForm);
  std::vector<Configuration> configurations;
  for (const Json& entry : run ? json["trials"] : json) {
    const Json& values = run && entry.is_object() && entry.contains("configuration")
                             ? entry["configuration"]
                             : entry;
    if (!values.is_array())
      return Invalid(
          fmt::format("configuration {} is no list of values", configurations.size() + 1), file,
          kForm);
    ATUNNER_TRY(Configuration configuration, FromJson<Configuration>(values));
    if (configuration.values.size() != space.parameters.size())
      return Invalid(fmt::format("configuration {} has {} values, the space {} parameters",
                                 configurations.size() + 1, configuration.values.size(),
                                 space.parameters.size()),
                     file);
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

/// One configuration after the other; sources compile ahead on all cores.
class Predictor {
 public:
  Predictor(const ScheduleTemplate& schedule, const Target& target, Compiler& compiler, bool counts)
      : schedule_(schedule), device_(target.profile), compiler_(compiler) {
    device_.Calibrate(target.calibration);
    if (counts)
      device_.Observe(
          [this](const vgpu::EstimateInput& input) { launches_.push_back(CountsOf(input)); });
  }

  Result<Json> Run(const std::vector<Configuration>& configurations, size_t threads) {
    ATUNNER_TRY(const TaskBuffers buffers, MakePredictionBuffers(device_, schedule_.spec()));
    CompileAhead ahead([this](const Configuration& one, const std::stop_token& stop) {
      return Compile(one, stop);
    });
    Json results = Json::array();
    size_t submitted = 0;
    while (results.size() < configurations.size()) {
      while (submitted < configurations.size() && ahead.size() < threads)
        ahead.Submit(configurations[submitted++]);
      const auto compiled = ahead.Take([] { return false; }, kForever);
      results.push_back(Predict(*compiled, buffers));
    }
    return results;
  }

 private:
  static constexpr double kForever = 1e9;  // results stay in the order of the list

  Compiled Compile(const Configuration& configuration, const std::stop_token& stop) {
    Compiled compiled{configuration, schedule_.Render(configuration), CompileOutcome{}};
    if (compiled.rendered)
      compiled.outcome = compiler_.Compile(
          {compiled.rendered->source, EntriesOf(compiled.rendered->plan), device_.arch()}, stop);
    return compiled;
  }

  Json Predict(const Compiled& compiled, const TaskBuffers& buffers) {
    Json row{{"configuration", ToJson(compiled.configuration)}};
    const auto refuse = [&](const std::string& why) {
      row["error"] = why;
      return row;
    };
    if (!compiled.rendered) return refuse(WithFlags(compiled.rendered.error()).ToString());
    if (!compiled.outcome) return refuse(WithFlags(compiled.outcome.error()).ToString());
    if (!compiled.outcome->ok()) return refuse(compiled.outcome->error);
    launches_ = Json::array();
    const CandidateKernel candidate{*compiled.outcome->module, compiled.rendered->plan, {}};
    const double start = SystemClock().Now();
    const auto module = device_.Load(candidate.module);
    if (!module) return refuse(WithFlags(module.error()).ToString());
    const auto estimate = PredictPlan(device_, schedule_.spec(), candidate, **module, buffers);
    row["seconds"] = SystemClock().Now() - start;
    if (!estimate) return refuse(WithFlags(estimate.error()).ToString());
    row["estimate"] = ToJson(*estimate);
    if (!launches_.empty()) row["launches"] = launches_;
    return row;
  }

  const ScheduleTemplate& schedule_;
  vgpu::VirtualGpu device_;
  Compiler& compiler_;
  Json launches_ = Json::array();
};

void PrintRow(const Json& row, const ParameterSpace& space, const Configuration& configuration) {
  if (row.contains("error"))
    fmt::print("{:>12}  {}  {}\n", "-", space.Describe(configuration),
               row["error"].get<std::string>());
  else
    fmt::print("{:>12}  {}  {}\n", FormatTime(row["estimate"]["time_ns"].get<double>()),
               space.Describe(configuration), row["estimate"]["limiter"].get<std::string>());
}

Result<std::unique_ptr<ScheduleTemplate>> TemplateOf(const PredictFlags& flags,
                                                     const std::string& kernel,
                                                     const Target& target, const Common& common) {
  if (flags.file.empty()) {
    ATUNNER_TRY(const KernelSpec spec, SpecOf(flags.optimize));
    return MakeTemplate(spec, target.profile);
  }
  SourceOptions options;
  options.kernel = kernel;
  // the space that `hardware-optimize` searches: a run's export fits
  options.extra_tunables = true;
  options.multiprocessors = target.profile.sms;
  ATUNNER_TRY(UserKernel read, ReadUserKernel(flags.file, options));
  return cli::TemplateOf(read, flags.file, common, false);
}

/// What --json says of one kernel. Without it the rows are printed.
Result<Json> PredictOne(const PredictFlags& flags, const std::string& kernel, const Target& target,
                        Compiler& compiler, const Common& common) {
  ATUNNER_TRY(const auto schedule, TemplateOf(flags, kernel, target, common));
  std::vector<Configuration> configurations = {schedule->Default()};
  if (!flags.configurations.empty()) {
    ATUNNER_TRY(configurations, ReadConfigurations(flags.configurations, schedule->space()));
  }
  Predictor predictor(*schedule, target, compiler, flags.counts);
  const double start = SystemClock().Now();
  ATUNNER_TRY(const Json rows,
              predictor.Run(configurations, std::max(1u, std::thread::hardware_concurrency())));
  for (size_t i = 0; !common.json && i < configurations.size(); ++i)
    PrintRow(rows[i], schedule->space(), configurations[i]);
  return Json{{"kernel", schedule->spec().name},        {"device", target.profile.full_name},
              {"evidence", Name(Evidence::kPredicted)}, {"calibration", target.calibration.source},
              {"seconds", SystemClock().Now() - start}, {"predictions", rows}};
}

}  // namespace

Result<int> Predict(const PredictFlags& flags, const Common& common) {
  ATUNNER_TRY(const Target target, ChooseTarget(flags.optimize.tune.target, true));
  ATUNNER_TRY(const auto compiler, OpenCompiler(flags.optimize.tune.compile_timeout));
  const std::vector<std::string> kernels = KernelsOf(flags.file, flags.kernel);
  if (kernels.size() > 1 && !flags.configurations.empty())
    return Invalid("whose configurations these are is not clear", "--configs",
                   "name the kernel by --kernel");
  Json answers = Json::array();
  bool any = false;
  for (const std::string& kernel : kernels) {
    if (kernels.size() > 1 && !common.json) fmt::print("{}\n", kernel);
    auto answer = PredictOne(flags, kernel, target, *compiler, common);
    if (!answer && (kernels.size() == 1 || answer.error().code != ErrorCode::kInvalidInput))
      return std::unexpected(answer.error());
    if (!answer && !common.json)
      fmt::print(stderr, "{} is not predicted: {}\n", kernel, WithFlags(answer.error()).ToString());
    any |= answer && std::ranges::any_of((*answer)["predictions"],
                                         [](const Json& row) { return row.contains("estimate"); });
    answers.push_back(answer
                          ? *std::move(answer)
                          : Json{{"kernel", kernel}, {"refused", WithFlags(answer.error().what)}});
  }
  if (common.json) PrintJson(kernels.size() == 1 ? answers[0] : answers);
  return any ? 0 : 1;
}

}  // namespace atunner::cli
