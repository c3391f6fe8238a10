// Products inside of graphs: matrices, or many of them, of which one may be a triangle, and what a map makes of the
// product (scales, a bias, an activation).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "atunner/codegen/family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/matrix_product.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/plain_kernels.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;

bool Serves(const MatrixProduct& product, DType sums) {
  const auto half = [](DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; };
  const auto whole = [](DType type) { return type == DType::kInt8 || type == DType::kUInt8; };
  const DType a = product.a.dtype;
  const DType b = product.b.dtype;
  const bool single = product.c.dtype == DType::kFloat32;
  if (half(a)) return a == b && (single || product.c.dtype == a);
  if (a == DType::kFloat32) return a == b && single;
  if (!(single || half(product.c.dtype)) || !product.b_transposed || SizeOf(a) != 1 || SizeOf(b) != 1) return false;
  if (product.triangle != 0) return false;
  return IsFloat(a) ? IsFloat(b) && SizeOf(sums) > 1 : whole(a) && whole(b) && sums == DType::kInt32;
}

/// The axes of a contraction by what they are in a product: letters of its equation.
struct Axes {
  std::string batch, m, n, k;
  bool a_batched = false, b_transposed = false;
  bool operator==(const Axes&) const = default;
};

std::string Without(std::string text, const std::string& letters) {
  std::erase_if(text, [&](char letter) { return letters.contains(letter); });
  return text;
}

/// nullopt where operands are not [batch, m, k] and [batch, k, n] or [batch, n, k], each of these being neighbouring
/// axes in one order throughout. Axes of one element, `ones`, may be anywhere.
std::optional<Axes> AxesOf(std::string a, std::string b, std::string c, const std::string& ones) {
  for (std::string* letters : {&a, &b, &c}) *letters = Without(*letters, ones);
  const bool rows = std::ranges::any_of(c, [&](char letter) { return !b.contains(letter); });
  Axes axes;
  for (const char letter : c) {
    const bool in_a = a.contains(letter), in_b = b.contains(letter);
    const bool first = axes.m.empty() && axes.n.empty();
    if (first && in_b && (in_a || rows))
      axes.batch += letter;
    else
      (in_a ? axes.m : axes.n) += letter;
  }
  axes.a_batched = !axes.batch.empty() && a.contains(axes.batch[0]);
  axes.k = Without(a, axes.batch + axes.m);
  axes.b_transposed = b == axes.batch + axes.n + axes.k && b != axes.batch + axes.k + axes.n;
  const bool fits = c == axes.batch + axes.m + axes.n && a == (axes.a_batched ? axes.batch : "") + axes.m + axes.k &&
                    (axes.b_transposed || b == axes.batch + axes.k + axes.n) && !axes.k.empty() && !axes.n.empty();
  return fits ? std::optional(axes) : std::nullopt;
}

/// What is multiplied and how it lies: the axes of the result by their letters.
struct ProductForm {
  ValidGraph graph;
  NodeId product;
  Axes axes;
  std::string letters;  ///< of the result's axes
  MatrixProduct parts;
  NodeId twin = -1;  ///< another product of the first operand, if any, which lies as this one does

  const graph::Shape& shape() const { return graph.node(product).type.shape; }
  /// Elements of the result's axes of these letters.
  graph::Extent Count(const std::string& some) const {
    graph::Extent count(1);
    for (size_t axis = 0; axis < letters.size(); ++axis) {
      if (some.contains(letters[axis])) count = count * shape()[axis];
    }
    return count;
  }
};

/// An input as an operand of the product: as it lies, or one side of its diagonal.
struct Factor {
  const Node* input = nullptr;
  int64_t triangle = 0;
};

