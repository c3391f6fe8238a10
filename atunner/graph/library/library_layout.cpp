// Layout operators (transpose, pad, roll, …), interpolation and sorts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

void BuildTranspose(Call& call) {
  const Shape shape = call.shape();
  if (!call.Check(shape.size() >= 2, "a transpose takes two axes")) return;
  std::vector<int64_t> order;
  for (size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
  const Value x = call.Input("x", shape);
  std::swap(order[call.Axis(x, "axis0")], order[call.Axis(x, "axis1")]);
  call.g.Output("y", call.g.Transpose(x, order));
}

/// The order of a transpose from a text such as "acb": the axes of x are called a, b, c, …
void BuildPermute(Call& call) {
  const Value x = call.Input("x", call.shape());
  const std::string text = call.Text("order");
  std::vector<int64_t> order;
  for (char letter : text) order.push_back(letter - 'a');
  if (!call.Check(order.size() == call.shape().size(),
                  fmt::format("order={} of a tensor of rank {}", text, call.shape().size()),
                  "a letter for each axis: order=acb exchanges the last two of three"))
    return;
  call.g.Output("y", call.g.Transpose(x, order));
}

/// Splits x into equal parts along an axis.
void BuildSplit(Call& call) {
  const Value x = call.Input("x", call.shape());
  const int64_t axis = call.Axis(x);
  const int64_t parts = call.Whole("parts");
  if (!call.g.ok()) return;
  const Extent extent = call.shape()[axis];
  const auto each = parts > 0 ? extent.Divided(Extent(parts)) : std::nullopt;
  if (!call.Check(each && each->constant(),
                  fmt::format("parts={} of an extent {}", parts, extent.ToString()),
                  "the parts must divide the axis"))
    return;
  for (int64_t i = 0; i < parts; ++i)
    call.g.Output("y" + std::to_string(i),
                  call.g.Add(Slice{axis, i * each->factor(), (i + 1) * each->factor(), 1}, {x}));
}

void BuildSlice(Call& call) {
  const Value x = call.Input("x", call.shape());
  const Slice slice{call.Axis(x), call.Whole("start"), call.Whole("stop"), call.Whole("step")};
  call.g.Output("y", call.g.Add(slice, {x}));
}

void BuildStack(Call& call) {
  const Value a = call.Input("a", call.shape());
  const Value b = call.Input("b", call.shape());
  const auto rank = static_cast<int64_t>(call.shape().size());
  const int64_t axis = call.Whole("axis") < 0 ? call.Whole("axis") + rank + 1 : call.Whole("axis");
  if (!call.Check(axis >= 0 && axis <= rank,
                  "axis=" + call.Text("axis") + " of a result of rank " + std::to_string(rank + 1)))
    return;
  Shape split = call.shape();
  split.insert(split.begin() + axis, Extent(1));
  call.g.Output("y",
                call.g.Add(Concat{axis}, {call.g.Reshape(a, split), call.g.Reshape(b, split)}));
}

/// Shifts elements by `shift` along an axis; those beyond the end come in at the beginning.
void BuildRoll(Call& call) {
  const Value x = call.Input("x", call.shape());
  const int64_t axis = call.Axis(x);
  if (!call.g.ok()) return;
  const Extent extent = call.shape()[axis];
  if (!call.Check(extent.constant(), "roll along an open axis")) return;
  const int64_t n = extent.factor();
  const int64_t shift = ((call.Whole("shift") % n) + n) % n;
  if (shift == 0) return call.g.Output("y", call.g.Map("a", {x}));
  call.g.Output("y", call.g.Add(Concat{axis}, {call.g.Add(Slice{axis, n - shift, n, 1}, {x}),
                                               call.g.Add(Slice{axis, 0, n - shift, 1}, {x})}));
}

/// Repeats the whole tensor along an axis.
void BuildTile(Call& call) {
  const Value x = call.Input("x", call.shape());
  const int64_t axis = call.Axis(x);
  const int64_t times = call.Whole("times");
  if (!call.Check(times >= 1, fmt::format("times={}", times), "at least once") || !call.g.ok())
    return;
  Shape wide = call.shape();
  wide.insert(wide.begin() + axis, Extent(1));
  const Value split = call.g.Reshape(x, wide);
  wide[axis] = Extent(times);
  Shape merged = call.shape();
  merged[axis] = merged[axis] * wide[axis];
  call.g.Output("y", call.g.Reshape(call.g.Map("a", {split}, wide), merged));
}

/// [N, C·r², H, W] → [N, C, H·r, W·r], as in super-resolution, or the inverse.
void BuildPixelShuffle(Call& call, bool back) {
  GraphBuilder& g = call.g;
  const Shape x = call.shape();
  const Extent r(call.Whole("factor"));
  const bool sound = x.size() == 4 && r.factor() >= 1;
  const auto channels = sound && !back ? x[1].Divided(r * r) : std::nullopt;
  const auto high = sound && back ? x[2].Divided(r) : std::nullopt;
  const auto wide = sound && back ? x[3].Divided(r) : std::nullopt;
  if (!call.Check(back ? high && wide : channels.has_value(),
                  "factor=" + r.ToString() + " of " + ToString(x),
                  back ? "the factor divides height and width" : "its square divides the channels"))
    return;
  const Value input = call.Input("x", x);
  if (back) {
    const Value split = g.Reshape(input, {x[0], x[1], *high, r, *wide, r});
    return g.Output(
        "y", g.Reshape(g.Transpose(split, {0, 1, 3, 5, 2, 4}), {x[0], x[1] * r * r, *high, *wide}));
  }
  const Value split = g.Reshape(input, {x[0], *channels, r, r, x[2], x[3]});
  g.Output("y", g.Reshape(g.Transpose(split, {0, 1, 4, 2, 5, 3}),
                          {x[0], *channels, x[2] * r, x[3] * r}));
}

/// im2col: the windows of an image as [N, C·R·S, P·Q].
void BuildUnfold(Call& call) {
  GraphBuilder& g = call.g;
  const Shape x = call.shape();
  if (!call.Check(x.size() == 4, "unfold takes N,C,H,W")) return;
  const int64_t size = call.Whole("size");
  const int64_t padding = call.Whole("padding");
  Value y = call.Input("x", x);
  for (int64_t axis = 2; axis < 4 && padding > 0; ++axis)
    y = g.Add(Pad{axis, padding, padding, 0, 0}, {y});
  for (int64_t axis = 2; axis < 6; axis += 2)
    y = g.Add(Window{axis, size, call.Whole("stride"), call.Whole("dilation")}, {y});
  if (!g.ok()) return;
  const Shape cut = g.TypeOf(y).shape;  // N, C, P, R, Q, S
  g.Output("y", g.Reshape(g.Transpose(y, {0, 1, 3, 5, 2, 4}),
                          {x[0], x[1] * cut[3] * cut[5], cut[2] * cut[4]}));
}

/// The fraction with the smallest denominator that is a positive number to 15 digits, by continued
/// fractions: 1.7 is 17 / 10.
std::pair<int64_t, int64_t> FractionOf(double number) {
  constexpr double kDigits = 1e-15;
  constexpr int64_t kLargestPart = int64_t{1} << 24;  // so that products with an index fit
  std::pair<int64_t, int64_t> before = {1, 0};
  std::pair<int64_t, int64_t> best = {static_cast<int64_t>(number), 1};
  double rest = number - std::floor(number);
  const auto error = [&] {
    return std::fabs(static_cast<double>(best.first) / static_cast<double>(best.second) - number);
  };
  while (error() > kDigits * number && rest > 0) {
    const double inverse = 1 / rest;
    const auto whole = static_cast<int64_t>(std::min(inverse, 1e15));
    const std::pair next = {whole * best.first + before.first, whole * best.second + before.second};
    if (std::max(next.first, next.second) > kLargestPart) break;
    before = std::exchange(best, next);
    rest = inverse - std::floor(inverse);
  }
  return best;
}

/// Linear interpolation of an axis from n to m elements: element i of the result is at
/// (2i + 1) / 2f - 1/2 between two elements of x, f the factor, or, with aligned corners, at
/// i (n - 1) / (m - 1). Numerator and denominator are integers, so that every device finds the same
/// neighbours.
void BuildInterpolate(Call& call) {
  GraphBuilder& g = call.g;
  const Shape xs = call.shape();
  if (!call.Check(xs.size() >= 3, "interpolate takes N,C,…")) return;
  Value x = call.Wide(call.Input("x", xs));
  const bool corners = call.Flag("align_corners");
  for (size_t axis = 2; axis < xs.size(); ++axis) {
    const int64_t n = xs[axis].factor();
    const auto m = static_cast<int64_t>(static_cast<double>(n) * call.Real("factor"));
    if (!call.Check(m >= 1, "factor leaves nothing", "n · factor is at least 1")) return;
    // Without corners, pixel i of the result is at (i + 1/2) / factor - 1/2: torch.nn.functional
    // .interpolate divides by the factor it is given, not by the ratio m / n of whole extents.
    const auto [over, under] = FractionOf(call.Real("factor"));
    const std::string numerator = corners ? fmt::format("index(-1) * {}", n - 1)
                                          : fmt::format("maximum((2 * index(-1) + 1) * {} - {}, 0)",
                                                        under, over);
    const int64_t denominator = corners ? std::max<int64_t>(m - 1, 1) : 2 * over;
    const auto table = [&](const std::string& body) {
      return g.Map(fmt::format("let t = {}, low = minimum(floor_div(t, {}), {}) in {}", numerator,
                               denominator, n - 1, body),
                   {}, {Extent(m)});
    };
    const DType dtype = g.TypeOf(x).dtype;
    const Value share = table(
        fmt::format("cast(t - low * {}, {}) / {}", denominator, Name(dtype), denominator));
    const auto beside = static_cast<int64_t>(axis);
    const Value low = g.Add(Gather{beside, 0}, {x, table("low")});
    const Value high = g.Add(Gather{beside, 0},
                             {x, table(fmt::format("minimum(low + 1, {})", n - 1))});
    Shape seen(xs.size() - axis, Extent(1));
    seen[0] = Extent(m);
    x = g.Map("a + c * (b - a)", {low, high, g.Reshape(share, seen)});
  }
  call.Output("y", x);
}

void BuildPad(Call& call) {
  const Value x = call.Input("x", call.shape());
  call.g.Output("y", call.g.Add(Pad{call.Axis(x), call.Whole("low"), call.Whole("high"), 0,
                                    call.Real("value")},
                                {x}));
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
  if (!call.Check(xs.size() >= 3 && factor.factor() >= 1,
                  "upsample takes N,C,… and a factor of at least 1"))
    return;
  Shape split = {xs[0], xs[1]};
  Shape wide = split;
  Shape merged = split;
  for (size_t i = 2; i < xs.size(); ++i) {
    split.insert(split.end(), {xs[i], Extent(1)});
    wide.insert(wide.end(), {xs[i], factor});
    merged.push_back(xs[i] * factor);
  }
  call.g.Output(
      "y",
      call.g.Reshape(call.g.Map("a", {call.g.Reshape(call.Input("x", xs), split)}, wide), merged));
}

void BuildTopK(Call& call) {
  const Value x = call.Input("x", call.shape());
  const auto axis = static_cast<int64_t>(call.shape().size()) - 1;
  if (!call.Check(axis >= 0, "a scalar has nothing to sort")) return;
  if (!call.Check(call.Whole("k") >= 1, "k=" + call.Text("k"), "at least one")) return;
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

/// Layout operators.
void AddRearrangements(std::vector<LibraryOperator>& library) {
  const char* one = "one shape: request.shapes 1024,4096";
  const Attribute axis = {"axis", int64_t{-1}, "the axis"};
  const Attribute rows = {"axis", int64_t{0}, "the axis"};
  library.push_back({"permute",
                     "permute(x) → y",
                     "axes in another order",
                     "one shape: request.shapes 8,512,16,64",
                     {{"order", std::string("acbd"), "x's axes, a to d, in the result's order"}},
                     BuildPermute,
                     true,
                     {{2, 3, 4, 2}}});
  library.push_back({"split",
                     "split(x) → y0, y1, …",
                     "equal parts along an axis",
                     one,
                     {axis, {"parts", int64_t{2}, "number of parts"}},
                     BuildSplit,
                     true,
                     {{3, 6}}});
  library.push_back({"slice",
                     "slice(x) → y",
                     "a range along an axis",
                     one,
                     {axis,
                      {"start", int64_t{0}, "first index"},
                      {"stop", int64_t{2}, "index behind the last"},
                      {"step", int64_t{1}, "step between indices"}},
                     BuildSlice,
                     true,
                     {{3, 5}}});
  library.push_back({"stack",
                     "stack(a, b) → y",
                     "two tensors along a new axis",
                     one,
                     {rows},
                     BuildStack,
                     true,
                     {{3, 5}}});
  library.push_back({"roll",
                     "roll(x) → y",
                     "elements shifted along an axis, cyclically",
                     one,
                     {axis, {"shift", int64_t{1}, "number of elements"}},
                     BuildRoll,
                     true,
                     {{3, 5}}});
  library.push_back({"tile",
                     "tile(x) → y",
                     "a tensor repeated along an axis",
                     one,
                     {axis, {"times", int64_t{2}, "number of repetitions"}},
                     BuildTile,
                     true,
                     {{3, 5}}});
  library.push_back({"pixel_shuffle",
                     "pixel_shuffle(x[N, C, H, W]) → y",
                     "channels become pixels",
                     "N,C,H,W: request.shapes 8,256,64,64",
                     {{"factor", int64_t{2}, "pixels along each axis"}},
                     [](Call& call) { BuildPixelShuffle(call, false); },
                     true,
                     {{1, 8, 2, 3}}});
  library.push_back({"pixel_unshuffle",
                     "pixel_unshuffle(x[N, C, H, W]) → y",
                     "pixels become channels",
                     "N,C,H,W: request.shapes 8,64,128,128",
                     {{"factor", int64_t{2}, "pixels along each axis"}},
                     [](Call& call) { BuildPixelShuffle(call, true); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"unfold",
                     "unfold(x[N, C, H, W]) → y[N, C · size², windows]",
                     "windows of an image as columns",
                     "N,C,H,W: request.shapes 8,64,56,56",
                     {{"size", int64_t{3}, "extent of the windows"},
                      {"stride", int64_t{1}, "step of the windows"},
                      {"padding", int64_t{0}, "elements added on each side"},
                      {"dilation", int64_t{1}, "distance between the elements of a window"}},
                     BuildUnfold,
                     true,
                     {{1, 2, 4, 5}}});
  library.push_back({"interpolate",
                     "interpolate(x[N, C, …]) → y",
                     "another resolution, linearly between neighbours",
                     "N,C,…: request.shapes 8,64,56,56",
                     {{"factor", 2.0, "of every spatial extent, rounded down"},
                      {"align_corners", false, "first and last elements keep their positions"}},
                     BuildInterpolate,
                     true,
                     {{1, 2, 3, 4}}});
}

/// Operators that also fill in, interpolate or sort.
void AddOtherMoves(std::vector<LibraryOperator>& library) {
  const char* one = "one shape: request.shapes 1024,4096";
  const Attribute axis = {"axis", int64_t{-1}, "the axis"};
  library.push_back({"transpose",
                     "transpose(x) → y",
                     "two axes swapped",
                     one,
                     {{"axis0", int64_t{-2}, "one axis"}, {"axis1", int64_t{-1}, "the other"}},
                     BuildTranspose,
                     true,
                     {{2, 3, 4}}});
  library.push_back({"pad",
                     "pad(x) → y",
                     "a constant added before and behind an axis",
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
                     "two tensors joined along an axis",
                     "two shapes: request.shapes 64,1024 64,512",
                     {axis},
                     BuildConcat,
                     true,
                     {{3, 5}, {3, 2}}});
  library.push_back(
      {"flip", "flip(x) → y", "an axis backwards", one, {axis}, BuildFlip, true, {{3, 5}}});
  library.push_back({"repeat_interleave",
                     "repeat_interleave(x) → y",
                     "every element repeated",
                     one,
                     {axis, {"times", int64_t{2}, "number of repetitions"}},
                     BuildRepeat,
                     true,
                     {{3, 5}}});
  library.push_back({"upsample_nearest",
                     "upsample_nearest(x[N, C, …]) → y",
                     "every pixel repeated",
                     "N,C,…: request.shapes 8,64,28,28",
                     {{"factor", int64_t{2}, "repetitions along each axis"}},
                     BuildUpsample,
                     true,
                     {{1, 2, 3, 2}}});
  library.push_back(
      {"topk",
       "topk(x) → values, indices",
       "the k largest or smallest along the last axis, in order",
       one,
       {{"k", int64_t{2}, "number of elements"}, {"largest", true, "largest, else smallest"}},
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
                     {{"upper", false, "above the diagonal"},
                      {"diagonal", int64_t{0}, "number of the diagonal; 0 is the main one"}},
                     BuildTriangle,
                     true,
                     {{3, 5}}});
}

}  // namespace

void AddLayoutOperations(std::vector<LibraryOperator>& library) {
  AddRearrangements(library);
  AddOtherMoves(library);
}

}  // namespace atunner::graph
