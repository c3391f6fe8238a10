#include "atunner/operators/prefixed_sizes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "atunner/graph/library/library.h"
#include "atunner/model/schedule/renamed_sizes.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

/// nullopt where the sizes' names are our own.
std::optional<KernelSpec> WithPrefixedSizes(const KernelSpec& spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  if (std::ranges::all_of(spec.dims, [](const auto& dim) { return dim.first == graph::kOpenRows; }))
    return std::nullopt;
  Dims dims;
  for (const auto& [name, size] : spec.dims) dims[kSizePrefix + name] = size;
  const auto graph = GraphOf(spec);
  if (!graph) return std::nullopt;
  auto made = SpecOfGraph(graph::WithSymbolsPrefixed(*graph, kSizePrefix), dims);
  if (!made) return std::nullopt;
  made->attributes = spec.attributes;
  made->tolerance = spec.tolerance;
  return *std::move(made);
}

}  // namespace

Result<std::unique_ptr<ScheduleTemplate>> BindWithPrefixedSizes(const KernelSpec& spec,
                                                                const BindTask& bind) {
  const auto prefixed = WithPrefixedSizes(spec);
  if (!prefixed) return bind(spec);
  ATUNNER_TRY(auto schedule, bind(*prefixed));
  return RenamedSizes::Make(spec, std::move(schedule));
}

}  // namespace atunner
