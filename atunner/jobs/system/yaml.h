// YAML as JSON, with the line of each value for messages.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"

namespace atunner::jobs {

struct YamlDocument {
  Json value;
  std::map<std::string, size_t> lines;  ///< by path: "hardware.gpus", "steps[2]"; counted from 1
};

/// One document of maps, lists, texts, numbers, booleans and null (the core schema of YAML 1.2).
/// kInvalidInput with the line for anything else: anchors and aliases (they can grow without
/// limit), tags, several documents, keys that occur twice, nesting deeper than 16, and files larger
/// than 1 MB.
Result<YamlDocument> ParseYaml(std::string_view text);

}  // namespace atunner::jobs
