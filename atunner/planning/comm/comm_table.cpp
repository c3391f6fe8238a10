#include "atunner/planning/comm/comm_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace atunner::planning {
namespace {

constexpr std::string_view kSchema = "atunner.comm-table/1";

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int64_t> Integer(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

Json ToJson(const CommRow& row) {
  Json json{{"collective", Name(row.collective)},
            {"bytes", row.bytes},
            {"stage", row.stage == CommStage::kFinal ? "final" : "screen"}};
  if (row.choice) {
    json["algorithm"] = Name(row.choice->algorithm);
    json["protocol"] = Name(row.choice->protocol);
    json["channels"] = row.choice->channels;
  } else {
    json["algorithm"] = "default";
  }
  json["us"] = row.us;
  return json;
}

Result<std::optional<CommChoice>> ChoiceOf(const Json& json, const std::string& where) {
  const std::string name = Text(json, "algorithm");
  if (name == "default") return std::nullopt;
  const auto algorithm = AlgorithmOf(name);
  const auto protocol = ProtocolOf(Text(json, "protocol"));
  const auto channels = Integer(json, "channels");
  if (!algorithm || !protocol || !channels || *channels < -1 || *channels > 1024)
    return Invalid("needs algorithm, protocol and channels, or algorithm \"default\"", where);
  return CommChoice{*algorithm, *protocol, static_cast<int>(*channels)};
}

Result<std::vector<double>> SamplesOf(const Json& json, const std::string& where) {
  const auto found = json.find("us");
  std::vector<double> samples;
  if (found != json.end() && found->is_array())
    for (const Json& each : *found) samples.push_back(each.is_number() ? each.get<double>() : -1);
  const auto good = [](double us) { return std::isfinite(us) && us > 0; };
  if (samples.empty() || !std::ranges::all_of(samples, good))
    return Invalid("\"us\" must list times above 0", where);
  return samples;
}

Result<CommRow> RowOf(const Json& json, size_t number) {
  const std::string where = fmt::format("rows[{}]", number);
  if (!json.is_object()) return Invalid("must be an object", where);
  CommRow row;
  const auto collective = CollectiveOf(Text(json, "collective"));
  const auto bytes = Integer(json, "bytes");
  const std::string stage = Text(json, "stage");
  if (!collective || !bytes || *bytes <= 0 || (stage != "final" && stage != "screen"))
    return Invalid("needs collective, bytes above 0 and stage (screen, final)", where);
  row.collective = *collective;
  row.bytes = *bytes;
  row.stage = stage == "final" ? CommStage::kFinal : CommStage::kScreen;
  ATUNNER_TRY(row.choice, ChoiceOf(json, where));
  ATUNNER_TRY(row.us, SamplesOf(json, where));
  return row;
}

}  // namespace

Json ToJson(const CommTable& table) {
  Json rows = Json::array();
  for (const CommRow& row : table.rows) rows.push_back(ToJson(row));
  return Json{{"schema", kSchema},  {"device", table.device}, {"nccl", table.nccl},
              {"gpus", table.gpus}, {"notes", table.notes},   {"rows", std::move(rows)}};
}

Result<CommTable> ReadCommTable(std::string_view text) {
  ATUNNER_TRY(const Json json, ParseJson(text, "the table"));
  if (!json.is_object() || Text(json, "schema") != kSchema)
    return Invalid(fmt::format("its schema is not {}", kSchema), "the table",
                   "give a table.json that `atunner comm tune` wrote");
  CommTable table{.device = Text(json, "device"), .nccl = Text(json, "nccl")};
  const auto gpus = Integer(json, "gpus");
  if (!gpus || *gpus < 2 || *gpus > 1024) return Invalid("must be from 2 to 1024", "gpus");
  table.gpus = static_cast<int>(*gpus);
  const auto rows = json.find("rows");
  if (rows == json.end() || !rows->is_array() || rows->empty())
    return Invalid("must be a list of rows", "rows");
  for (size_t i = 0; i < rows->size(); ++i) {
    ATUNNER_TRY(CommRow row, RowOf((*rows)[i], i));
    table.rows.push_back(std::move(row));
  }
  return table;
}

double MedianUs(const CommRow& row) {
  if (row.us.empty()) return 0;
  std::vector<double> sorted = row.us;
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace atunner::planning