/// 1 or 2 (matrix_product.h) for a map of a matrix that is zero on one side of the diagonal.
int64_t TriangleOf(const Node& map, const graph::TensorType& type) {
  const char* const sides[] = {"select(index(-1) <= index(-2), a, 0)", "select(index(-1) >= index(-2), a, 0)"};
  const graph::TensorType like{type.dtype, graph::Shape(type.rank(), graph::Extent(2))};  // expressions know no extents
  for (int64_t side = 1; side <= 2; ++side) {
    graph::GraphBuilder builder("triangle");
    const graph::Value value = builder.Map(sides[side - 1], {builder.Input("a", like)});
    if (builder.ok() && builder.NodeOf(value).As<graph::Map>()->body == map.As<graph::Map>()->body) return side;
  }
  return 0;
}

Factor FactorOf(const ValidGraph& graph, NodeId id) {
  const Node* node = &graph.node(id);
  // Another shape of the same elements: they lie in the same order.
  while (node->As<graph::Reshape>()) node = &graph.node(node->operands[0]);
  if (node->As<graph::Input>()) return {node, 0};
  if (!node->As<graph::Map>() || node->operands.size() != 1 || node != &graph.node(id)) return {};
  const Node& input = graph.node(node->operands[0]);
  const int64_t triangle = input.As<graph::Input>() ? TriangleOf(*node, input.type) : 0;
  return triangle == 0 ? Factor{} : Factor{&input, triangle};
}

/// Writes the map that takes the product, operand by operand: what differs by row, by column, or by both.
class FinishWriter {
 public:
  FinishWriter(const ProductForm& form, NodeId result, const std::vector<NodeId>& inputs, bool narrow)
      : form_(form), graph_(form.graph), result_(graph_.node(result)), inputs_(inputs), narrow_(narrow) {}

