// plan.json: its text, and the reader that refuses every text that is no plan.
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/model/json/json_values.h"
#include "atunner/model/plan/execution_plan.h"

namespace atunner {
namespace {

constexpr std::string_view kFormatPrefix = "atunner-plan-";
constexpr size_t kLargestPlan = size_t{256} << 20;
constexpr size_t kMostEntries = 1'000'000;

Json JsonOf(const PlanBuffer& buffer) {
  Json json{{"name", buffer.name},
            {"kind", Name(buffer.kind)},
            {"dtype", Name(buffer.dtype)},
            {"shape", buffer.extents}};
  if (!buffer.qualified_name.empty()) json["qualified_name"] = buffer.qualified_name;
  const bool placed = buffer.kind == PlanBuffer::Kind::kWeight ||
                      buffer.kind == PlanBuffer::Kind::kIntermediate;
  if (placed) json["offset"] = buffer.offset;
  return json;
}

/// [["argument", "buffer"], …]: an argument may stand there twice, which a JSON object forbids.
Json JsonOf(const ExecutionPlan& plan, const std::vector<PlanTensor>& tensors) {
  Json json = Json::array();
  for (const PlanTensor& tensor : tensors)
    json.push_back({tensor.argument, plan.buffers[tensor.buffer].name});
  return json;
}

Json JsonOf(const ExecutionPlan& plan, const PlanStep& step) {
  Json json{{"step", Name(step.kind)}};
  if (step.kind == PlanStep::Kind::kLaunch) json["kernel"] = plan.kernels[step.kernel];
  if (step.kind == PlanStep::Kind::kExtern) {
    json["target"] = step.target;
    json["arguments"] = ParseJson(step.arguments).value_or(Json::array());
  }
  json["reads"] = JsonOf(plan, step.reads);
  json["writes"] = JsonOf(plan, step.writes);
  if (!step.scratch.empty()) json["scratch"] = plan.buffers[step.scratch.front()].name;
  return json;
}

PlanBuffer::Kind BufferKindFrom(const std::string& name) {
  for (const auto kind : {PlanBuffer::Kind::kInput, PlanBuffer::Kind::kWeight,
                          PlanBuffer::Kind::kIntermediate, PlanBuffer::Kind::kOutput}) {
    if (Name(kind) == name) return kind;
  }
  throw std::runtime_error("'" + name + "' is no kind of buffer");
}

PlanStep::Kind StepKindFrom(const std::string& name) {
  for (const auto kind :
       {PlanStep::Kind::kLaunch, PlanStep::Kind::kCopy, PlanStep::Kind::kExtern}) {
    if (Name(kind) == name) return kind;
  }
  throw std::runtime_error("'" + name + "' is no kind of step");
}

DType DTypeFrom(const std::string& name) {
  const auto dtype = ParseDType(name);
  if (!dtype) throw std::runtime_error("'" + name + "' is no element type");
  return *dtype;
}

/// A number of bytes. nlohmann's conversion would wrap negative numbers.
uint64_t BytesFrom(const Json& json) {
  if (!json.is_number_unsigned()) throw std::runtime_error("a number of bytes is none");
  return json.get<uint64_t>();
}

const Json& List(const Json& json, const char* field) {
  const Json& list = json.at(field);
  if (!list.is_array() || list.size() > kMostEntries)
    throw std::runtime_error(std::string(field) + " is no list, or too long");
  return list;
}

PlanBuffer BufferFrom(const Json& json) {
  PlanBuffer buffer;
  buffer.name = json.at("name").get<std::string>();
  buffer.kind = BufferKindFrom(json.at("kind").get<std::string>());
  buffer.dtype = DTypeFrom(json.at("dtype").get<std::string>());
  for (const Json& extent : List(json, "shape")) {
    if (!extent.is_number_integer()) throw std::runtime_error("an extent is no integer");
    buffer.extents.push_back(extent.get<int64_t>());
  }
  buffer.qualified_name = json.value("qualified_name", "");
  if (json.contains("offset")) buffer.offset = BytesFrom(json.at("offset"));
  return buffer;
}

/// A folder inside the plan's own.
std::string KernelFrom(const Json& json) {
  const auto folder = json.get<std::string>();
  const Path path(folder);
  bool inside = !folder.empty() && path.is_relative();
  for (const Path& part : path) inside = inside && part != "..";
  if (!inside) throw std::runtime_error("the kernel '" + folder + "' is not in the plan's folder");
  return folder;
}

/// Reads steps; buffers and kernels are known by their names.
class StepReader {
 public:
  explicit StepReader(const ExecutionPlan& plan) {
    for (size_t i = 0; i < plan.buffers.size(); ++i) buffers_.emplace(plan.buffers[i].name, i);
    for (size_t i = 0; i < plan.kernels.size(); ++i) kernels_.emplace(plan.kernels[i], i);
  }

