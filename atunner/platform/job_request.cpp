#include "atunner/platform/job_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "atunner/base/closest_name.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/operators/operator.h"
#include "atunner/tune/objectives.h"

namespace atunner::platform {
namespace {

using Problems = std::vector<FieldProblem>;

constexpr size_t kLongestText = 200;
constexpr size_t kLargestGraph = size_t{1} << 20;

/// Reads the fields of one object, and remembers which were read and what was wrong.
class FieldReader {
 public:
  FieldReader(const Json& json, Problems& problems) : json_(json), problems_(problems) {}

  void Fail(const std::string& field, std::string detail, std::string hint = {}) {
    problems_.push_back({field, std::move(detail), std::move(hint)});
  }
  bool Has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }
  /// nullptr if it is not there.
  const Json* Find(const char* name) {
    known_.emplace_back(name);
    return Has(name) ? &json_[name] : nullptr;
  }
  std::string Text(const char* name, size_t longest = kLongestText) {
    const Json* value = Find(name);
    if (value == nullptr) return "";
    if (!value->is_string()) {
      Fail(name, "must be a string");
      return "";
    }
    std::string text = value->get<std::string>();
    if (text.size() <= longest) return text;
    Fail(name, fmt::format("has more than {} bytes", longest));
    return "";
  }
  std::string Required(const char* name, std::string_view hint) {
    std::string text = Text(name);
    if (!Has(name)) Fail(name, "is missing", std::string(hint));
    return text;
  }
  bool Flag(const char* name, bool fallback) {
    const Json* value = Find(name);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) Fail(name, "must be true or false");
    return value->is_boolean() ? value->get<bool>() : fallback;
  }
  int64_t Integer(const char* name, int64_t fallback, int64_t least, int64_t most) {
    const Json* value = Find(name);
    if (value == nullptr) return fallback;
    if (value->is_number_integer() && value->get<int64_t>() >= least &&
        value->get<int64_t>() <= most)
      return value->get<int64_t>();
    Fail(name, fmt::format("must be an integer from {} to {}", least, most));
    return fallback;
  }
  /// Names what nobody asked for.
  void RefuseOthers() {
    for (const auto& [name, value] : json_.items()) {
      if (std::ranges::find(known_, name) != known_.end()) continue;
      const std::string near = ClosestName(name, known_);
      Fail(name, "is not a field of a job of this kind",
           near.empty() ? "" : "did you mean '" + near + "'?");
    }
  }

 private:
  const Json& json_;
  Problems& problems_;
  std::vector<std::string> known_;
};

std::optional<std::vector<int64_t>> IntegersOf(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<int64_t> list;
  for (const Json& one : json) {
    if (!one.is_number_integer()) return std::nullopt;
    list.push_back(one.get<int64_t>());
  }
  return list;
}

void ReadShapes(FieldReader& fields, JobRequest& request) {
  const Json* shapes = fields.Find("shapes");
  if (shapes == nullptr) return fields.Fail("shapes", "is missing", "for example [[8192, 4096]]");
  if (!shapes->is_array()) return fields.Fail("shapes", "must be a list of lists of integers");
  for (size_t i = 0; i < shapes->size(); ++i) {
    const auto shape = IntegersOf((*shapes)[i]);
    if (shape)
      request.task.shapes.push_back(*shape);
    else
      fields.Fail(fmt::format("shapes[{}]", i), "must be a list of integers");
  }
}

std::optional<Value> ValueOf(const Json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  return std::nullopt;
}

void ReadAttributes(FieldReader& fields, JobRequest& request) {
  const Json* attributes = fields.Find("attributes");
  if (attributes == nullptr) return;
  if (!attributes->is_object()) return fields.Fail("attributes", "must be an object");
  for (const auto& [name, json] : attributes->items()) {
    const auto value = ValueOf(json);
    if (value)
      request.task.attributes[name] = *value;
    else
      fields.Fail("attributes." + name, "must be a number, a string, true or false");
  }
}

