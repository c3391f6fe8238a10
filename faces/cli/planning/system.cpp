// `system`: the settings of a whole training run from a configuration.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/jobs/system/system_config.h"
#include "atunner/jobs/system/system_measure.h"
#include "atunner/jobs/system/system_report.h"
#include "atunner/jobs/system/system_run.h"
#include "faces/cli/output/render.h"
#include "faces/cli/planning/planning_verbs.h"

namespace atunner::cli {
namespace {

struct SystemFlags {
  std::string config;
  std::string report;
  bool keys = false;
  bool apply = false;
};

Result<int> RunSystem(const SystemFlags& flags, const Context& context) {
  if (flags.keys) {
    fmt::print("{}", jobs::SystemKeysText());
    return 0;
  }
  if (flags.config.empty())
    return Invalid("no configuration is given", "--config",
                   "atunner system --config training.yaml; --keys lists its keys");
  ATUNNER_TRY(const jobs::SystemConfig config, jobs::ReadSystemConfig(flags.config));
  ATUNNER_TRY(const jobs::SystemResult result, jobs::OptimizeSystem(config));
  Json json = jobs::ToJson(result);
  std::string text = jobs::TextOf(result), measured;
  if (flags.apply) {
    ATUNNER_TRY(const jobs::SystemMeasurement found, jobs::MeasureSystem(config, result));
    json["measured"] = jobs::ToJson(found);
    measured = jobs::TextOf(found);
  }
  if (!flags.report.empty())
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.report, jobs::PageOf(result, measured)));
  if (context.common.json)
    PrintJson(json);
  else
    fmt::print("{}", Printable(text + measured));
  return 0;
}

}  // namespace

void AddSystem(VerbList& verbs) {
  const auto flags = std::make_shared<SystemFlags>();
  CLI::App* verb = verbs.Add("system", "the settings of a whole training run, from a YAML file",
                             [flags](const Context& c) { return RunSystem(*flags, c); });
  verb->footer(
      "atunner system --config examples/system/throughput.yaml --report report.html\n"
      "atunner system --keys\n"
      "atunner system --config examples/system/gpt2.yaml --apply    # on this machine's GPUs\n"
      "Times are predicted but those of --apply.");
  verb->add_option("--config", flags->config, "the configuration");
  verb->add_option("--report", flags->report, "also write a page");
  verb->add_flag("--apply", flags->apply,
                 "try the changes on this machine's GPUs and keep what is faster");
  verb->add_flag("--keys", flags->keys, "list the keys of a configuration");
}

}  // namespace atunner::cli
