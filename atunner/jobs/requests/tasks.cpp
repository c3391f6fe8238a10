#include "atunner/jobs/requests/tasks.h"

#include "atunner/base/closest_name.h"
#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"

namespace atunner::jobs {
namespace {

/// Every combination of the sizes in `before` with those of one more symbol.
std::vector<Dims> WithSizes(const std::vector<Dims>& before, const std::string& symbol,
                            const std::vector<int64_t>& sizes) {
  std::vector<Dims> combined;
  for (Dims dims : before) {
    for (const int64_t size : sizes) {
      dims[symbol] = size;
      combined.push_back(dims);
    }
  }
  return combined;
}

Result<std::vector<KernelSpec>> SpecsOfGraphText(const TaskRequest& request) {
  ATUNNER_TRY(const graph::ValidGraph parsed,
              graph::Parse(request.graph->text, request.graph->name));
  std::vector<Dims> given(1);
  for (const auto& [symbol, sizes] : request.dims) given = WithSizes(given, symbol, sizes);
  std::vector<KernelSpec> specs;
  for (const Dims& dims : given) {
    ATUNNER_TRY(KernelSpec spec, SpecOfGraph(parsed, dims));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::unexpected<Error> UnknownOperator(const std::string& name) {
  std::vector<std::string> names;
  for (const Operator* each : AllOperators()) names.push_back(each->info().name);
  const std::string near = ClosestName(name, names);
  return Invalid("unknown operator '" + name + "'", "request.operator",
                 near.empty() ? "`atunner operators` lists them" : "did you mean '" + near + "'?");
}

Result<KernelSpec> SpecOfOperator(const TaskRequest& request) {
  if (request.operator_name.empty())
    return Invalid("nothing to optimize", "",
                   "give request.operator with request.shapes, or request.graph");
  const Operator* op = FindOperator(request.operator_name);
  if (op == nullptr) return UnknownOperator(request.operator_name);
  return op->Instantiate({request.shapes, request.dtype, request.attributes});
}

}  // namespace

Result<std::vector<KernelSpec>> SpecsOf(const TaskRequest& request) {
  std::vector<KernelSpec> specs;
  if (request.graph) {
    ATUNNER_TRY(specs, SpecsOfGraphText(request));
  } else {
    ATUNNER_TRY(KernelSpec spec, SpecOfOperator(request));
    specs.push_back(std::move(spec));
  }
  for (KernelSpec& spec : specs) SetAccuracy(spec, request.accuracy);
  return specs;
}

Result<KernelSpec> SpecOf(const TaskRequest& request) {
  ATUNNER_TRY(std::vector<KernelSpec> specs, SpecsOf(request));
  if (specs.size() > 1) return Invalid("several sizes, where one is meant", "request.dims");
  return std::move(specs.front());
}

}  // namespace atunner::jobs
