// `optimize`: an operator by name.
#include <nlohmann/json.hpp>

#include "atunner/base/closest_name.h"
#include "atunner/base/files.h"
#include "atunner/codegen/family.h"
#include "atunner/graph/text.h"
#include "atunner/model/accuracy.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

Result<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || errno == ERANGE)
      return Invalid("'" + part + "' is no dimension", "--input-shape " + text,
                     "write numbers with commas between: 8,1024,4096");
    shape.push_back(value);
    at = comma + 1;
  }
  return shape;
}

/// Of "key=value", each given by `flag`.
Result<Attributes> ParseAttributes(const std::vector<std::string>& texts, const std::string& flag) {
  Attributes attributes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Invalid("'" + text + "' has no value", flag, "write key=value");
    auto value = Expr::Parse(text.substr(equals + 1));
    if (!value) return Invalid(value.error().what, flag + " " + text, "give one number, true, false or a word");
    auto evaluated = value->Evaluate({});
    attributes[text.substr(0, equals)] = evaluated ? *evaluated : Value(text.substr(equals + 1));
  }
  return attributes;
}

/// A graph in a file, its symbols with the sizes given.
Result<KernelSpec> SpecOfFile(const OptimizeFlags& flags) {
  ATUNNER_TRY(const std::string text, ReadFile(flags.graph));
  ATUNNER_TRY(const graph::ValidGraph parsed, graph::Parse(text, flags.graph));
  ATUNNER_TRY(const Attributes given, ParseAttributes(flags.sizes, "--dim"));
  Dims dims;
  for (const auto& [name, value] : given) {
    if (!std::holds_alternative<int64_t>(value))
      return Invalid("'" + ToString(value) + "' is no size", "--dim " + name);
    dims[name] = std::get<int64_t>(value);
  }
  return SpecOfGraph(parsed, dims);
}

}  // namespace

Status ApplyAccuracy(const std::string& name, KernelSpec& spec) {
  const auto accuracy = ParseAccuracy(name);
  if (!accuracy) return Invalid("unknown accuracy '" + name + "'", "--accuracy", "use strict, default or fast");
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
    return Invalid("unknown operator '" + flags.operator_name + "'", "--operator",
                   near.empty() ? "`atunner operators` lists them" : "did you mean '" + near + "'?");
  }
  OperatorRequest request;
  const auto dtype = ParseDType(flags.dtype);
  if (!dtype) return Invalid("unknown dtype '" + flags.dtype + "'", "--dtype", "types are " + DTypeNames());
  request.dtype = *dtype;
  for (const std::string& text : flags.shapes) {
    ATUNNER_TRY(std::vector<int64_t> shape, ParseShape(text));
    request.shapes.push_back(std::move(shape));
  }
  ATUNNER_TRY(request.attributes, ParseAttributes(flags.attributes, "--attr"));
  return op->Instantiate(request);
}

}  // namespace

Result<KernelSpec> SpecOf(const OptimizeFlags& flags) {
  ATUNNER_TRY(KernelSpec spec, flags.graph.empty() ? SpecOfOperator(flags) : SpecOfFile(flags));
  ATUNNER_RETURN_IF_ERROR(ApplyAccuracy(flags.accuracy, spec));
  return spec;
}

Result<int> Optimize(const OptimizeFlags& flags, const Common& common, const std::string& command) {
  ATUNNER_TRY(const KernelSpec spec, SpecOf(flags));
  ATUNNER_TRY(const Target target, ChooseTarget(flags.tune.target, flags.tune.force_virtual));
  ATUNNER_TRY(const auto schedule, MakeTemplate(spec, target.profile));
  return RunTuning(*schedule, target, flags.tune, common, command);
}

}  // namespace atunner::cli
