// `optimize`: an operator by name.
#include <nlohmann/json.hpp>

#include "atunner/base/closest_name.h"
#include "atunner/base/files.h"
#include "atunner/codegen/template/family.h"
#include "atunner/graph/text.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

/// "8,1024,4096", given as `where`.
Result<std::vector<int64_t>> ParseNumbers(const std::string& text, const std::string& where) {
  std::vector<int64_t> numbers;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || errno == ERANGE)
      return Invalid("'" + part + "' is no dimension", where,
                     "write numbers with commas between: 8,1024,4096");
    numbers.push_back(value);
    at = comma + 1;
  }
  return numbers;
}

/// Of "key=value", each given by `flag`.
Result<Attributes> ParseAttributes(const std::vector<std::string>& texts, const std::string& flag) {
  Attributes attributes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Invalid("'" + text + "' has no value", flag, "write key=value");
    auto value = Expr::Parse(text.substr(equals + 1));
    if (!value)
      return Invalid(value.error().what, flag + " " + text,
                     "give one number, true, false or a word");
    auto evaluated = value->Evaluate({});
    attributes[text.substr(0, equals)] = evaluated ? *evaluated : Value(text.substr(equals + 1));
  }
  return attributes;
}

/// The sizes that "n=1,512" names, with those named before: all combinations.
Result<std::vector<Dims>> WithSizes(const std::vector<Dims>& before, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Invalid("'" + text + "' names no size", "--dim", "write n=512, or n=1,512,4096");
  ATUNNER_TRY(const std::vector<int64_t> sizes,
              ParseNumbers(text.substr(equals + 1), "--dim " + text));
  std::vector<Dims> combined;
  for (Dims dims : before) {
    for (const int64_t size : sizes) {
      dims[text.substr(0, equals)] = size;
      combined.push_back(dims);
    }
  }
  return combined;
}

/// A graph in a file, its symbols with the sizes given: a task for each.
Result<std::vector<KernelSpec>> SpecsOfFile(const OptimizeFlags& flags) {
  ATUNNER_TRY(const std::string text, ReadFile(flags.graph));
  ATUNNER_TRY(const graph::ValidGraph parsed, graph::Parse(text, flags.graph));
  std::vector<Dims> given(1);
  for (const std::string& sizes : flags.sizes) {
    ATUNNER_TRY(given, WithSizes(given, sizes));
  }
  std::vector<KernelSpec> specs;
  for (const Dims& dims : given) {
    ATUNNER_TRY(KernelSpec spec, SpecOfGraph(parsed, dims));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

Status ApplyAccuracy(const std::string& name, KernelSpec& spec) {
  const auto accuracy = ParseAccuracy(name);
  if (!accuracy)
    return Invalid("unknown accuracy '" + name + "'", "--accuracy", "use strict, default or fast");
  SetAccuracy(spec, *accuracy);
  return {};
}

namespace {

Result<KernelSpec> SpecOfOperator(const OptimizeFlags& flags) {
  if (flags.operator_name.empty())
    return Invalid("nothing to optimize", "", "give --operator with --input-shape, or --graph");
  const Operator* op = FindOperator(flags.operator_name);
  if (op == nullptr) {
    std::vector<std::string> names;
    for (const Operator* each : AllOperators()) names.push_back(each->info().name);
    const std::string near = ClosestName(flags.operator_name, names);
    return Invalid(
        "unknown operator '" + flags.operator_name + "'", "--operator",
        near.empty() ? "`atunner operators` lists them" : "did you mean '" + near + "'?");
  }
  OperatorRequest request;
  const auto dtype = ParseDType(flags.dtype);
  if (!dtype)
    return Invalid("unknown dtype '" + flags.dtype + "'", "--dtype", "types are " + DTypeNames());
  request.dtype = *dtype;
  for (const std::string& text : flags.shapes) {
    ATUNNER_TRY(std::vector<int64_t> shape, ParseNumbers(text, "--input-shape " + text));
    request.shapes.push_back(std::move(shape));
  }
  ATUNNER_TRY(request.attributes, ParseAttributes(flags.attributes, "--attr"));
  return op->Instantiate(request);
}

/// A task for each size that is named.
Result<std::vector<KernelSpec>> SpecsOf(const OptimizeFlags& flags) {
  std::vector<KernelSpec> specs;
  if (flags.graph.empty()) {
    ATUNNER_TRY(KernelSpec spec, SpecOfOperator(flags));
    specs.push_back(std::move(spec));
  } else {
    ATUNNER_TRY(specs, SpecsOfFile(flags));
  }
  for (KernelSpec& spec : specs) ATUNNER_RETURN_IF_ERROR(ApplyAccuracy(flags.accuracy, spec));
  return specs;
}

}  // namespace

Result<KernelSpec> SpecOf(const OptimizeFlags& flags) {
  ATUNNER_TRY(std::vector<KernelSpec> specs, SpecsOf(flags));
  if (specs.size() > 1) return Invalid("several sizes, where one is meant", "--dim");
  return std::move(specs.front());
}

Result<int> Optimize(const OptimizeFlags& flags, const Common& common, const std::string& command) {
  ATUNNER_TRY(const std::vector<KernelSpec> specs, SpecsOf(flags));
  ATUNNER_TRY(const Target target, ChooseTarget(flags.tune.target, flags.tune.force_virtual));
  std::vector<std::unique_ptr<ScheduleTemplate>> schedules;
  for (const KernelSpec& spec : specs) {
    ATUNNER_TRY(auto schedule, MakeTemplate(spec, target.profile));
    schedules.push_back(std::move(schedule));
  }
  if (schedules.size() == 1)
    return RunTuning(*schedules.front(), target, flags.tune, common, command);
  return RunTuningAtSizes(schedules, target, flags.tune, common, command);
}

}  // namespace atunner::cli
