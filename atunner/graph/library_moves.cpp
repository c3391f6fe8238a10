// Operators that move elements: gather, scatter, transpose, sort.
#include <fmt/format.h>

#include "atunner/graph/library.h"

namespace atunner::graph {
namespace {

void BuildEmbedding(Call& call) {
  const Shape table = call.shape(0);
  if (!call.Check(table.size() == 2 && call.shapes() == 2, "embedding takes a table V,D and the shape of the indices"))
    return;
  const Value indices = call.Input("indices", call.shape(1), DType::kInt64);
  call.g.Output("y", call.g.Add(Gather{0, 0}, {call.Input("table", table), indices}));
}

void BuildIndexSelect(Call& call) {
  if (!call.Check(call.shapes() == 2, "index_select takes a shape and the number of indices")) return;
  const Value x = call.Input("x", call.shape(0));
  const Value indices = call.Input("indices", call.shape(1), DType::kInt64);
  call.g.Output("y", call.g.Add(Gather{call.Axis(x), 0}, {x, indices}));
}

void BuildGather(Call& call) {
  const Shape x = call.shape(0);
  const Shape places = call.shape(1);
  if (!call.Check(!x.empty() && x.size() == places.size(), "gather takes two shapes that differ in the last axis"))
    return;
  const auto axis = static_cast<int64_t>(x.size()) - 1;
  call.g.Output("y",
                call.g.Add(Gather{axis, axis}, {call.Input("x", x), call.Input("indices", places, DType::kInt64)}));
}

void BuildScatterAdd(Call& call) {
  const Shape x = call.shape(0);
  if (!call.Check(x.size() == 2 && call.shapes() == 2, "scatter_add takes V,D and the number of rows to add")) return;
  const Value start = call.Wide(call.Input("x", x));
  Shape updates = call.shape(1);
  const Value places = call.Input("indices", updates, DType::kInt64);
  updates.push_back(x[1]);
  const Value added = call.Wide(call.Input("updates", updates));
  const Value sum = call.g.Add(Scatter{Combine::kSum, 0, 0}, {start, places, added});
  call.Output("y", sum);
}

void BuildTranspose(Call& call) {
  const Shape shape = call.shape();
  if (!call.Check(shape.size() >= 2, "a transpose takes two axes")) return;
  std::vector<int64_t> order;
  for (size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
  const Value x = call.Input("x", shape);
  std::swap(order[call.Axis(x, "axis0")], order[call.Axis(x, "axis1")]);
  call.g.Output("y", call.g.Transpose(x, order));
}

void BuildPad(Call& call) {
  const Value x = call.Input("x", call.shape());
  call.g.Output("y", call.g.Add(Pad{call.Axis(x), call.Whole("low"), call.Whole("high"), 0, call.Real("value")}, {x}));
}

void BuildConcat(Call& call) {
  const Value a = call.Input("a", call.shape(0));
  const Value b = call.Input("b", call.shape(1));
  call.g.Output("y", call.g.Add(Concat{call.Axis(a)}, {a, b}));
}

void BuildFlip(Call& call) {
  const Value x = call.Input("x", call.shape());
  call.g.Output("y", call.g.Add(Reverse{call.Axis(x)}, {x}));
}

void BuildRepeat(Call& call) {
  const Value x = call.Input("x", call.shape());
  const int64_t axis = call.Axis(x);
  if (!call.g.ok()) return;
  Shape wide = call.shape();
  wide.insert(wide.begin() + axis + 1, Extent(1));
  const Value split = call.g.Reshape(x, wide);
  wide[axis + 1] = Extent(call.Whole("times"));
  Shape merged = call.shape();
  merged[axis] = merged[axis] * wide[axis + 1];
  call.g.Output("y", call.g.Reshape(call.g.Map("a", {split}, wide), merged));
}

/// Nearest neighbour by a whole factor along every spatial axis.
void BuildUpsample(Call& call) {
  const Shape xs = call.shape();
  const Extent factor(call.Whole("factor"));
  if (!call.Check(xs.size() >= 3 && factor.factor() >= 1, "upsample takes N,C,… and a factor of at least 1")) return;
  Shape split = {xs[0], xs[1]};
  Shape wide = split;
  Shape merged = split;
  for (size_t i = 2; i < xs.size(); ++i) {
    split.insert(split.end(), {xs[i], Extent(1)});
    wide.insert(wide.end(), {xs[i], factor});
    merged.push_back(xs[i] * factor);
  }
  call.g.Output("y", call.g.Reshape(call.g.Map("a", {call.g.Reshape(call.Input("x", xs), split)}, wide), merged));
}

void BuildTopK(Call& call) {
  const Value x = call.Input("x", call.shape());
  const auto axis = static_cast<int64_t>(call.shape().size()) - 1;
  if (!call.Check(axis >= 0, "a scalar has nothing to sort")) return;
  const Value places = call.g.Add(Sort{axis, call.Flag("largest"), call.Whole("k")}, {x});
  call.g.Output("values", call.g.Add(Gather{axis, axis}, {x, places}));
  call.g.Output("indices", places);
}

void BuildSort(Call& call) {
  const Value x = call.Input("x", call.shape());
  const auto axis = static_cast<int64_t>(call.shape().size()) - 1;
  if (!call.Check(axis >= 0, "a scalar has nothing to sort")) return;
  const Value places = call.g.Add(Sort{axis, call.Flag("descending"), 0}, {x});
  call.g.Output("values", call.g.Add(Gather{axis, axis}, {x, places}));
  call.g.Output("indices", places);
}

void BuildTriangle(Call& call) {
  const Value x = call.Input("x", call.shape());
  const auto offset = call.Whole("diagonal");
  if (!call.Check(call.shape().size() >= 2, "a triangle has two axes")) return;
  call.g.Output("y", call.g.Map(fmt::format("select(index(-1) - index(-2) {} {}, a, 0)",
                                            call.Flag("upper") ? ">=" : "<=", offset),
                                {x}));
}

}  // namespace

void AddMoves(std::vector<LibraryOperator>& library) {
  const char* one = "one shape: --input-shape 1024,4096";
  const Attribute axis = {"axis", int64_t{-1}, "axis along which"};
  const Attribute rows = {"axis", int64_t{0}, "axis along which"};
  library.push_back({"embedding",
                     "embedding(indices, table[V, D]) → y[…, D]",
                     "rows of a table",
                     "table and indices: --input-shape 50000,768 8,1024",
                     {},
                     BuildEmbedding,
                     true,
                     {{5, 3}, {2, 4}}});
  library.push_back({"index_select",
                     "index_select(x, indices[N]) → y",
                     "slices along an axis",
                     "x and indices: --input-shape 1024,512 64",
                     {rows},
                     BuildIndexSelect,
                     true,
                     {{5, 3}, {4}}});
  library.push_back({"gather",
                     "gather(x[…, N], indices[…, M]) → y[…, M]",
                     "elements along the last axis",
                     "two shapes: --input-shape 64,1024 64,16",
                     {},
                     BuildGather,
                     true,
                     {{3, 5}, {3, 2}}});
  library.push_back({"scatter_add",
                     "scatter_add(x[V, D], indices[N], updates[N, D]) → y",
                     "rows added at places, in order",
                     "x and indices: --input-shape 1024,512 64",
                     {},
                     BuildScatterAdd,
                     true,
                     {{5, 3}, {4}}});
  library.push_back({"transpose",
                     "transpose(x) → y",
                     "two axes exchanged",
                     one,
                     {{"axis0", int64_t{-2}, "one axis"}, {"axis1", int64_t{-1}, "the other"}},
                     BuildTranspose,
                     true,
                     {{2, 3, 4}}});
  library.push_back({"pad",
                     "pad(x) → y",
                     "a constant before and behind an axis",
                     one,
                     {axis,
                      {"low", int64_t{1}, "elements before"},
                      {"high", int64_t{1}, "elements behind"},
                      {"value", 0.0, "of the new elements"}},
                     BuildPad,
                     true,
                     {{3, 5}}});
  library.push_back({"concat",
                     "concat(a, b) → y",
                     "two tensors one after the other",
                     "two shapes: --input-shape 64,1024 64,512",
                     {axis},
                     BuildConcat,
                     true,
                     {{3, 5}, {3, 2}}});
  library.push_back({"flip", "flip(x) → y", "an axis backwards", one, {axis}, BuildFlip, true, {{3, 5}}});
  library.push_back({"repeat_interleave",
                     "repeat_interleave(x) → y",
                     "every element several times",
                     one,
                     {axis, {"times", int64_t{2}, "how often"}},
                     BuildRepeat,
                     true,
                     {{3, 5}}});
  library.push_back({"upsample_nearest",
                     "upsample_nearest(x[N, C, …]) → y",
                     "every place repeated",
                     "N,C,…: --input-shape 8,64,28,28",
                     {{"factor", int64_t{2}, "how often along each axis"}},
                     BuildUpsample,
                     true,
                     {{1, 2, 3, 2}}});
  library.push_back({"topk",
                     "topk(x) → values, indices",
                     "the k largest or smallest along the last axis, in order",
                     one,
                     {{"k", int64_t{2}, "how many"}, {"largest", true, "or smallest"}},
                     BuildTopK,
                     true,
                     {{3, 5}}});
  library.push_back({"sort",
                     "sort(x) → values, indices",
                     "stably sorted along the last axis",
                     one,
                     {{"descending", false, "largest first"}},
                     BuildSort,
                     true,
                     {{3, 5}}});
  library.push_back({"triangle",
                     "triangle(x[…, M, N]) → y",
                     "one triangle; zero elsewhere",
                     one,
                     {{"upper", false, "above the diagonal"}, {"diagonal", int64_t{0}, "which diagonal"}},
                     BuildTriangle,
                     true,
                     {{3, 5}}});
}

}  // namespace atunner::graph
