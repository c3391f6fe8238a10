#include "atunner/jobs/system/system_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "atunner/base/closest_name.h"
#include "atunner/jobs/system/yaml.h"

namespace atunner::jobs {
namespace {

constexpr SystemKey kKeys[] = {
#define ATUNNER_SYSTEM_KEY(key, type, required, meaning) {key, SystemKey::type, required, meaning},
#include "atunner/jobs/system/system_key.def"
#undef ATUNNER_SYSTEM_KEY
};

constexpr std::array<std::string_view, 4> kObjectives = {"throughput", "latency", "memory",
                                                         "weights"};

const SystemKey* FindKey(std::string_view key) {
  const auto found = std::ranges::find(kKeys, key, &SystemKey::key);
  return found == std::end(kKeys) ? nullptr : found;
}

bool IsSection(const std::string& key) {
  return std::ranges::any_of(kKeys,
                             [&](const SystemKey& k) { return k.key.starts_with(key + "."); });
}

bool HasType(const Json& value, SystemKey::Type type) {
  switch (type) {
    case SystemKey::kText:
      return value.is_string() && !value.get_ref<const std::string&>().empty();
    case SystemKey::kInteger:
      return value.is_number_integer() && value.get<int64_t>() > 0;
    case SystemKey::kNumber:
      return value.is_number() && value.get<double>() >= 0;
  }
  return false;
}

/// Checks a document against the keys; collects all that is wrong.
class Checker {
 public:
  explicit Checker(const YamlDocument& document) : document_(document) {}

  void Check() {
    if (!document_.value.is_object())
      wrong_.push_back("the file must be a map of keys");
    else
      Section(document_.value, "");
    for (const SystemKey& key : kKeys)
      if (key.required && !values_.contains(key.key))
        wrong_.push_back(fmt::format("{} is missing ({})", key.key, key.meaning));
  }

  Status status() const {
    if (wrong_.empty()) return {};
    return Invalid(fmt::format("{}", fmt::join(wrong_, "; ")), "the configuration",
                   "`atunner system --keys` lists all keys");
  }
  std::string Text(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string() : found->second.get<std::string>();
  }
  double Number(std::string_view key, double otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second.get<double>();
  }
  int64_t Integer(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? 0 : found->second.get<int64_t>();
  }
  void Wrong(std::string_view key, const std::string& what) {
    wrong_.push_back(fmt::format("line {}: {} {}", LineOf(std::string(key)), key, what));
  }

 private:
  size_t LineOf(const std::string& path) const {
    const auto found = document_.lines.find(path);
    return found == document_.lines.end() ? 0 : found->second;
  }

  void Section(const Json& map, const std::string& prefix) {
    for (const auto& [name, value] : map.items()) {
      const std::string key = prefix.empty() ? name : prefix + "." + name;
      if (const SystemKey* known = FindKey(key))
        Take(*known, value);
      else if (IsSection(key) && value.is_object())
        Section(value, key);
      else
        Unknown(key);
    }
  }

  void Take(const SystemKey& key, const Json& value) {
    static constexpr std::string_view kNeeds[] = {
        "must be a text", "must be a whole number above 0", "must be a number of 0 or more"};
    if (HasType(value, key.type))
      values_.emplace(key.key, value);
    else
      Wrong(key.key, std::string(kNeeds[key.type]));
  }

  void Unknown(const std::string& key) {
    if (IsSection(key)) return Wrong(key, "must be a map of keys");
    std::vector<std::string> names;
    for (const SystemKey& known : kKeys) names.emplace_back(known.key);
    const std::string closest = ClosestName(key, names);
    Wrong(key, closest.empty() ? "is no key" : "is no key (did you mean " + closest + "?)");
  }

  const YamlDocument& document_;
  std::map<std::string_view, Json> values_;
  std::vector<std::string> wrong_;
};

SystemConfig ConfigOf(const Checker& checked) {
  return {.model = checked.Text("model.file"),
          .gpus = checked.Text("hardware.gpus"),
          .comm_table = checked.Text("hardware.comm_table"),
          .throughput_weight = checked.Number("weights.throughput", 0),
          .latency_weight = checked.Number("weights.latency", 0),
          .memory_weight = checked.Number("weights.memory", 0),
          .memory_gb = checked.Number("limits.memory_gb", 0),
          .step_ms = checked.Number("limits.step_ms", 0),
          .batch = checked.Integer("training.batch"),
          .largest_batch = checked.Integer("training.largest_batch"),
          .optimizer_bytes = checked.Number("training.optimizer_bytes", 8),
          .program = checked.Text("apply.program"),
          .apply_seconds = checked.Number("apply.seconds", 300)};
}

}  // namespace

std::string_view Name(SystemObjective objective) {
  return kObjectives[static_cast<size_t>(objective)];
}

std::span<const SystemKey> SystemKeys() { return kKeys; }

Result<SystemConfig> ParseSystemConfig(std::string_view yaml) {
  ATUNNER_TRY(const YamlDocument document, ParseYaml(yaml));
  Checker checked(document);
  checked.Check();
  SystemConfig config = ConfigOf(checked);
  const std::string objective = checked.Text("objective");
  const auto found = std::ranges::find(kObjectives, objective);
  if (found == kObjectives.end()) {
    if (!objective.empty())
      checked.Wrong("objective", "must be throughput, latency, memory or weights");
  } else {
    config.objective = static_cast<SystemObjective>(found - kObjectives.begin());
  }
  const double weights = config.throughput_weight + config.latency_weight + config.memory_weight;
  if (config.objective == SystemObjective::kWeights && weights <= 0)
    checked.Wrong("objective", "needs a weight above 0: weights.throughput, .latency or .memory");
  if (config.largest_batch > 0 && config.largest_batch < config.batch)
    checked.Wrong("training.largest_batch", "must not be below training.batch");
  ATUNNER_RETURN_IF_ERROR(checked.status());
  return config;
}

Result<SystemConfig> ReadSystemConfig(const Path& file) {
  ATUNNER_TRY(const std::string text, ReadFile(file));
  auto config = ParseSystemConfig(text);
  if (!config) return Invalid(config.error().ToString(), file.string());
  const Path folder = file.parent_path();
  config->model = (folder / config->model).string();
  if (!config->program.empty()) config->program = (folder / config->program).string();
  if (!config->comm_table.empty()) config->comm_table = (folder / config->comm_table).string();
  return config;
}

}  // namespace atunner::jobs
