#include "atunner/cuda_text/element_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/index_text.h"

namespace atunner::graph {
namespace {

using Lanes = Coordinate::Lanes;

/// The subscript of the arrays that Options::ahead fills.
constexpr std::string_view kItem = "[item]";
const Coordinate kZero{.text = "0", .multiple = 0};

/// (before at after), for example (at * 2 + 1); the lanes of the result are not neighbours.
Coordinate Changed(const Coordinate& at, const std::string& before, const std::string& after) {
  const bool same = at.lanes == Lanes::kSame;
  return {"(" + before + (same ? at.text : at.OfLane()) + after + ")",
          same ? Lanes::kSame : Lanes::kAny, 1, at.depth};
}

/// The coordinate at + distance.
Coordinate Shifted(const Coordinate& at, int64_t distance) {
  if (distance == 0) return at;
  if (at.text == "0" && at.lanes == Lanes::kSame)
    return {std::to_string(distance), Lanes::kSame, 1, at.depth};
  const std::string text = fmt::format("({} {} {})", at.text, distance < 0 ? '-' : '+',
                                       std::abs(distance));
  return {text, at.lanes, std::gcd(at.multiple, distance), at.depth};
}

int DepthOf(const Coordinate& at) { return std::max(at.depth, at.lanes == Lanes::kSame ? 0 : 1); }

bool AllSame(const Coordinates& at) {
  return std::ranges::all_of(at, [](const Coordinate& c) { return c.lanes == Lanes::kSame; });
}

/// Some neighbouring axes of each of two shapes, with equally many elements.
struct ReshapedPart {
  size_t from_begin, to_begin;
  Shape from, to;
};

/// Splits a reshape into its smallest independent parts, in order: [2, 3, 8] → [6, 2, 4] consists
/// of [2, 3] → [6] and [8] → [2, 4].
std::vector<ReshapedPart> PartsOf(const Shape& from, const Shape& to) {
  std::vector<ReshapedPart> parts;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    ReshapedPart part{i, j, {}, {}};
    if (i < from.size()) part.from.push_back(from[i++]);
    if (j < to.size()) part.to.push_back(to[j++]);
    while (!(ElementCount(part.from) == ElementCount(part.to))) {
      const Extent left = ElementCount(part.from);
      const Extent right = ElementCount(part.to);
      const bool same_symbols = left.symbols().size() == right.symbols().size();
      const bool less = same_symbols ? left.factor() < right.factor()
                                     : left.symbols().size() < right.symbols().size();
      if ((less && i < from.size()) || j == to.size())
        part.from.push_back(from[i++]);
      else
        part.to.push_back(to[j++]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::optional<size_t> OnlyAxis(const Shape& shape) {
  const auto larger = [](const Extent& extent) { return !extent.one(); };
  if (std::ranges::count_if(shape, larger) != 1) return std::nullopt;
  return std::ranges::find_if(shape, larger) - shape.begin();
}

/// The row-major index of the element at `at` in a shape; further coordinates are ignored.
Coordinate LinearIndex(const Shape& shape, const Coordinates& at) {
  Coordinate number = kZero;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].one()) continue;
    const Coordinate& c = at[axis];
    const std::string stride = StrideOf(shape, axis);
    const bool first = number.text == "0";
    const bool next = c.lanes == Lanes::kNext && stride == "1" && number.lanes == Lanes::kSame;
    const bool same = c.lanes == Lanes::kSame && number.lanes == Lanes::kSame;
    const std::string place = next ? c.text : c.OfLane();
    const std::string term = stride == "1" ? place : fmt::format("{} * ({})", place, stride);
    number = {first ? term : number.OfLane() + " + " + term,
              same   ? Lanes::kSame
              : next ? Lanes::kNext
                     : Lanes::kAny,
              first ? c.multiple : std::gcd(c.multiple, shape[axis].factor()),
              std::max(number.depth, c.depth)};
  }
  number.text = "(" + number.text + ")";
  return number;
}

/// The coordinate along `axis` of the element with this row-major index. Lanes stay neighbours if
/// no vector crosses the end of a row.
Coordinate CoordinateOf(const Coordinate& number, const Shape& shape, size_t axis, int64_t vector) {
  const Extent stride = ElementCount({shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()});
  const Shape outer(shape.begin(), shape.begin() + static_cast<int64_t>(axis));
  std::string after = stride.one() ? "" : fmt::format(" / ({})", stride.ToString());
  if (!ElementCount(outer).one()) after += fmt::format(" % ({})", shape[axis].ToString());
  if (after.empty()) return number;
  const bool whole = number.lanes == Lanes::kNext && number.multiple % vector == 0;
  const std::string text = "(" + number.text + after + ")";
  if (whole && stride.constant() && stride.factor() % vector == 0)
    return {text, Lanes::kSame, 1, number.depth};
  if (whole && stride.one() && shape[axis].factor() % vector == 0)
    return {text, Lanes::kNext, std::gcd(number.multiple, shape[axis].factor()), number.depth};
  return Changed(number, "", after);
}

/// The coordinates of an operand of this shape that is broadcast to a result with the coordinates
/// `at`.
Coordinates Broadcast(const Shape& shape, const Coordinates& at) {
  Coordinates inner(at.end() - static_cast<int64_t>(shape.size()), at.end());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].one()) inner[axis] = kZero;
  }
  return inner;
}

}  // namespace

