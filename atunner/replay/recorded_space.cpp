#include "atunner/replay/recorded_space.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "atunner/model/json/json.h"
#include "atunner/replay/gunzip.h"

namespace atunner {
namespace {

Result<Value> ScalarOf(const Json& json, const std::string& where) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return Invalid("a value must be a number, a truth value or a text", where);
}

Result<Json> ParseOpenOrClosed(std::string_view text, const std::string& name) {
  auto json = ParseJson(text, name);
  if (json) return json;
  // Kernel Tuner appends entries while it runs and writes the closing braces at its end.
  std::string closed(text);
  while (!closed.empty() &&
         (std::isspace(static_cast<unsigned char>(closed.back())) || closed.back() == ','))
    closed.pop_back();
  auto mended = ParseJson(closed + "}}", name);
  return mended ? std::move(mended) : std::move(json);
}

Result<ParameterSpace> SpaceOf(const Json& root, const std::string& name) {
  if (!root.is_object() || !root.contains("tune_params") || !root["tune_params"].is_object() ||
      !root.contains("cache") || !root["cache"].is_object())
    return Invalid("is not a Kernel Tuner cache file: no 'tune_params' and 'cache'", name);
  ParameterSpace space;
  for (const auto& [key, values] : root["tune_params"].items()) {
    Parameter parameter{key, {}, ""};
    if (!values.is_array()) return Invalid("tune_params '" + key + "' is not a list", name);
    for (const Json& value : values) {
      ATUNNER_TRY(Value scalar, ScalarOf(value, name));
      if (std::ranges::find(parameter.values, scalar) == parameter.values.end())
        parameter.values.push_back(std::move(scalar));
    }
    space.parameters.push_back(std::move(parameter));
  }
  return space;
}

double NumberOr(const Json& entry, const char* field, double otherwise) {
  const auto at = entry.find(field);
  if (at == entry.end() || !at->is_number()) return otherwise;
  const double value = at->get<double>();
  return std::isfinite(value) ? value : otherwise;
}

/// Older versions of Kernel Tuner wrote 1e20 for a failure.
std::optional<double> TimeOf(const Json& entry) {
  const double time = NumberOr(entry, "time", 0);
  return time > 0 && time < 1e19 ? std::optional(time) : std::nullopt;
}

Status AppendPositions(const ParameterSpace& space, const Json& entry, const std::string& where,
                       std::vector<uint16_t>& rows) {
  for (const Parameter& parameter : space.parameters) {
    const auto field = entry.find(parameter.name);
    if (field == entry.end()) return Invalid("has no '" + parameter.name + "'", where);
    ATUNNER_TRY(const Value value, ScalarOf(*field, where));
    const auto at = std::ranges::find_if(parameter.values,
                                         [&](const Value& v) { return LooselyEqual(v, value); });
    if (at == parameter.values.end())
      return Invalid(
          "'" + parameter.name + "' is " + ToString(value) + ", which tune_params does not list",
          where);
    rows.push_back(static_cast<uint16_t>(at - parameter.values.begin()));
  }
  return {};
}

std::string NameOf(const Path& path) {
  std::string name = path.filename().string();
  for (const std::string_view ending : {".gz", ".json"}) {
    if (name.ends_with(ending)) name.erase(name.size() - ending.size());
  }
  return name;
}

Result<std::vector<Path>> RecordsIn(const Path& folder) {
  std::error_code failed;
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string file = entry.path().filename().string();
    if (file != "index.json" && (file.ends_with(".json") || file.ends_with(".json.gz")))
      files.push_back(entry.path());
  }
  if (failed)
    return Fail(ErrorCode::kNotFound, "cannot list the folder: " + failed.message(),
                folder.string());
  std::ranges::sort(files);
  return files;
}

/// The positions of all entries' values in their parameters, entry after entry.
Result<std::vector<uint16_t>> PositionsOf(const ParameterSpace& space, const Json& cache,
                                          const std::string& name) {
  std::vector<uint16_t> rows;
  for (const auto& [key, entry] : cache.items()) {
    const std::string where = name + ", configuration " + key.substr(0, 80);
    if (!entry.is_object()) return Invalid("is not an object", where);
    ATUNNER_RETURN_IF_ERROR(AppendPositions(space, entry, where, rows));
  }
  return rows;
}

double SpentOn(const Json& entry) {
  double spent = 0;
  for (const char* field : {"compile_time", "verification_time", "benchmark_time"})
    spent += std::max(0.0, NumberOr(entry, field, 0));
  return spent;
}

/// Takes the times of the entries over. `rows` holds their positions, as PositionsOf made them.
void AddTimes(const Json& cache, std::span<const uint16_t> rows, const SpaceIndex& index,
              RecordedSpace& recorded) {
  recorded.time_ms.resize(index.size());
  recorded.spent_ms.resize(index.size());
  const size_t width = index.space().parameters.size();
  size_t row = 0;
  for (const auto& [key, entry] : cache.items()) {
    const uint64_t at = index.IndexOfPositions(rows.subspan(row++ * width, width));
    recorded.time_ms[at] = TimeOf(entry);
    recorded.spent_ms[at] = SpentOn(entry);
  }
  recorded.ok = static_cast<uint64_t>(
      std::ranges::count_if(recorded.time_ms, [](const auto& t) { return t.has_value(); }));
}

}  // namespace

Result<RecordedSpace> ParseRecordedSpace(std::string_view text, std::string name) {
  ATUNNER_TRY(const Json root, ParseOpenOrClosed(text, name));
  ATUNNER_TRY(const ParameterSpace space, SpaceOf(root, name));
  ATUNNER_TRY(const std::vector<uint16_t> rows, PositionsOf(space, root["cache"], name));
  auto index = SpaceIndex::FromList(space, rows);
  if (!index) {
    index.error().where = name;
    return std::unexpected(index.error());
  }
  RecordedSpace recorded;
  recorded.name = std::move(name);
  if (const auto device = root.find("device_name"); device != root.end() && device->is_string())
    recorded.device = device->get<std::string>();
  AddTimes(root["cache"], rows, *index, recorded);
  recorded.index = std::make_shared<const SpaceIndex>(*std::move(index));
  return recorded;
}

Result<RecordedSpace> ReadRecordedSpace(const Path& path) {
  ATUNNER_TRY(std::string bytes, ReadFile(path));
  if (IsGzip(bytes)) {
    auto unpacked = Gunzip(bytes);
    if (!unpacked) unpacked.error().where = path.string();
    ATUNNER_TRY(bytes, std::move(unpacked));
  }
  return ParseRecordedSpace(bytes, NameOf(path));
}

Result<std::vector<RecordedSpace>> ReadRecordedSpaces(const Path& folder) {
  ATUNNER_TRY(const std::vector<Path> files, RecordsIn(folder));
  std::vector<RecordedSpace> spaces;
  for (const Path& file : files) {
    ATUNNER_TRY(RecordedSpace space, ReadRecordedSpace(file));
    spaces.push_back(std::move(space));
  }
  if (spaces.empty())
    return Fail(ErrorCode::kNotFound, "no recorded spaces (*.json, *.json.gz)", folder.string(),
                "Kernel Tuner writes them with tune_kernel(…, cache='file.json')");
  return spaces;
}

}  // namespace atunner
