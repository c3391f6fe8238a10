// `config`: the defaults in force, and where each is from.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/jobs/config/settings.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

Result<int> ShowConfig(const Context& context) {
  ATUNNER_TRY(const auto settings, jobs::LoadSettings(jobs::SettingSources::OfThisProcess()));
  Json json = Json::object();
  for (const jobs::Setting& setting : settings) {
    json[setting.key] = {{"value", setting.value}, {"source", setting.source}};
    if (!context.common.json)
      fmt::print("{}", Printable(fmt::format("{:<16} {:<14} {}\n", setting.key,
                                             setting.value.empty() ? "-" : setting.value,
                                             setting.source)));
  }
  if (context.common.json) PrintJson(json);
  return 0;
}

}  // namespace

void AddConfig(VerbList& verbs) {
  verbs.Add("config", "the defaults in force, and where each is from (docs/configuration.md)",
            ShowConfig);
}

}  // namespace atunner::cli