ElementText::ElementText(const ValidGraph& graph, Options options)
    : ElementText(
          graph,
          [&graph](NodeId id) -> std::optional<Stored> {
            const Node& node = graph.node(id);
            if (!node.As<Input>()) return std::nullopt;
            return Stored{"in_" + node.name, std::string(CudaName(node.type.dtype))};
          },
          std::move(options)) {}

ElementText::ElementText(const ValidGraph& graph,
                         std::function<std::optional<Stored>(NodeId)> stored, Options options)
    : graph_(graph), stored_(std::move(stored)), options_(std::move(options)), scopes_(2) {}

ElementText::Value ElementText::Of(NodeId id, const Coordinates& at) {
  const auto known = known_nodes_.find(id);
  if (known == known_nodes_.end()) return Compute(id, at);
  failed_ = failed_ || !(known->second.second == at);
  return known->second.first;
}

ElementText::Value ElementText::Compute(NodeId id, const Coordinates& at) {
  if (const auto stored = stored_(id)) return Load(id, *stored, at);
  const Node& node = graph_.node(id);
  if (const auto* constant = node.As<Constant>()) {
    if (constant->values.size() > 1) return Load(id, Table(id, *constant), at);
    return {CudaLiteral(node.type.dtype, constant->values[0], options_.wide), 0};
  }
  if (const auto* map = node.As<Map>()) return MapAt(node, *map, at);
  if (const auto* reduce = node.As<Reduce>()) return Reduced(node, *reduce, at);
  if (const auto* contract = node.As<Contract>()) return Contracted(node, *contract, at);
  if (const auto* fold = node.As<Fold>()) return Folded(node, *fold, at);
  if (const auto* gather = node.As<Gather>()) return Gathered(node, *gather, at);
  if (const auto* concat = node.As<Concat>()) return Concatenated(node, concat->axis, at);
  if (const auto* pad = node.As<Pad>()) return Padded(node, *pad, at);
  return Relocated(node, at);
}

ElementText::Offset ElementText::OffsetOf(const TensorType& type, const Coordinates& at) const {
  Offset offset;
  offset.vectored = options_.vector > 1 && !at.empty() && at.back().lanes == Lanes::kNext &&
                    at.back().multiple % options_.vector == 0 &&
                    type.shape.back().factor() % options_.vector == 0 && valid_.depth == 0;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (type.shape[axis].one()) continue;
    const bool last = axis + 1 == at.size();
    offset.depth = std::max(offset.depth, DepthOf(at[axis]));
    offset.vectored = offset.vectored && at[axis].depth == 0 &&
                      (last || at[axis].lanes == Lanes::kSame);
    const std::string stride = StrideOf(type.shape, axis);
    const auto append = [&](std::string& sum, const std::string& index) {
      sum += (sum.empty() ? "" : " + ") +
             (stride == "1" ? index : fmt::format("{} * {}", index, stride));
    };
    append(offset.first, at[axis].text);
    append(offset.each, at[axis].OfLane());
  }
  if (offset.each.empty()) offset.first = offset.each = "0";
  if (!numbered_.text.empty() && at == numbered_.at && type.shape == numbered_.shape &&
      valid_.text.empty()) {
    offset.first = numbered_.text;
    offset.vectored = options_.vector > 1;
  }
  return offset;
}

