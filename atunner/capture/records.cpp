#include "atunner/capture/records.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atunner::capture {
namespace {

Json DimJson(const Dim3& dim) { return Json{dim.x, dim.y, dim.z}; }
Dim3 DimOf(const Json& json) {
  return {json.at(0).get<uint32_t>(), json.at(1).get<uint32_t>(), json.at(2).get<uint32_t>()};
}

}  // namespace

Json ConfigurationJson(const LaunchConfiguration& shape) {
  return {{"grid", DimJson(shape.grid)},       {"block", DimJson(shape.block)},
          {"cluster", DimJson(shape.cluster)}, {"shared_bytes", shape.shared_bytes},
          {"cooperative", shape.cooperative},  {"programmatic", shape.programmatic}};
}
LaunchConfiguration ConfigurationOf(const Json& json) {
  return {DimOf(json.at("grid")),
          DimOf(json.at("block")),
          DimOf(json.at("cluster")),
          json.at("shared_bytes").get<uint32_t>(),
          json.at("cooperative").get<bool>(),
          json.at("programmatic").get<bool>()};
}

namespace {

constexpr const char* kKinds[] = {"head", "module", "kernel", "launch", "groups", "note", "end"};

std::string HexOf(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Result<std::string> BytesOf(const std::string& hex, const std::string& where) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = DigitOf(hex[i]), low = DigitOf(hex[i + 1]);
    if (high < 0 || low < 0) return Invalid("'" + hex + "' is not hexadecimal", where);
    bytes += static_cast<char>(high << 4 | low);
  }
  if (hex.size() % 2 != 0) return Invalid("'" + hex + "' has an odd number of digits", where);
  return bytes;
}

Json BodyOf(const CaptureHead& head) {
  return {{"format", kFormatVersion},
          {"program", head.program},
          {"arguments", head.arguments},
          {"gpu", head.gpu},
          {"evidence", Name(head.evidence)}};
}
Json BodyOf(const CapturedModule& module) {
  return {{"ptx", module.ptx}, {"cubin", module.cubin}, {"arch", module.arch}};
}
Json BodyOf(const CapturedKernel& kernel) {
  return {{"module", kernel.module}, {"name", kernel.name}, {"readable", kernel.readable}};
}

Json PointersJson(const std::vector<CapturedPointer>& pointers) {
  Json json = Json::array();
  for (const CapturedPointer& pointer : pointers)
    json.push_back({{"at", pointer.at}, {"buffer", pointer.buffer}, {"offset", pointer.offset}});
  return json;
}
Json ParameterJson(const CapturedParameter& parameter) {
  Json json = {{"bytes", HexOf(parameter.bytes)}, {"pointers", PointersJson(parameter.pointers)}};
  if (!parameter.texture.empty())
    json.update({{"texture", parameter.texture}, {"surface", parameter.surface}});
  return json;
}
Json BufferJson(const CapturedBuffer& buffer) {
  Json json{{"bytes", buffer.bytes},
            {"before", buffer.before},
            {"after", buffer.after},
            {"written", Json::array()},
            {"pointers", PointersJson(buffer.pointers)}};
  for (const ByteRange& range : buffer.written)
    json["written"].push_back(Json{range.begin, range.end});
  return json;
}
Json BodyOf(const CapturedLaunch& launch) {
  Json json{{"number", launch.number},
            {"kernel", launch.kernel},
            {"configuration", ConfigurationJson(launch.configuration)},
            {"parameters", Json::array()},
            {"buffers", Json::array()},
            {"symbols", Json::array()},
            {"seconds", launch.seconds},
            {"evidence", Name(launch.evidence)},
            {"left_out", launch.left_out}};
  for (const CapturedParameter& one : launch.parameters)
    json["parameters"].push_back(ParameterJson(one));
  for (const CapturedBuffer& one : launch.buffers) json["buffers"].push_back(BufferJson(one));
  for (const CapturedSymbol& one : launch.symbols)
    json["symbols"].push_back({{"name", one.name},
                               {"bytes", one.bytes},
                               {"before", one.before},
                               {"after", one.after},
                               {"pointers", PointersJson(one.pointers)}});
  return json;
}
Json BodyOf(const GroupsRecord& record) {
  Json groups = Json::array();
  for (const LaunchGroup& group : record.groups)
    groups.push_back({{"kernel", group.kernel},
                      {"configuration", ConfigurationJson(group.configuration)},
                      {"launches", group.launches},
                      {"seconds", group.seconds}});
  return {{"groups", std::move(groups)}};
}
Json BodyOf(const CaptureNote& note) { return {{"text", note.text}}; }
Json BodyOf(const CaptureEnding& ending) {
  return {{"exit_code", ending.exit_code}, {"signal", ending.signal}};
}