void ReadTypes(FieldReader& fields, JobRequest& request) {
  if (const std::string name = fields.Text("accuracy"); !name.empty()) {
    const auto accuracy = ParseAccuracy(name);
    if (!accuracy) fields.Fail("accuracy", "unknown accuracy", "use strict, default or fast");
    request.task.accuracy = accuracy.value_or(Accuracy::kDefault);
  }
  if (request.kind != JobKind::kOperator) return;
  if (const std::string name = fields.Text("dtype"); !name.empty()) {
    const auto dtype = ParseDType(name);
    if (!dtype) fields.Fail("dtype", "unknown type '" + name + "'", "types are " + DTypeNames());
    request.task.dtype = dtype.value_or(DType::kFloat32);
  }
}

void ReadOperator(FieldReader& fields, JobRequest& request) {
  request.task.operator_name = fields.Required("operator", "GET /api/v1/operators lists them");
  ReadShapes(fields, request);
  ReadAttributes(fields, request);
}

void ReadSource(FieldReader& fields, JobRequest& request) {
  request.upload = fields.Required("upload", "upload the file with POST /api/v1/uploads");
  request.kernel = fields.Text("kernel");
}

void ReadDims(FieldReader& fields, JobRequest& request) {
  const Json* dims = fields.Find("dims");
  if (dims == nullptr) return;
  if (!dims->is_object()) return fields.Fail("dims", "must be an object of lists of integers");
  for (const auto& [name, json] : dims->items()) {
    const auto sizes = IntegersOf(json);
    if (sizes && !sizes->empty())
      request.task.dims.emplace_back(name, *sizes);
    else
      fields.Fail("dims." + name, "must be a list of integers");
  }
}

void ReadGraph(FieldReader& fields, JobRequest& request) {
  const std::string text = fields.Text("graph", kLargestGraph);
  request.upload = fields.Text("upload");
  if (fields.Has("graph") == fields.Has("upload"))
    fields.Fail("graph", "needs either the text of a graph, or an upload",
                "give one of graph and upload");
  if (!text.empty()) request.task.graph = jobs::GraphText{text, "graph"};
  ReadDims(fields, request);
}

void ReadBudget(FieldReader& fields, JobRequest& request) {
  const Json* json = fields.Find("budget");
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail("budget", "must be an object", "{\"trials\": 60}");
  Problems inner;
  FieldReader budget(*json, inner);
  Budget& limits = request.tuning.budget;
  limits = {};
  if (budget.Has("trials")) limits.trials = budget.Integer("trials", 1, 1, 10'000'000);
  (void)budget.Find("trials");
  if (const Json* seconds = budget.Find("seconds"); seconds != nullptr) {
    const double value = seconds->is_number() ? seconds->get<double>() : 0;
    if (value > 0 && std::isfinite(value))
      limits.seconds = value;
    else
      budget.Fail("seconds", "must be a number above 0");
  }
  budget.RefuseOthers();
  for (const FieldProblem& one : inner) fields.Fail("budget." + one.field, one.detail, one.hint);
  if (!limits.trials && !limits.seconds) limits.trials = 60;
}

std::vector<std::string> ReadTexts(FieldReader& fields, const char* name) {
  std::vector<std::string> texts;
  const Json* json = fields.Find(name);
  if (json == nullptr) return texts;
  const bool list = json->is_array() &&
                    std::ranges::all_of(*json, [](const Json& one) { return one.is_string(); });
  if (!list)
    fields.Fail(name, "must be a list of strings");
  else
    for (const Json& one : *json) texts.push_back(one.get<std::string>());
  return texts;
}

void ReadObjectives(FieldReader& fields, JobRequest& request) {
  const std::vector<std::string> names = ReadTexts(fields, "objectives");
  if (names.empty()) return;
  const auto objectives = ParseObjectives(fmt::format("{}", fmt::join(names, ",")));
  if (objectives)
    request.tuning.objectives = *objectives;
  else
    fields.Fail("objectives", objectives.error().what, objectives.error().hint);
}

void ReadTarget(FieldReader& fields, JobRequest& request) {
  jobs::TuningOptions& tuning = request.tuning;
  tuning.target.force_virtual = fields.Flag("virtual", false);
  if (const std::string gpu = fields.Text("target_gpu"); !gpu.empty()) tuning.target.gpu = gpu;
  if (tuning.target.gpu == "auto") return;
  if (const auto profile = FindProfile(tuning.target.gpu); !profile)
    fields.Fail("target_gpu", profile.error().what, profile.error().hint);
}