ElementText::Value ElementText::Load(NodeId id, const Stored& stored, const Coordinates& at) {
  const TensorType& type = TypeOf(id);
  const Offset offset = OffsetOf(type, at);
  const std::string to = Arithmetic(type.dtype);
  const std::string name = graph_.node(id).name.empty() ? "v" + std::to_string(id)
                                                        : graph_.node(id).name;
  if (offset.vectored)
    return Named(to, fmt::format("get<{}>({}, lane)", to, LoadVector(stored, offset.first, name)),
                 1, name);
  const std::string load = fmt::format("load<{}>({}[{}])", to, stored.pointer, offset.each);
  const std::string guarded = valid_.text.empty()
                                  ? load
                                  : fmt::format("{} ? {} : ({})0", valid_.text, load, to);
  return Named(to, guarded, std::max(offset.depth, valid_.depth), name);
}

std::string ElementText::LoadVector(const Stored& stored, const std::string& first,
                                    const std::string& stem) {
  const std::string what = fmt::format("vector {} {} {}", stored.pointer, first, valid_.text);
  auto [known, added] = scopes_[0].known.try_emplace(what, "");
  if (!added) return known->second;
  const std::string vector = fmt::format("Vector<{}>", stored.type);
  known->second = NewName(0, vector, stem);
  if (!IsAhead(0)) Line(0, fmt::format("{} {};", vector, known->second));
  const std::string read = fmt::format("read({}, {} + {});", known->second, stored.pointer, first);
  Line(0, valid_.text.empty()
              ? read
              : fmt::format("if ({}) {} else clear({});", valid_.text, read, known->second));
  return known->second;
}

ElementText::Stored ElementText::Table(NodeId id, const Constant& constant) {
  const DType dtype = TypeOf(id).dtype;
  const Stored table{fmt::format("table{}", id), Arithmetic(dtype)};
  if (!scopes_[0].known.try_emplace(table.pointer, "").second) return table;
  std::string values;
  for (Cell value : constant.values)
    values += (values.empty() ? "" : ", ") + CudaLiteral(dtype, value, options_.wide);
  (options_.ahead ? arrays_ : scopes_[0].text) += fmt::format(
      "{}static const __align__(16) {} {}[] = {{{}}};\n", options_.indent, table.type,
      table.pointer, values);
  return table;
}

ElementText::Value ElementText::MapAt(const Node& node, const Map& map, const Coordinates& at) {
  CudaContext context{.wide = options_.wide,
                      .operands = {},
                      .place = {},
                      .temporary = {},
                      .narrow = options_.narrow};
  int depth = 0;
  for (NodeId operand : node.operands) {
    const Value value = Of(operand, Broadcast(TypeOf(operand).shape, at));
    depth = std::max(depth, value.depth);
    context.operands.push_back(value.text);
  }
  for (const ScalarNode& scalar : map.body.nodes()) {
    if (scalar.op == ScalarOp::kIndex)
      depth = std::max(depth, DepthOf(at[at.size() + scalar.number]));
  }
  context.place = [&](ScalarOp op, int axis) {
    const size_t place = at.size() + axis;
    return "(long long)(" +
           (op == ScalarOp::kIndex ? at[place].OfLane() : node.type.shape[place].ToString()) + ")";
  };
  context.temporary = fmt::format("t{}_", names_++);
  const CudaText text = ToCuda(map.body, context);
  for (const std::string& statement : text.statements) Line(depth, statement);
  return Named(Arithmetic(node.type.dtype), text.value, depth,
               node.name.empty() ? "value" : node.name);
}