Evidence EvidenceOf(const Json& json) {
  return json.at("evidence").get<std::string>() == Name(Evidence::kMeasured) ? Evidence::kMeasured
                                                                             : Evidence::kPredicted;
}

Result<Record> HeadOf(const Json& json, const std::string& where) {
  const int version = json.at("format").get<int>();
  if (version != kFormatVersion)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("the capture has format {}, this program reads {}", version, kFormatVersion),
        where, "record it again");
  return CaptureHead{json.at("program").get<std::string>(),
                     json.at("arguments").get<std::vector<std::string>>(),
                     json.at("gpu").get<std::string>(), EvidenceOf(json)};
}

std::vector<CapturedPointer> PointersOf(const Json& json) {
  std::vector<CapturedPointer> pointers;
  for (const Json& one : json)
    pointers.push_back({one.at("at").get<uint64_t>(), one.at("buffer").get<size_t>(),
                        one.at("offset").get<uint64_t>()});
  return pointers;
}
Result<CapturedParameter> ParameterOf(const Json& json, const std::string& where) {
  CapturedParameter parameter;
  ATUNNER_TRY(parameter.bytes, BytesOf(json.at("bytes").get<std::string>(), where));
  parameter.pointers = PointersOf(json.at("pointers"));
  parameter.texture = json.value("texture", "");
  parameter.surface = json.value("surface", false);
  return parameter;
}
CapturedBuffer BufferOf(const Json& json) {
  CapturedBuffer buffer{json.at("bytes").get<uint64_t>(),
                        json.at("before").get<std::string>(),
                        json.at("after").get<std::string>(),
                        {},
                        PointersOf(json.at("pointers"))};
  for (const Json& range : json.at("written"))
    buffer.written.push_back({range.at(0).get<uint64_t>(), range.at(1).get<uint64_t>()});
  return buffer;
}
Result<Record> LaunchOf(const Json& json, const std::string& where) {
  CapturedLaunch launch;
  launch.number = json.at("number").get<uint64_t>();
  launch.kernel = json.at("kernel").get<size_t>();
  launch.configuration = ConfigurationOf(json.at("configuration"));
  for (const Json& one : json.at("parameters")) {
    ATUNNER_TRY(CapturedParameter parameter, ParameterOf(one, where));
    launch.parameters.push_back(std::move(parameter));
  }
  for (const Json& one : json.at("buffers")) launch.buffers.push_back(BufferOf(one));
  for (const Json& one : json.at("symbols"))
    launch.symbols.push_back({one.at("name").get<std::string>(), one.at("bytes").get<uint64_t>(),
                              one.at("before").get<std::string>(),
                              one.at("after").get<std::string>(),
                              PointersOf(one.value("pointers", Json::array()))});
  launch.seconds = json.at("seconds").get<double>();
  launch.evidence = EvidenceOf(json);
  launch.left_out = json.at("left_out").get<std::string>();
  return launch;
}

GroupsRecord GroupsOf(const Json& json) {
  GroupsRecord record;
  for (const Json& one : json.at("groups"))
    record.groups.push_back({one.at("kernel").get<size_t>(),
                             ConfigurationOf(one.at("configuration")),
                             one.at("launches").get<uint64_t>(), one.at("seconds").get<double>()});
  return record;
}

Result<Record> Read(const Json& json, const std::string& where) {
  const std::string kind = json.at("record").get<std::string>();
  if (kind == "head") return HeadOf(json, where);
  if (kind == "launch") return LaunchOf(json, where);
  if (kind == "module")
    return CapturedModule{json.at("ptx").get<std::string>(), json.at("cubin").get<std::string>(),
                          json.at("arch").get<int>()};
  if (kind == "kernel")
    return CapturedKernel{json.at("module").get<size_t>(), json.at("name").get<std::string>(),
                          json.at("readable").get<std::string>()};
  if (kind == "groups") return GroupsOf(json);
  if (kind == "note") return CaptureNote{json.at("text").get<std::string>()};
  if (kind == "end")
    return CaptureEnding{json.at("exit_code").get<int>(), json.at("signal").get<int>()};
  return Invalid("unknown record '" + kind + "'", where);
}

}  // namespace

Json ToJson(const Record& record) {
  Json json{{"record", kKinds[record.index()]}};
  json.update(std::visit([](const auto& one) { return BodyOf(one); }, record));
  return json;
}

Result<Record> RecordOf(const Json& json, const std::string& where) {
  try {
    return Read(json, where);
  } catch (const Json::exception& error) {
    return Invalid(error.what(), where);
  }
}

}  // namespace atunner::capture
