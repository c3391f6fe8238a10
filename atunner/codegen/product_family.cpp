// Products inside of graphs: matrices, or many of them, of which one may be a triangle, and what a map makes of the
// product (scales, a bias, an activation).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/codegen/family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/matrix_product.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/plain_kernels.h"
#include "atunner/graph/product.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ProductForm;
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

/// Writes the map that takes the product, operand by operand: what differs by row, by column, or by both.
class FinishWriter {
 public:
  /// `twin`: another product that the map takes, or -1.
  FinishWriter(const ValidGraph& graph, const ProductForm& form, NodeId twin, NodeId result,
               const std::vector<NodeId>& inputs, bool narrow)
      : form_(form), graph_(graph), twin_(twin), result_(graph_.node(result)), inputs_(inputs), narrow_(narrow) {}

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
    if (twin_ >= 0) parameters_ += ", const __grid_constant__ CUtensorMap twin";
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
        twin_ < 0 ? 1 : 2, column_.Bytes(), HasElements(), members_, row_.fields, column_.fields, element_.fields,
        row_.statements, row_.values, column_.statements, column_.values, element_.statements, element_.values,
        alike_ == element_.count, along_, apply, value.value);
    return fmt::format(
        "{}{}\n{}#define FINISH_PARAMETERS {}\n#define TWIN {}\n#define FINISH(batch) Finish{{{}batch}}\n",
        graph::KernelPrelude(text), narrow_ ? embed::kNarrowCuh : "", text, parameters_, twin_ < 0 ? "b" : "twin",
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
      if (at > 0) text = fmt::format("{} % ({})", text, form_.shape[axis].ToString());
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
    if (id == form_.product || id == twin_) {
      operands_.push_back(id == twin_ ? "twin" : fmt::format("({})sum", arithmetic));
      return;
    }
    const bool columns = Differs(id, form_.axes.n), both = columns && Differs(id, form_.axes.m);
    Side& side = both ? element_ : columns ? column_ : row_;
    const std::string value = both ? Element(id, "row_index", "column_index", side.statements)
                                   : Element(id, "index", "index", side.statements);
    side.fields += fmt::format("\n    {} {};", arithmetic, name);
    side.values += (side.values.empty() ? "" : ", ") + value;
    ++side.count;
    const auto [input, triangle] = graph::FactorOf(graph_, id);
    if (both && input && triangle == 0 && graph_.node(id).type.shape == form_.shape) {
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
      return fmt::format("(long long)({})", form_.shape[of_result].ToString());
    };
    return context;
  }

  const ProductForm& form_;
  const ValidGraph& graph_;
  NodeId twin_;
  const Node& result_;
  const std::vector<NodeId>& inputs_;
  bool narrow_;  ///< in few digits, as 16-bit results need them
  Side row_, column_, element_;
  int64_t alike_ = 0;  ///< elements that lie as the result does, and the text that reads neighbours of them
  std::string along_;
  std::string members_, parameters_, values_;
  std::vector<std::string> operands_;
};

/// Can tensor maps copy tiles of two such products, in whole units?
bool ServesPairs(const MatrixProduct& product) {
  const auto whole = [](const std::string& extent) {
    return extent.find_first_not_of("0123456789") == extent.npos && std::stoll(extent) % 16 == 0;
  };
  return SizeOf(product.b.dtype) == 2 && SizeOf(product.c.dtype) == 2 && whole(product.n) && whole(product.k);
}

MatrixProduct Described(const ProductForm& form, MatrixProduct::Part result) {
  const auto& [batch, m, n, k, a_batched, b_transposed] = form.axes;
  return {.a = {form.a.input->name, form.a.input->type.dtype},
          .b = {form.b.input->name, form.b.input->type.dtype},
          .c = std::move(result),
          .m = form.Count(m).ToString(),
          .n = form.Count(n).ToString(),
          .k = form.depth.ToString(),
          .batch = form.Count(batch).ToString(),
          .a_batched = a_batched,
          .b_batched = !batch.empty(),
          .b_transposed = b_transposed,
          .triangle = form.a.triangle};
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
  const bool finishes = output != products[0], pair = products.size() == 2;
  if (finishes ? !graph::TakesProducts(graph, products, graph.node(output)) : pair) return std::nullopt;
  const auto form = graph::ProductFormOf(graph, products[0]);
  if (!form) return std::nullopt;
  MatrixProduct made = Described(*form, {graph.outputs()[0].name, graph.node(output).type.dtype});
  for (const auto& [symbol, range] : graph.symbols()) made.least[symbol] = range.low;
  if (!Serves(made, graph.node(products[0]).type.dtype)) return std::nullopt;
  if (!finishes) return made;
  const auto twin = graph::ProductFormOf(graph, products.back());
  if (pair && !(twin && form->IsTwin(*twin) && ServesPairs(made))) return std::nullopt;
  if (pair) made.twin = twin->b.input->name;
  // What the result is made of besides the products.
  const std::vector<bool> needed =
      graph::NeededFor(graph, {output}, [&](NodeId id) { return std::ranges::find(products, id) != products.end(); });
  std::vector<NodeId> inputs = graph.inputs();
  std::erase_if(inputs, [&](NodeId id) { return !needed[id]; });
  const bool narrow = MayBeNarrow(graph) && AccuracyOf(spec) != Accuracy::kStrict;
  FinishWriter writer(graph, *form, pair ? products[1] : -1, output, inputs, narrow);
  made.finish = writer.Run();
  if (pair && writer.HasElements()) return std::nullopt;
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