/// Layout operations of one operand: the element is an element of the operand at other coordinates.
ElementText::Value ElementText::Relocated(const Node& node, const Coordinates& at) {
  const NodeId x = node.operands[0];
  Coordinates from = at;
  if (const auto* transpose = node.As<Transpose>()) {
    for (size_t i = 0; i < at.size(); ++i) from[transpose->order[i]] = at[i];
  } else if (const auto* slice = node.As<Slice>()) {
    Coordinate& c = from[slice->axis];
    c = slice->step == 1 ? Shifted(c, slice->start)
                         : Changed(c, "", fmt::format(" * {} + {}", slice->step, slice->start));
  } else if (const auto* reverse = node.As<Reverse>()) {
    const std::string last = fmt::format("({}) - 1 - ", node.type.shape[reverse->axis].ToString());
    from[reverse->axis] = Changed(at[reverse->axis], last, "");
  } else if (const auto* window = node.As<Window>()) {
    const Coordinate& place = at[window->axis];
    const Coordinate& inside = at[window->axis + 1];
    const bool same = place.lanes == Lanes::kSame && inside.lanes == Lanes::kSame;
    const std::string text = fmt::format("({} * {} + {} * {})", place.OfLane(), window->stride,
                                         inside.OfLane(), window->dilation);
    from.erase(from.begin() + window->axis + 1);
    from[window->axis] = {text, same ? Lanes::kSame : Lanes::kAny, 1,
                          std::max(place.depth, inside.depth)};
  } else {
    from = Reshaped(TypeOf(x).shape, node.type.shape, at);
  }
  return Of(x, from);
}

/// The coordinates of the operand's element of a reshape. An axis that both shapes have keeps its
/// coordinate; the coordinates of others are computed from the index in their part of the shape.
Coordinates ElementText::Reshaped(const Shape& from, const Shape& to, const Coordinates& at) const {
  Coordinates result(from.size(), kZero);
  for (const ReshapedPart& part : PartsOf(from, to)) {
    const auto axis = OnlyAxis(part.from);
    const auto other = OnlyAxis(part.to);
    if (axis && other) {
      result[part.from_begin + *axis] = at[part.to_begin + *other];
      continue;
    }
    const Coordinate number = LinearIndex(
        part.to, {at.begin() + static_cast<int64_t>(part.to_begin), at.end()});
    for (size_t i = 0; i < part.from.size(); ++i) {
      if (!part.from[i].one())
        result[part.from_begin + i] = CoordinateOf(number, part.from, i, options_.vector);
    }
  }
  return result;
}

ElementText::Value ElementText::If(const Value& condition, const std::function<Value()>& make) {
  const Value before = valid_;
  valid_ = before.text.empty() ? condition
                               : Value{before.text + " && " + condition.text,
                                       std::max(before.depth, condition.depth)};
  const Value made = make();
  valid_ = before;
  return made;
}

ElementText::Value ElementText::Concatenated(const Node& node, int64_t axis,
                                             const Coordinates& at) {
  const Coordinate& c = at[axis];
  std::string text;
  int depth = 0;
  int64_t start = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const int64_t extent = TypeOf(node.operands[i]).shape[axis].factor();
    const bool last = i + 1 == node.operands.size();
    // If no vector crosses the border between two operands, all lanes have one condition.
    const bool whole = c.lanes == Lanes::kNext && c.multiple % options_.vector == 0 &&
                       start % options_.vector == 0 &&
                       (last || (start + extent) % options_.vector == 0);
    const std::string place = whole ? c.text : c.OfLane();
    const int condition_depth = whole ? c.depth : DepthOf(c);
    const std::string inside = last         ? fmt::format("{} >= {}", place, start)
                               : start == 0 ? fmt::format("{} < {}", place, extent)
                                            : fmt::format("({0} >= {1} && {0} < {2})", place, start,
                                                          start + extent);
    Coordinates inner = at;
    inner[axis] = Shifted(c, -start);
    const Value value = If({inside, condition_depth}, [&] { return Of(node.operands[i], inner); });
    depth = std::max({depth, value.depth, condition_depth});
    text += last ? value.text : fmt::format("{} < {} ? {} : ", place, start + extent, value.text);
    start += extent;
  }
  return Named(Arithmetic(node.type.dtype), text, depth, "joined");
}

