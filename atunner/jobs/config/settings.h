// Defaults of requests that a user keeps: in a file of the user's, in one of the working folder, or
// in the environment (docs/configuration.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"

namespace atunner::jobs {

/// One default and where it is from.
struct Setting {
  std::string key;     ///< "target_gpu"
  std::string value;   ///< "A100"
  std::string source;  ///< "built-in", "environment ATUNNER_TARGET_GPU", or a file
  bool built_in = true;
};

/// Where settings are looked for; later places win over earlier ones.
struct SettingSources {
  Path user_file;     ///< ~/.config/atunner/config.toml
  Path project_file;  ///< ./atunner.toml
  /// The value of an environment variable, if it is set.
  std::function<std::optional<std::string>(const std::string& name)> environment;

  /// Those of this process.
  static SettingSources OfThisProcess();
};

/// Every key with its value, in the order of docs/configuration.md. kInvalidInput names every
/// unknown key and every value of a wrong type in one message.
Result<std::vector<Setting>> LoadSettings(const SettingSources& sources);

}  // namespace atunner::jobs