  /// Of a column's values, where Run() has been.
  int64_t ColumnBytes() const { return column_.Bytes(); }
  bool HasElements() const { return element_.count > 0; }
  std::string Run() {
    for (size_t i = 0; i < result_.operands.size(); ++i) Take(result_.operands[i], fmt::format("v{}", i));
    const graph::CudaText value = graph::ToCuda(result_.As<graph::Map>()->body, Context());
    std::string apply;
    for (const std::string& statement : value.statements) apply += "    " + statement + "\n";
    for (NodeId id : inputs_) {
      const std::string name = "in_" + graph_.node(id).name;
      AddMember(fmt::format("const {}* __restrict__", CudaName(graph_.node(id).type.dtype)), name, name);
    }
    for (const char* size : {"finish_rows", "finish_columns"}) AddMember("long long", size, size);
    for (const auto& [symbol, range] : graph_.symbols()) AddMember("long long", symbol, "size_" + symbol);
    if (form_.twin >= 0) parameters_ += ", const __grid_constant__ CUtensorMap twin";
    const std::string text = fmt::format(
        R"(struct Finish {{
  static constexpr int SUMS = {}, COLUMN_BYTES = {};
  static constexpr bool ELEMENTS = {};
  {}long long batch;
  struct Row {{{}
  }};
  struct Column {{{}
  }};
  struct Element {{{}
  }};
  DEVICE Row row(long long index) const {{
{}    return {{{}}};
  }}
  DEVICE Column column(long long index) const {{
{}    return {{{}}};
  }}
  DEVICE Element element(long long row_index, long long column_index) const {{
{}    return {{{}}};
  }}
  template <int COUNT>
  DEVICE void elements(Element (&some)[COUNT], long long row_index, long long column_index) const {{
    if ({} && C_ALIGNED) {{  // all of them lie as the result does
      const long long at = (batch * finish_rows + row_index) * finish_columns + min(column_index, finish_columns - COUNT);
{}    }} else {{
      UNROLLED for (int e = 0; e < COUNT; ++e) some[e] = element(row_index, min(column_index + e, finish_columns - 1));
    }}
  }}
  template <class S>
  DEVICE float operator()(S sum, float twin, const Row& row, const Column& column, const Element& element, long long row_index, long long column_index) const {{
{}    return {};
  }}
  DEVICE float at(float sum, long long element) const {{
    const long long above = element / finish_columns, left = element % finish_columns;
    Finish here = *this;
    here.batch = above / finish_rows;
    const long long row = above % finish_rows;
    return here(sum, 0.0f, here.row(row), here.column(left), here.element(row, left), row, left);
  }}
}};
)",
        form_.twin < 0 ? 1 : 2, column_.Bytes(), HasElements(), members_, row_.fields, column_.fields, element_.fields,
        row_.statements, row_.values, column_.statements, column_.values, element_.statements, element_.values,
        alike_ == element_.count, along_, apply, value.value);
    return fmt::format(
        "{}{}\n{}#define FINISH_PARAMETERS {}\n#define TWIN {}\n#define FINISH(batch) Finish{{{}batch}}\n",
        graph::KernelPrelude(text), narrow_ ? embed::kNarrowCuh : "", text, parameters_, form_.twin < 0 ? "b" : "twin",
        values_);
  }

 private:
  struct Side {
    std::string fields, statements, values;
    int64_t count = 0;
    int64_t widest = 4;
    int64_t Bytes() const { return count * widest; }
  };

  /// A member of Finish, which a parameter of the kernel fills.
  void AddMember(const std::string& type, const std::string& name, const std::string& parameter) {
    members_ += fmt::format("{} {};\n  ", type, name);
    parameters_ += fmt::format(", {} {}", type, parameter);
    values_ += parameter + ", ";
  }

  /// The place along an axis of the result; `row` and `column` are places in the batch's matrix.
  std::string Place(size_t axis, const char* row, const char* column) const {
    const char letter = form_.letters[axis];
    for (const auto& [some, place] :
         {std::pair(form_.axes.batch, "batch"), {form_.axes.m, row}, {form_.axes.n, column}}) {
      const size_t at = some.find(letter);
      if (at == std::string::npos) continue;
      const graph::Extent inner = form_.Count(some.substr(at + 1));
      std::string text = inner.one() ? place : fmt::format("{} / ({})", place, inner.ToString());
      if (at > 0) text = fmt::format("{} % ({})", text, form_.shape()[axis].ToString());
      return text == place ? text : "(" + text + ")";
    }
    return "0";
  }

  /// The text of an operand's element at a row and a column.
  std::string Element(NodeId id, const char* row, const char* column, std::string& statements) const {
    const graph::Shape& shape = graph_.node(id).type.shape;
    graph::Coordinates at;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const size_t of_result = axis + form_.letters.size() - shape.size();
      at.push_back({.text = shape[axis].one() ? "0" : Place(of_result, row, column), .multiple = 1});
    }
    graph::ElementText text(graph_, {.indent = "    "});
    const auto value = text.Of(id, at);
    if (!text.Scope(1).empty())  // loops, whose names others may have
      return fmt::format("[&] {{\n{}{}      return {};\n    }}()", text.Scope(0), text.Scope(1), value.text);
    statements += text.Scope(0);
    return value.text;
  }

  /// Does an operand differ along axes of these letters?
  bool Differs(NodeId id, const std::string& letters) const {
    const graph::Shape& shape = graph_.node(id).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const char letter = form_.letters[axis + form_.letters.size() - shape.size()];
      if (!shape[axis].one() && letters.contains(letter)) return true;
    }
    return false;
  }

  void Take(NodeId id, const std::string& name) {
    const std::string arithmetic(graph::CudaArithmetic(graph_.node(id).type.dtype, false));
    if (id == form_.product || id == form_.twin) {
      operands_.push_back(id == form_.twin ? "twin" : fmt::format("({})sum", arithmetic));
      return;
    }
    const bool columns = Differs(id, form_.axes.n), both = columns && Differs(id, form_.axes.m);
    Side& side = both ? element_ : columns ? column_ : row_;
    const std::string value = both ? Element(id, "row_index", "column_index", side.statements)
                                   : Element(id, "index", "index", side.statements);
    side.fields += fmt::format("\n    {} {};", arithmetic, name);
    side.values += (side.values.empty() ? "" : ", ") + value;
    ++side.count;
    const auto [input, triangle] = FactorOf(graph_, id);
    if (both && input && triangle == 0 && graph_.node(id).type.shape == form_.shape()) {
      ++alike_;
      along_ += fmt::format(
          "      const auto {0} = *(const Units<{1}, COUNT>*)(in_{2} + at);\n"
          "      UNROLLED for (int e = 0; e < COUNT; ++e) some[e].{0} = load<{3}>({0}.element[e]);\n",
          name, CudaName(input->type.dtype), input->name, arithmetic);
    }
    side.widest = std::max(side.widest, static_cast<int64_t>(SizeOf(graph_.node(id).type.dtype)));
    operands_.push_back((both ? "element." : columns ? "column." : "row.") + name);
  }

  graph::CudaContext Context() const {
    graph::CudaContext context{.operands = operands_, .place = {}, .temporary = "finish_t", .narrow = narrow_};
    context.place = [&](graph::ScalarOp op, int axis) -> std::string {
      const size_t of_result = form_.letters.size() + axis;
      if (op == graph::ScalarOp::kIndex) return Place(of_result, "row_index", "column_index");
      return fmt::format("(long long)({})", form_.shape()[of_result].ToString());
    };
    return context;
  }

  const ProductForm& form_;
  const ValidGraph& graph_;
  const Node& result_;
  const std::vector<NodeId>& inputs_;
  bool narrow_;  ///< in few digits, as 16-bit results need them
  Side row_, column_, element_;
  int64_t alike_ = 0;  ///< elements that lie as the result does, and the text that reads neighbours of them
  std::string along_;
  std::string members_, parameters_, values_;
  std::vector<std::string> operands_;
};