ElementText::Value ElementText::Padded(const Node& node, const Pad& pad, const Coordinates& at) {
  const Extent& extent = TypeOf(node.operands[0]).shape[pad.axis];
  const Coordinate moved = Shifted(at[pad.axis], -pad.low);
  const int64_t v = options_.vector;
  const bool whole = moved.lanes == Lanes::kNext && moved.multiple % v == 0 &&
                     extent.factor() % v == 0 && pad.inner == 0;
  const Value place{whole ? moved.text : moved.OfLane(), whole ? moved.depth : DepthOf(moved)};
  Coordinates inner = at;
  inner[pad.axis] = pad.inner == 0 ? moved
                                   : Changed(moved, "", fmt::format(" / {}", pad.inner + 1));
  std::string condition = fmt::format(
      "{0} >= 0 && {0} < ({1})", place.text,
      pad.inner == 0 ? extent.ToString()
                     : fmt::format("{} * {}", extent.ToString(), pad.inner + 1));
  if (pad.inner > 0) condition += fmt::format(" && {} % {} == 0", place.text, pad.inner + 1);
  const Value inside = Named("bool", condition, place.depth, "inside");
  const Value value = If(inside, [&] { return Of(node.operands[0], inner); });
  const std::string border = CudaLiteral(node.type.dtype, CellOf(node.type.dtype, pad.value),
                                         options_.wide);
  return Named(Arithmetic(node.type.dtype),
               fmt::format("{} ? {} : {}", inside.text, value.text, border),
               std::max(value.depth, inside.depth), "padded");
}

ElementText::Value ElementText::Gathered(const Node& node, const Gather& gather,
                                         const Coordinates& at) {
  const Shape& x = TypeOf(node.operands[0]).shape;
  const auto rest = static_cast<int64_t>(TypeOf(node.operands[1]).rank()) - gather.batch;
  Coordinates places(at.begin(), at.begin() + gather.batch);
  places.insert(places.end(), at.begin() + gather.axis, at.begin() + gather.axis + rest);
  const Value place = Of(node.operands[1], places);
  const Value clamped = Named(options_.index,
                              fmt::format("max(0ll, min((long long){}, ({}) - 1ll))", place.text,
                                          x[gather.axis].ToString()),
                              place.depth, "place");
  Coordinates from(at.begin(), at.begin() + gather.axis);
  from.push_back({clamped.text, AllSame(places) ? Lanes::kSame : Lanes::kAny, 1, clamped.depth});
  from.insert(from.end(), at.begin() + gather.axis + rest, at.end());
  return Of(node.operands[0], from);
}

ElementText::Value ElementText::Named(const std::string& type, const std::string& text, int depth,
                                      const std::string& stem) {
  const bool of_array = text.ends_with(kItem);
  const bool name_already = std::ranges::all_of(
      std::string_view(text).substr(0, text.size() - (of_array ? kItem.size() : 0)),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
  const bool stays = of_array || !IsAhead(depth);
  if (name_already && stays && !std::isdigit(static_cast<unsigned char>(text[0])))
    return {text, depth};
  for (int outer = 0; outer <= depth; ++outer) {
    const auto known = scopes_[outer].known.find(type + text);
    if (known != scopes_[outer].known.end()) return {known->second, outer};
  }
  std::string name = NewName(depth, type, stem);
  scopes_[depth].known[type + text] = name;
  Line(depth, fmt::format("{}{} = {};", IsAhead(depth) ? "" : "const " + type + " ", name, text));
  return {name, depth};
}

std::string ElementText::NewName(int depth, const std::string& type, const std::string& stem) {
  std::string name = fmt::format("{}_{}", stem, names_++);
  if (!IsAhead(depth)) return name;
  arrays_ += fmt::format("    {} {}[ITEMS];\n", type, name);
  return name + std::string(kItem);
}

void ElementText::Line(int depth, const std::string& line) {
  (IsAhead(depth) ? ahead_ : scopes_[depth].text) += Indent(depth) + line + "\n";
}

std::string ElementText::Indent(int depth) const {
  return options_.indent + std::string(static_cast<size_t>(2 * depth), ' ');
}

std::string ElementText::Arithmetic(DType dtype) const {
  return CudaArithmetic(dtype, options_.wide);
}

std::string ElementFunction(const ValidGraph& graph, std::string_view name, NodeId from,
                            std::string_view from_type, NodeId to, std::string_view to_type) {
  ElementText elements(graph, {.indent = "  "});
  elements.Know(from, {"x", 0}, {});
  const std::string value = elements.Of(to, Coordinates(graph.node(to).type.rank(), {.text = "0"}))
                                .text;
  return fmt::format(R"(DEVICE {0} {1}(const {2}& element) {{
  const {3} x = load<{3}>(element);
{4}  {0} result;
  store(result, {5});
  return result;
}}
)",
                     to_type, name, from_type, CudaArithmetic(graph.node(from).type.dtype, false),
                     elements.Scope(0), value);
}

}  // namespace atunner::graph