  PlanStep Read(const Json& json) const {
    PlanStep step;
    step.kind = StepKindFrom(json.at("step").get<std::string>());
    step.reads = Tensors(List(json, "reads"));
    step.writes = Tensors(List(json, "writes"));
    if (step.kind == PlanStep::Kind::kLaunch)
      step.kernel = IndexIn(kernels_, json.at("kernel").get<std::string>(), "kernel");
    if (json.contains("scratch")) step.scratch.push_back(Buffer(json.at("scratch")));
    if (step.kind != PlanStep::Kind::kExtern) return step;
    step.target = json.at("target").get<std::string>();
    step.arguments = DumpJson(List(json, "arguments"));
    return step;
  }

 private:
  using Index = std::map<std::string, size_t, std::less<>>;

  static size_t IndexIn(const Index& index, const std::string& name, const char* what) {
    const auto found = index.find(name);
    if (found == index.end())
      throw std::runtime_error("there is no " + std::string(what) + " '" + name + "'");
    return found->second;
  }
  size_t Buffer(const Json& json) const {
    return IndexIn(buffers_, json.get<std::string>(), "buffer");
  }
  std::vector<PlanTensor> Tensors(const Json& list) const {
    std::vector<PlanTensor> tensors;
    for (const Json& each : list)
      tensors.push_back({each.at(0).get<std::string>(), Buffer(each.at(1))});
    return tensors;
  }

  Index buffers_, kernels_;
};

ExecutionPlan Read(const Json& json) {
  ExecutionPlan plan;
  plan.name = json.at("name").get<std::string>();
  plan.device = json.value("device", "");
  plan.created = json.value("created", "");
  plan.atunner_version = json.value("atunner", "");
  plan.workspace_bytes = BytesFrom(json.at("workspace_bytes"));
  plan.weight_bytes = BytesFrom(json.at("weight_bytes"));
  if (plan.weight_bytes > 0)
    plan.weight_digest = DigestFrom(json.at("weight_digest").get<std::string>());
  for (const Json& each : List(json, "kernels")) plan.kernels.push_back(KernelFrom(each));
  for (const Json& each : List(json, "buffers")) plan.buffers.push_back(BufferFrom(each));
  const StepReader reader(plan);
  for (const Json& each : List(json, "steps")) plan.steps.push_back(reader.Read(each));
  return plan;
}

/// Refuses the formats of later versions.
Status CheckFormat(const Json& json) {
  const Json format = json.is_object() ? json.value("format", Json()) : Json();
  const std::string text = format.is_string() ? format.get<std::string>() : "";
  int number = 0;
  if (text.starts_with(kFormatPrefix)) {
    const char* const digits = text.data() + kFormatPrefix.size();
    std::from_chars(digits, text.data() + text.size(), number);
  }
  if (number < 1) return Invalid("this is no execution plan");
  if (number > kPlanFormat)
    return Fail(ErrorCode::kUnsupported, "a newer atunner wrote this plan (" + text + ")", "",
                "update atunner");
  return {};
}

}  // namespace

std::string PlanText(const ExecutionPlan& plan) {
  Json buffers = Json::array();
  for (const PlanBuffer& buffer : plan.buffers) buffers.push_back(JsonOf(buffer));
  Json steps = Json::array();
  for (const PlanStep& step : plan.steps) steps.push_back(JsonOf(plan, step));
  Json json{{"format", std::string(kFormatPrefix) + std::to_string(kPlanFormat)},
            {"name", plan.name},
            {"device", plan.device},
            {"created", plan.created},
            {"atunner", plan.atunner_version},
            {"workspace_bytes", plan.workspace_bytes},
            {"weight_bytes", plan.weight_bytes}};
  if (plan.weight_bytes > 0) json["weight_digest"] = plan.weight_digest.ToHex();
  json["kernels"] = plan.kernels;
  json["buffers"] = std::move(buffers);
  json["steps"] = std::move(steps);
  return DumpJson(json, 1) + "\n";
}

Result<ExecutionPlan> ParsePlan(std::string_view text, std::string_view where) {
  const auto at = [&](Status status) -> Status {
    if (status) return status;
    const std::string inner = status.error().where;
    status.error().where = std::string(where) + (inner.empty() ? "" : ", " + inner);
    return status;
  };
  ATUNNER_TRY(const Json json, ParseJson(text, where));
  ATUNNER_RETURN_IF_ERROR(at(CheckFormat(json)));
  try {
    ExecutionPlan plan = Read(json);
    ATUNNER_RETURN_IF_ERROR(at(CheckPlan(plan)));
    return plan;
  } catch (const std::exception& error) {
    return Invalid(std::string("the plan is damaged: ") + error.what(), std::string(where));
  }
}

bool IsPlan(const Path& folder) { return Exists(folder / kPlanFile); }

Result<ExecutionPlan> LoadPlan(const Path& folder) {
  if (!IsPlan(folder))
    return Fail(ErrorCode::kNotFound, "is no execution plan", folder.string(),
                "`atunner optimize model.pt2 --out FOLDER` writes one");
  ATUNNER_TRY(const std::string text, ReadFile(folder / kPlanFile, kLargestPlan));
  return ParsePlan(text, (folder / kPlanFile).string());
}

}  // namespace atunner
