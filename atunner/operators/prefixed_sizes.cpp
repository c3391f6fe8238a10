#include "atunner/operators/prefixed_sizes.h"

#include <algorithm>
#include <utility>

#include "atunner/graph/library/library.h"
#include "atunner/model/schedule/renamed_sizes.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {

std::optional<Task> WithPrefixedSizes(const Task& task) {
  if (task.graph() == nullptr) return std::nullopt;
  const KernelSpec& spec = task.spec();
  if (std::ranges::all_of(spec.dims, [](const auto& dim) { return dim.first == graph::kOpenRows; }))
    return std::nullopt;
  Dims dims;
  for (const auto& [name, size] : spec.dims) dims[kSizePrefix + name] = size;
  auto made = SpecOfGraph(graph::WithSymbolsPrefixed(*task.graph(), kSizePrefix), dims);
  if (!made) return std::nullopt;
  made->attributes = spec.attributes;
  made->tolerance = spec.tolerance;
  return Task::Of(*std::move(made));
}

}  // namespace atunner
