// Operators with indices: gather, scatter, embeddings.
#include <fmt/format.h>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

void BuildEmbedding(Call& call) {
  const Shape table = call.shape(0);
  if (!call.Check(table.size() == 2 && call.shapes() == 2,
                  "embedding takes a table V,D and the shape of the indices"))
    return;
  const Value indices = call.Input("indices", call.shape(1), DType::kInt64);
  call.g.Output("y", call.g.Add(Gather{0, 0}, {call.Input("table", table), indices}));
}

void BuildIndexSelect(Call& call) {
  if (!call.Check(call.shapes() == 2, "index_select takes a shape and the number of indices"))
    return;
  const Value x = call.Input("x", call.shape(0));
  const Value indices = call.Input("indices", call.shape(1), DType::kInt64);
  call.g.Output("y", call.g.Add(Gather{call.Axis(x), 0}, {x, indices}));
}

void BuildGather(Call& call) {
  const Shape x = call.shape(0);
  const Shape places = call.shape(1);
  if (!call.Check(!x.empty() && x.size() == places.size(),
                  "gather takes two shapes that differ in the last axis"))
    return;
  const auto axis = static_cast<int64_t>(x.size()) - 1;
  call.g.Output("y",
                call.g.Add(Gather{axis, axis},
                           {call.Input("x", x), call.Input("indices", places, DType::kInt64)}));
}

/// Scatter of rows at indices, in order: set, sum, maximum or minimum.
void BuildScatter(Call& call, Combine op) {
  const Shape x = call.shape(0);
  if (!call.Check(x.size() == 2 && call.shapes() == 2, "scatter takes V,D and the number of rows"))
    return;
  const Value start = call.Wide(call.Input("x", x));
  Shape updates = call.shape(1);
  const Value places = call.Input("indices", updates, DType::kInt64);
  updates.push_back(x[1]);
  const Value added = call.Wide(call.Input("updates", updates));
  call.Output("y", call.g.Add(Scatter{op, 0, 0}, {start, places, added}));
}

/// Embedding bags of equal size: the rows of the table that a bag names are combined.
void BuildEmbeddingBag(Call& call) {
  const Shape table = call.shape(0);
  if (!call.Check(table.size() == 2 && call.shapes() == 2 && call.shape(1).size() == 2,
                  "embedding_bag takes a table V,D and bags B,N"))
    return;
  const Value indices = call.Input("indices", call.shape(1), DType::kInt64);
  const Value rows = call.g.Add(Gather{0, 0}, {call.Wide(call.Input("table", table)), indices});
  call.Output("y", call.g.Reduce(call.Flag("mean") ? Combine::kMean : Combine::kSum, rows, {1}));
}

void BuildOneHot(Call& call) {
  Shape shape = call.shape();
  const Value indices = call.Input("indices", shape, DType::kInt64);
  shape.emplace_back(1);
  const Value place = call.g.Reshape(indices, shape);
  shape.back() = Extent(call.Whole("classes"));
  call.g.Output("y", call.g.Cast(call.g.Map("index(-1) == a", {place}, shape), call.dtype()));
}

void BuildMaskedFill(Call& call) {
  const Value x = call.Input("x", call.shape(0));
  const Value mask = call.Input("mask", call.shape(1), DType::kBool);
  call.g.Output("y", call.g.Map(fmt::format("select(b, {}, a)", call.Real("value")), {x, mask}));
}

}  // namespace

/// Operators with indices.
void AddIndexing(std::vector<LibraryOperator>& library) {
  const char* one = "one shape: request.shapes 1024,4096";
  const Attribute rows = {"axis", int64_t{0}, "the axis"};
  library.push_back({"embedding",
                     "embedding(indices, table[V, D]) → y[…, D]",
                     "rows of a table",
                     "table and indices: request.shapes 50000,768 8,1024",
                     {},
                     BuildEmbedding,
                     true,
                     {{5, 3}, {2, 4}}});
  library.push_back({"index_select",
                     "index_select(x, indices[N]) → y",
                     "slices along an axis",
                     "x and indices: request.shapes 1024,512 64",
                     {rows},
                     BuildIndexSelect,
                     true,
                     {{5, 3}, {4}}});
  library.push_back({"gather",
                     "gather(x[…, N], indices[…, M]) → y[…, M]",
                     "elements along the last axis",
                     "two shapes: request.shapes 64,1024 64,16",
                     {},
                     BuildGather,
                     true,
                     {{3, 5}, {3, 2}}});
  library.push_back({"scatter_add",
                     "scatter_add(x[V, D], indices[N], updates[N, D]) → y",
                     "rows added at indices, in order",
                     "x and indices: request.shapes 1024,512 64",
                     {},
                     [](Call& call) { BuildScatter(call, Combine::kSum); },
                     true,
                     {{5, 3}, {4}}});
  library.push_back({"scatter",
                     "scatter(x[V, D], indices[N], updates[N, D]) → y",
                     "rows written at indices; the last of equal indices wins",
                     "x and indices: request.shapes 1024,512 64",
                     {},
                     [](Call& call) { BuildScatter(call, Combine::kSet); },
                     false,
                     {{5, 3}, {4}}});
  library.push_back({"scatter_max",
                     "scatter_max(x[V, D], indices[N], updates[N, D]) → y",
                     "maximum of rows and updates at indices",
                     "x and indices: request.shapes 1024,512 64",
                     {},
                     [](Call& call) { BuildScatter(call, Combine::kMax); },
                     false,
                     {{5, 3}, {4}}});
  library.push_back({"embedding_bag",
                     "embedding_bag(indices[B, N], table[V, D]) → y[B, D]",
                     "rows of a table, added up or averaged by bag",
                     "table and bags: request.shapes 50000,128 1024,16",
                     {{"mean", false, "averaged"}},
                     BuildEmbeddingBag,
                     true,
                     {{5, 3}, {2, 4}}});
  library.push_back({"one_hot",
                     "one_hot(indices) → y[…, classes]",
                     "1 at the index, 0 elsewhere",
                     one,
                     {{"classes", int64_t{8}, "number of classes"}},
                     BuildOneHot,
                     false,
                     {{2, 3}}});
  library.push_back({"masked_fill",
                     "masked_fill(x, mask) → y",
                     "a number where the mask is true",
                     "x, and the mask if other: request.shapes 64,1024 1024",
                     {{"value", 0.0, "the number"}},
                     BuildMaskedFill,
                     true,
                     {{3, 5}}});
}

}  // namespace atunner::graph
