#include "atunner/graph/library/library.h"

#include <algorithm>

#include "atunner/base/closest_name.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/expression_text.h"
#include "atunner/graph/gradient/gradient.h"
#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {

Shape Call::FixedShape(size_t i) const {
  const auto& shapes = request_.shapes;
  const size_t given = std::min(i, shapes.size() - 1);
  shapes_used_ = std::max(shapes_used_, given + 1);
  return {shapes[given].begin(), shapes[given].end()};
}

Shape Call::shape(size_t i) const {
  Shape shape = FixedShape(i);
  const std::vector<int64_t>& first = request_.shapes[0];
  const bool opens = request_.open_rows && shape.size() >= 2 && !first.empty() &&
                     shape[0].factor() == first[0];
  if (opens) shape[0] = Extent::Symbol(kOpenRows);
  return shape;
}

double Call::Real(std::string_view name) const {
  return ToDouble(request_.attributes.find(name)->second);
}
std::string Call::Text(std::string_view name) const {
  return atunner::ToString(request_.attributes.find(name)->second);
}

int64_t Call::Axis(Value x, std::string_view name) {
  const auto rank = static_cast<int64_t>(g.TypeOf(x).rank());
  int64_t axis = Whole(name);
  const bool inside = axis >= -rank && axis < rank;
  if (!Check(inside,
             std::string(name) + "=" + Text(name) + " of a tensor of rank " + std::to_string(rank)))
    return 0;
  return axis < 0 ? axis + rank : axis;
}

Value Call::Fail(std::string what, std::string hint) {
  return g.Fail({ErrorCode::kInvalidInput, std::move(what), {}, std::move(hint)});
}

bool Call::Check(bool condition, const std::string& what, const std::string& hint) {
  if (!condition) Fail(what, hint);
  return condition;
}

std::string WithAttributes(std::string body, const std::vector<Attribute>& attributes,
                           const Call& call) {
  for (const Attribute& attribute : attributes) {
    const std::string place = "$" + attribute.name;
    const std::string value = "(" + PrintNumber(call.Real(attribute.name)) + ")";
    for (size_t at = body.find(place); at != std::string::npos;
         at = body.find(place, at + value.size()))
      body.replace(at, place.size(), value);
  }
  return body;
}

const std::vector<LibraryOperator>& Library() {
  static const std::vector<LibraryOperator> library = [] {
    std::vector<LibraryOperator> all;
    for (const auto add :
         {AddPointwise, AddReductions, AddNorms, AddContractions, AddTransformerParts, AddWindows,
          AddLosses, AddIndexing, AddLayoutOperations})
      add(all);
    std::ranges::sort(all, {}, &LibraryOperator::name);
    return all;
  }();
  return library;
}

std::optional<Found> FindInLibrary(std::string_view name) {
  constexpr std::string_view kBackward = "_backward";
  std::string wanted(name);
  std::ranges::replace(wanted, '-', '_');
  const auto find = [](const std::string& text) -> const LibraryOperator* {
    const auto at = std::ranges::lower_bound(Library(), text, {}, &LibraryOperator::name);
    return at != Library().end() && at->name == text ? &*at : nullptr;
  };
  if (const auto* op = find(wanted)) return Found{op, false};
  if (!wanted.ends_with(kBackward)) return std::nullopt;
  const auto* op = find(wanted.substr(0, wanted.size() - kBackward.size()));
  if (op == nullptr || !op->differentiable) return std::nullopt;
  return Found{op, true};
}

namespace {

Status CheckShapes(const LibraryOperator& op, const Request& request, const std::string& help) {
  const std::string where = "request.shapes of " + op.name;
  if (request.shapes.empty()) return Invalid("no shape given", where, help);
  for (const auto& shape : request.shapes) {
    if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 1; }))
      return Invalid("every dimension must be at least 1", where, help);
  }
  return {};
}

/// The request with the fallbacks of attributes that it lacks.
Result<Request> Complete(const Found& found, const Request& request) {
  Request full = request;
  std::vector<std::string> names;
  std::vector<Attribute> attributes = found.op->attributes;
  if (found.backward) attributes.push_back(kWithRespectTo);
  for (const Attribute& attribute : attributes) {
    full.attributes.try_emplace(attribute.name, attribute.fallback);
    names.push_back(attribute.name);
  }
  for (const auto& [name, value] : request.attributes) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return Invalid("unknown attribute '" + name + "'", "request.attributes of " + found.op->name,
                   DidYouMean(name, names));
  }
  return full;
}

Result<ValidGraph> BuildForward(const LibraryOperator& op, Request request,
                                const std::string& help) {
  const Range rows{1, request.shapes[0].empty() ? 1 : request.shapes[0][0]};
  const bool open_rows = request.open_rows;
  Call call(op.name, std::move(request));
  if (open_rows) ATUNNER_RETURN_IF_ERROR(call.g.Symbol(kOpenRows, rows));
  op.build(call);
  auto graph = std::move(call.g).Finish();
  if (!graph) {
    Error error = graph.error();
    error.where = op.name;
    // Nodes are often called like the operator, which need not be said twice.
    if (error.what.starts_with(op.name + ": ")) error.what.erase(0, op.name.size() + 2);
    error.hint += (error.hint.empty() ? "" : "; ") + help;
    return std::unexpected(std::move(error));
  }
  if (call.shapes_used() < call.shapes()) {
    return Invalid(std::to_string(call.shapes()) + " shapes are given, it takes " +
                       std::to_string(call.shapes_used()),
                   "request.shapes of " + op.name, help);
  }
  return graph;
}

}  // namespace

Result<ValidGraph> Build(const Found& found, const Request& request) {
  const LibraryOperator& op = *found.op;
  const std::string help = "give " + op.shape_help;
  ATUNNER_RETURN_IF_ERROR(CheckShapes(op, request, help));
  ATUNNER_TRY(const Request full, Complete(found, request));
  ATUNNER_TRY(const ValidGraph graph, BuildForward(op, full, help));
  if (!found.backward) return Simplify(graph);
  ATUNNER_TRY(const ValidGraph backward, Gradient(graph));
  const std::string wrt = atunner::ToString(full.attributes.at(kWithRespectTo.name));
  if (wrt == "all") return Simplify(backward);
  ATUNNER_TRY(const ValidGraph part, OnlyOutput(backward, "d" + wrt));
  return Simplify(part);
}

}  // namespace atunner::graph
