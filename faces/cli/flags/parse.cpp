#include "faces/cli/flags/parse.h"

#include <algorithm>
#include <charconv>
#include <expected>

namespace atunner::cli {
namespace {

/// The numbers between commas; the part that is no number instead.
std::expected<std::vector<int64_t>, std::string> ParseNumbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const size_t blanks = std::min(part.find_first_not_of(" \t"), part.size());
    const char* const end = part.data() + part.size();
    const char* const begin = part.data() + blanks + (blanks < part.size() && part[blanks] == '+');
    int64_t value = 0;
    const auto [read, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || read != end) return std::unexpected(part);
    numbers.push_back(value);
    at = comma + 1;
  }
  return numbers;
}

}  // namespace

Result<std::vector<int64_t>> ParseShape(const std::string& text, const std::string& flag) {
  auto numbers = ParseNumbers(text);
  if (!numbers)
    return Invalid("'" + numbers.error() + "' is no dimension", flag + " " + text,
                   "write numbers with commas between: 8,1024,4096");
  return *std::move(numbers);
}

Result<Attributes> ParseAttributes(const std::vector<std::string>& texts) {
  Attributes attributes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Invalid("'" + text + "' has no value", "--attr", "write key=value");
    auto value = Expr::Parse(text.substr(equals + 1));
    if (!value)
      return Invalid(value.error().what, "--attr " + text,
                     "give one number, true, false or a word");
    auto evaluated = value->Evaluate({});
    attributes[text.substr(0, equals)] = evaluated ? *evaluated : Value(text.substr(equals + 1));
  }
  return attributes;
}

Result<std::pair<std::string, std::vector<int64_t>>> ParseDim(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Invalid("'" + text + "' names no size", "--dim", "write n=512, or n=1,512,4096");
  auto sizes = ParseNumbers(text.substr(equals + 1));
  if (!sizes)
    return Invalid("'" + sizes.error() + "' is no dimension", "--dim " + text,
                   "write numbers with commas between: 8,1024,4096");
  return std::pair(text.substr(0, equals), *std::move(sizes));
}

Result<DeviceSelection> ParseDevices(const std::string& text) {
  constexpr int64_t kMost = 63;
  if (text.empty() || text == "all") return DeviceSelection{text == "all", {}};
  const auto numbers = ParseNumbers(text);
  DeviceSelection selection;
  for (const int64_t number : numbers.value_or(std::vector<int64_t>{})) {
    if (number < 0 || number > kMost)
      return Invalid("'" + std::to_string(number) + "' is no number of a GPU", "--devices",
                     "write all, or 0,1");
    if (std::ranges::find(selection.numbers, number) != selection.numbers.end())
      return Invalid("GPU " + std::to_string(number) + " is named twice", "--devices");
    selection.numbers.push_back(static_cast<int>(number));
  }
  if (numbers) return selection;
  return Invalid("'" + numbers.error() + "' is no number of a GPU", "--devices",
                 "write all, or 0,1");
}

Result<DType> ParseDTypeFlag(const std::string& name) {
  const auto dtype = ParseDType(name);
  if (!dtype)
    return Invalid("unknown dtype '" + name + "'", "--dtype", "types are " + DTypeNames());
  return *dtype;
}

Result<Accuracy> ParseAccuracyFlag(const std::string& name) {
  const auto accuracy = ParseAccuracy(name);
  if (!accuracy)
    return Invalid("unknown accuracy '" + name + "'", "--accuracy", "use strict, default or fast");
  return *accuracy;
}

Result<std::vector<jobs::Stage>> ParseStages(const std::vector<std::string>& names,
                                             const std::string& flag) {
  std::vector<jobs::Stage> stages;
  for (const std::string& name : names) {
    const auto stage = jobs::ParseStage(name);
    if (!stage)
      return Invalid("unknown stage '" + name + "'", flag, "stages are " + jobs::StageNames());
    stages.push_back(*stage);
  }
  return stages;
}

}  // namespace atunner::cli
