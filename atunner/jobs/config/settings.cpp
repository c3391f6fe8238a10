#include "atunner/jobs/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "atunner/base/closest_name.h"
#include "atunner/intake/described/toml_library.h"

namespace atunner::jobs {
namespace {

/// The type that a value must have in a file.
enum class Type : uint8_t {
  kText,
  kInteger,
  kNumber,
  kTextOrInteger,  ///< budget = "90s", or 200 (trials)
};

struct Key {
  std::string_view name;
  Type type;
  std::string_view built_in;
};

constexpr Key kKeys[] = {
    {"target_gpu", Type::kText, "auto"},
    {"store", Type::kText, ""},
    {"strategy", Type::kText, "auto"},
    {"budget", Type::kTextOrInteger, "60 trials"},
    {"objective", Type::kText, "time"},
    {"accuracy", Type::kText, "default"},
    {"dtype", Type::kText, "float32"},
    {"devices", Type::kText, ""},
    {"seed", Type::kInteger, "1"},
    {"compile_threads", Type::kInteger, "0"},
    {"compile_timeout", Type::kNumber, "60"},
};

std::string_view Name(Type type) {
  switch (type) {
    case Type::kText:
      return "a string";
    case Type::kInteger:
      return "an integer";
    case Type::kNumber:
      return "a number";
    case Type::kTextOrInteger:
      return "a string or an integer";
  }
  return "";
}

/// The value as a flag takes it; nullopt where its type is another one.
std::optional<std::string> TextOf(const toml::node& node, Type type) {
  const bool text = type == Type::kText || type == Type::kTextOrInteger;
  if (node.is_string() && text) return node.as_string()->get();
  if (node.is_integer() && type != Type::kText) return std::to_string(node.as_integer()->get());
  if (node.is_floating_point() && type == Type::kNumber)
    return fmt::format("{}", node.as_floating_point()->get());
  return std::nullopt;
}

std::string VariableOf(std::string_view key) {
  std::string name = "ATUNNER_" + std::string(key);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::string UnknownKey(std::string_view name) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  const std::string near = ClosestName(std::string(name), names);
  return fmt::format("unknown key '{}'{}", name,
                     near.empty() ? "" : ", did you mean '" + near + "'?");
}

/// Puts a file's values over those that are known; what is wrong goes to `wrong`, a line each.
void ReadFileOver(const Path& file, const toml::table& table, std::vector<Setting>& settings,
                  std::vector<std::string>& wrong) {
  for (const auto& [name, node] : table) {
    const auto complain = [&](const std::string& what) {
      wrong.push_back(fmt::format("{}:{}: {}", file.string(), node.source().begin.line, what));
    };
    const auto key = std::ranges::find(kKeys, name.str(), &Key::name);
    if (key == std::end(kKeys)) {
      complain(UnknownKey(name.str()));
      continue;
    }
    const auto text = TextOf(node, key->type);
    if (!text)
      complain(fmt::format("'{}' must be {}", name.str(), Name(key->type)));
    else
      settings[static_cast<size_t>(key - kKeys)] = {std::string(key->name), *text, file.string(),
                                                    false};
  }
}

/// A file that does not exist sets nothing.
void LoadFile(const Path& file, std::vector<Setting>& settings, std::vector<std::string>& wrong) {
  constexpr size_t kLargest = size_t{1} << 20;
  if (!Exists(file)) return;
  const auto text = ReadFile(file, kLargest);
  if (!text) {
    wrong.push_back(text.error().ToString());
    return;
  }
  const toml::parse_result parsed = toml::parse(std::string_view(*text));
  if (parsed)
    ReadFileOver(file, parsed.table(), settings, wrong);
  else
    wrong.push_back(fmt::format("{}:{}: {}", file.string(), parsed.error().source().begin.line,
                                parsed.error().description()));
}

/// $XDG_CONFIG_HOME/atunner, else ~/.config/atunner.
Path UserConfigDirectory() {
  const char* const named = std::getenv("XDG_CONFIG_HOME");
  if (named != nullptr && *named != '\0') return Path(named) / "atunner";
  const char* const home = std::getenv("HOME");
  return Path(home != nullptr && *home != '\0' ? home : "/") / ".config" / "atunner";
}

}  // namespace

SettingSources SettingSources::OfThisProcess() {
  return {UserConfigDirectory() / "config.toml", "atunner.toml",
          [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr || *value == '\0') return std::nullopt;
            return value;
          }};
}

Result<std::vector<Setting>> LoadSettings(const SettingSources& sources) {
  std::vector<Setting> settings;
  for (const Key& key : kKeys)
    settings.push_back({std::string(key.name), std::string(key.built_in), "built-in", true});
  std::vector<std::string> wrong;
  LoadFile(sources.user_file, settings, wrong);
  LoadFile(sources.project_file, settings, wrong);
  for (Setting& setting : settings) {
    const std::string variable = VariableOf(setting.key);
    if (const auto value = sources.environment(variable))
      setting = {setting.key, *value, "environment " + variable, false};
  }
  if (!wrong.empty())
    return Invalid(fmt::format("the settings are wrong:\n  {}", fmt::join(wrong, "\n  ")), "",
                   "`atunner config` lists the keys; docs/configuration.md explains them");
  return settings;
}

}  // namespace atunner::jobs