/// Does the map take the products themselves, and besides them only what few elements make?
bool FinishServes(const ValidGraph& graph, const std::vector<NodeId>& products, const Node& result) {
  constexpr double kMostWork = 16;
  const auto takes = [&](NodeId product) {
    return std::ranges::find(result.operands, product) != result.operands.end();
  };
  if (!result.As<graph::Map>() || !std::ranges::all_of(products, takes)) return false;
  if (result.type.shape != graph.node(products[0]).type.shape) return false;
  return std::ranges::all_of(result.operands, [&](NodeId operand) {
    if (std::ranges::find(products, operand) != products.end()) return true;
    const auto served = graph::ElementText::Serves(graph, operand);
    return served.yes && served.work <= kMostWork;
  });
}

/// The product alone: nullopt where operands are no inputs, or lie otherwise. `swapped`: as that of the second
/// operand with the first.
std::optional<ProductForm> FormOf(const ValidGraph& graph, NodeId product, bool swapped) {
  const Node& node = graph.node(product);
  const auto [left, right, result] = graph::ParsedEquation(node.As<graph::Contract>()->equation);
  std::string letters[] = {left, right};
  NodeId operands[] = {node.operands[0], node.operands[1]};
  if (swapped) std::swap(letters[0], letters[1]), std::swap(operands[0], operands[1]);
  std::string ones;
  std::map<char, graph::Extent> extents;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t axis = 0; axis < letters[i].size(); ++axis) {
      const graph::Extent& extent = graph.node(operands[i]).type.shape[axis];
      extents[letters[i][axis]] = extent;
      if (extent.one()) ones += letters[i][axis];
    }
  }
  const auto axes = AxesOf(letters[0], letters[1], result, ones);
  const Factor a = FactorOf(graph, operands[0]), b = FactorOf(graph, operands[1]);
  if (!axes || !a.input || !b.input || b.triangle != 0) return std::nullopt;
  const bool whole = axes->m.size() == 1 && axes->k.size() == 1 && letters[0].ends_with(axes->m + axes->k);
  if (a.triangle != 0 && !(whole && node.As<graph::Contract>()->sparse)) return std::nullopt;
  ProductForm form{graph, product, *axes, result, {}};
  graph::Extent depth(1);
  for (const char letter : axes->k) depth = depth * extents[letter];
  form.parts = {.a = {a.input->name, a.input->type.dtype},
                .b = {b.input->name, b.input->type.dtype},
                .c = {},
                .m = form.Count(axes->m).ToString(),
                .n = form.Count(axes->n).ToString(),
                .k = depth.ToString(),
                .batch = form.Count(axes->batch).ToString(),
                .a_batched = axes->a_batched,
                .b_batched = !axes->batch.empty(),
                .b_transposed = axes->b_transposed,
                .triangle = a.triangle,
                .twin = {},
                .finish = {},
                .finish_arguments = {},
                .least = {}};
  return form;
}