void ReadTuning(FieldReader& fields, JobRequest& request) {
  jobs::TuningOptions& tuning = request.tuning;
  ReadTarget(fields, request);
  ReadBudget(fields, request);
  ReadObjectives(fields, request);
  tuning.seed = static_cast<uint64_t>(fields.Integer("seed", 1, 0, INT64_MAX));
  if (const std::string strategy = fields.Text("strategy"); !strategy.empty())
    tuning.strategy = strategy;
  tuning.where = ReadTexts(fields, "where");
  tuning.fresh = fields.Flag("fresh", false);
  tuning.transfer = fields.Flag("transfer", true);
  tuning.baselines = fields.Flag("baselines", true);
}

void ReadQueueing(FieldReader& fields, JobRequest& request) {
  request.name = fields.Text("name");
  request.priority = static_cast<int>(fields.Integer("priority", 0, -100, 100));
  const Json* labels = fields.Find("labels");
  if (labels == nullptr) return;
  if (!labels->is_object()) return fields.Fail("labels", "must be an object of strings");
  for (const auto& [name, value] : labels->items()) {
    if (value.is_string())
      request.labels[name] = value.get<std::string>();
    else
      fields.Fail("labels." + name, "must be a string");
  }
}

/// True for a problem with what a task is made of.
bool IsAboutTask(const FieldProblem& problem) {
  static constexpr std::string_view kFields[] = {"operator",   "shapes", "dtype",
                                                 "attributes", "graph",  "dims"};
  return std::ranges::any_of(
      kFields, [&](std::string_view field) { return problem.field.starts_with(field); });
}

/// Looks the task up, so that a mistake is answered at once and not by a worker.
void CheckTask(const JobRequest& request, Problems& problems) {
  const bool stated = request.kind == JobKind::kOperator || request.task.graph.has_value();
  if (!stated || std::ranges::any_of(problems, IsAboutTask)) return;
  if (const auto specs = jobs::SpecsOf(request.task); !specs)
    problems.push_back(ProblemOf(specs.error()));
}

std::string NameOf(const JobRequest& request) {
  if (request.kind == JobKind::kOperator) return request.task.operator_name;
  if (request.kind == JobKind::kSource)
    return request.kernel.empty() ? request.upload : request.kernel;
  return request.upload.empty() ? "graph" : request.upload;
}

std::optional<JobKind> KindOf(FieldReader& fields) {
  const std::string kind = fields.Required("kind", "operator, source or graph");
  if (kind == "operator") return JobKind::kOperator;
  if (kind == "source") return JobKind::kSource;
  if (kind == "graph") return JobKind::kGraph;
  if (!kind.empty())
    fields.Fail("kind", "unknown kind '" + kind + "'", "operator, source or graph");
  return std::nullopt;
}

void ReadKind(FieldReader& fields, JobRequest& request) {
  switch (request.kind) {
    case JobKind::kOperator:
      return ReadOperator(fields, request);
    case JobKind::kSource:
      return ReadSource(fields, request);
    case JobKind::kGraph:
      return ReadGraph(fields, request);
  }
}

}  // namespace

FieldProblem ProblemOf(const Error& error) {
  constexpr std::string_view kPrefix = "request.";
  std::string field = error.where;
  if (field.starts_with(kPrefix)) field = field.substr(kPrefix.size());
  field = field.substr(0, field.find(' '));
  if (field == "target") field = "target_gpu";
  return {field, error.what, error.hint};
}

std::expected<JobRequest, Problems> ParseJobRequest(const Json& json) {
  if (!json.is_object()) return std::unexpected(Problems{{"", "must be a JSON object", ""}});
  Problems problems;
  FieldReader fields(json, problems);
  JobRequest request;
  if (const auto kind = KindOf(fields)) {
    request.kind = *kind;
    ReadKind(fields, request);
    ReadTypes(fields, request);
    ReadTuning(fields, request);
    ReadQueueing(fields, request);
    fields.RefuseOthers();
    CheckTask(request, problems);
  }
  if (!problems.empty()) return std::unexpected(std::move(problems));
  if (request.name.empty()) request.name = NameOf(request);
  return request;
}

}  // namespace atunner::platform