/// Another product that can be multiplied with this one, tile by tile: of the same first operand with one that lies as
/// this one's second does, in whole units that tensor maps copy.
bool AddTwin(ProductForm& form, NodeId twin) {
  auto other = FormOf(form.graph, twin, false);
  if (!other) other = FormOf(form.graph, twin, true);
  MatrixProduct& parts = form.parts;
  const auto whole = [](const std::string& extent) {
    return extent.find_first_not_of("0123456789") == extent.npos && std::stoll(extent) % 16 == 0;
  };
  if (!other || other->shape() != form.shape() || other->axes != form.axes || other->letters != form.letters)
    return false;
  if (other->parts.a.tensor != parts.a.tensor || other->parts.b.dtype != parts.b.dtype || parts.triangle != 0)
    return false;
  if (SizeOf(parts.b.dtype) != 2 || SizeOf(parts.c.dtype) != 2 || !whole(parts.n) || !whole(parts.k)) return false;
  form.twin = twin;
  parts.twin = other->parts.b.tensor;
  return true;
}

}  // namespace

std::optional<MatrixProduct> ProductOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  if (!fused || fused->outputs().size() != 1) return std::nullopt;
  const ValidGraph& graph = *fused;
  std::vector<NodeId> products;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (graph.nodes()[id].As<graph::Contract>()) products.push_back(static_cast<NodeId>(id));
  }
  NodeId output = graph.outputs()[0].node;
  while (graph.node(output).As<graph::Reshape>()) output = graph.node(output).operands[0];
  if (products.empty() || products.size() > 2) return std::nullopt;
  const bool finishes = output != products[0];
  if (finishes && !FinishServes(graph, products, graph.node(output))) return std::nullopt;
  auto form = FormOf(graph, products[0], false);
  if (!form) form = FormOf(graph, products[0], true);
  if (!form) return std::nullopt;
  MatrixProduct& made = form->parts;
  made.c = {graph.outputs()[0].name, graph.node(output).type.dtype};
  for (const auto& [symbol, range] : graph.symbols()) made.least[symbol] = range.low;
  if (!Serves(made, graph.node(products[0]).type.dtype)) return std::nullopt;
  if (products.size() == 2) {
    if (!finishes || !AddTwin(*form, products[1])) return std::nullopt;
  }
  if (!finishes) return made;
  // What the result is made of besides the products.
  const std::vector<bool> needed =
      graph::NeededFor(graph, {output}, [&](NodeId id) { return std::ranges::find(products, id) != products.end(); });
  std::vector<NodeId> inputs = graph.inputs();
  std::erase_if(inputs, [&](NodeId id) { return !needed[id]; });
  FinishWriter writer(*form, output, inputs, MayBeNarrow(graph) && AccuracyOf(spec) != Accuracy::kStrict);
  made.finish = writer.Run();
  if (form->twin >= 0 && writer.HasElements()) return std::nullopt;
  made.column_bytes = writer.ColumnBytes();
  for (NodeId id : inputs) made.finish_arguments.emplace_back(graph.node(id).name);
  for (const std::string& extent : {made.m, made.n}) made.finish_arguments.emplace_back("i64:" + extent);
  for (const auto& [symbol, range] : graph.symbols()) made.finish_arguments.emplace_back("i64:" + symbol);
  return made;
}

namespace {

Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  const MatrixProduct product = ProductOf(spec).value();
  if (!product.twin.empty() && profile.cc_major != 9) return kStagesFamily.Bind(spec, profile);
  auto bound = BindProduct(spec, profile, product);
  return bound || !kElementsFamily.Match(spec) ? std::move(bound) : kElementsFamily.Bind(spec, profile);
}

}  // namespace

constinit const Family kProductFamily = {"product", HasForm<ProductOf>, Bind};

}  // namespace atunner
