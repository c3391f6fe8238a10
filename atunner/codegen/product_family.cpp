// Products inside of graphs on Hopper: two matrices and what a map makes of the product (scales, a bias, an
// activation).
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/maps_product.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/plain_kernels.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;

struct ProductGraph {
  ValidGraph graph;
  NodeId product;
  ProductParts parts;
  std::string finish;   ///< text like kernels/families/plain_finish.cuh
  Arguments arguments;  ///< what FINISH_PARAMETERS are given
};

/// Is b of the equation [n, k]? nullopt where it is neither that nor [k, n], or a is not [m, k].
std::optional<bool> Transposed(const std::string& equation) {
  if (equation.size() != 9) return std::nullopt;
  const char m = equation[0];
  const char k = equation[1];
  const char n = equation[8];
  const auto is = [&](char first, char second) {
    return equation == fmt::format("{}{},{}{}->{}{}", m, k, first, second, m, n);
  };
  return is(n, k) ? std::optional(true) : is(k, n) ? std::optional(false) : std::nullopt;
}

bool Serves(const ProductParts& parts, DType sums) {
  const auto half = [](DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; };
  const auto whole = [](DType type) { return type == DType::kInt8 || type == DType::kUInt8; };
  const DType a = parts.a.dtype;
  const DType b = parts.b.dtype;
  const bool single = parts.c.dtype == DType::kFloat32;
  if (half(a)) return a == b && (single || parts.c.dtype == a);
  if (!(single || half(parts.c.dtype)) || !parts.b_transposed || SizeOf(a) != 1 || SizeOf(b) != 1) return false;
  return IsFloat(a) ? IsFloat(b) && SizeOf(sums) > 1 : whole(a) && whole(b) && sums == DType::kInt32;
}

/// Writes the map that takes the product, operand by operand: what differs by row, by column, or by both.
class FinishWriter {
 public:
  FinishWriter(const ValidGraph& graph, NodeId product, NodeId result, const std::vector<NodeId>& inputs)
      : graph_(graph), product_(product), result_(graph.node(result)), inputs_(inputs) {}

  /// Of a column's values, where Run() has been.
  int64_t ColumnBytes() const { return column_.Bytes(); }
  std::string Run() {
    for (size_t i = 0; i < result_.operands.size(); ++i) Take(result_.operands[i], fmt::format("v{}", i));
    const graph::CudaText value = graph::ToCuda(result_.As<graph::Map>()->body, Context());
    for (const std::string& statement : value.statements) apply_ += "    " + statement + "\n";
    std::string members;
    for (NodeId id : inputs_) members += Pointer(id) + ";\n  ";
    members += "long long finish_rows, finish_columns";
    for (const auto& [symbol, range] : graph_.symbols()) members += ", " + symbol;
    const std::string text = fmt::format(
        R"(struct Finish {{
  static constexpr int COLUMN_BYTES = {};
  {};
  struct Row {{{}
  }};
  struct Column {{{}
  }};
  DEVICE Row row(long long index) const {{
{}    return {{{}}};
  }}
  DEVICE Column column(long long index) const {{
{}    return {{{}}};
  }}
  template <class S>
  DEVICE float operator()(S sum, const Row& row, const Column& column, long long row_index, long long column_index) const {{
{}    return {};
  }}
  DEVICE float at(float sum, long long element) const {{
    const long long above = min(element / finish_columns, finish_rows - 1);
    const long long left = min(element - above * finish_columns, finish_columns - 1);
    return (*this)(sum, row(above), column(left), above, left);
  }}
}};
struct NothingAhead {{
  DEVICE Finish::Row row(int, int) const {{ return {{}}; }}
  DEVICE Finish::Column column(int) const {{ return {{}}; }}
}};
{})",
        column_.Bytes(), members, row_.fields, column_.fields, row_.statements, row_.values, column_.statements,
        column_.values, apply_, value.value, Parameters());
    return graph::KernelPrelude(text) + "\n" + text;
  }

 private:
  struct Side {
    std::string fields, statements, values;
    int64_t count = 0;
    int64_t widest = 4;
    int64_t Bytes() const { return count * widest; }
  };

  std::string Pointer(NodeId id) const {
    const Node& node = graph_.node(id);
    return fmt::format("const {}* in_{}", CudaName(node.type.dtype), node.name);
  }

  std::string Parameters() const {
    std::string parameters;
    std::string values;
    for (NodeId id : inputs_) {
      parameters +=
          fmt::format(", const {}* __restrict__ in_{}", CudaName(graph_.node(id).type.dtype), graph_.node(id).name);
      values += fmt::format("in_{}, ", graph_.node(id).name);
    }
    parameters += ", long long finish_rows, long long finish_columns";
    values += "finish_rows, finish_columns";
    for (const auto& [symbol, range] : graph_.symbols()) {
      parameters += ", long long size_" + symbol;
      values += ", size_" + symbol;
    }
    return fmt::format("#define FINISH_PARAMETERS {}\n#define FINISH Finish{{{}}}\n", parameters, values);
  }

  /// The text of an operand's element, where `row` and `column` are the places.
  graph::ElementText::Value Element(NodeId id, const char* row, const char* column, std::string& statements) const {
    const graph::Shape& shape = graph_.node(id).type.shape;
    graph::Coordinates at;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool last = axis + 1 == shape.size();
      at.push_back({.text = shape[axis].one() ? "0" : last ? column : row, .multiple = 1});
    }
    graph::ElementText text(graph_, {.indent = "    "});
    const auto value = text.Of(id, at);
    statements += text.Scope(0);
    return value;
  }

  void Take(NodeId id, const std::string& name) {
    if (id == product_) {
      const DType dtype = graph_.node(id).type.dtype;
      operands_.push_back(fmt::format("({})sum", graph::CudaArithmetic(dtype, false)));
      return;
    }
    const graph::Shape& shape = graph_.node(id).type.shape;
    const bool rows = shape.size() == 2 && !shape[0].one();
    const bool columns = !shape.empty() && !shape.back().one();
    if (rows && columns) {
      operands_.push_back(Element(id, "row_index", "column_index", apply_).text);
      return;
    }
    Side& side = columns ? column_ : row_;
    const auto value = Element(id, "index", "index", side.statements);
    side.fields += fmt::format("\n    {} {};", graph::CudaArithmetic(graph_.node(id).type.dtype, false), name);
    side.values += (side.values.empty() ? "" : ", ") + value.text;
    ++side.count;
    side.widest = std::max(side.widest, static_cast<int64_t>(SizeOf(graph_.node(id).type.dtype)));
    operands_.push_back((columns ? "column." : "row.") + name);
  }

  graph::CudaContext Context() const {
    graph::CudaContext context{.operands = operands_, .place = {}, .temporary = "finish_t"};
    context.place = [&](graph::ScalarOp op, int axis) -> std::string {
      if (op == graph::ScalarOp::kIndex) return axis == -1 ? "column_index" : "row_index";
      return axis == -1 ? "finish_columns" : "finish_rows";
    };
    return context;
  }

  const ValidGraph& graph_;
  NodeId product_;
  const Node& result_;
  const std::vector<NodeId>& inputs_;
  Side row_, column_;
  std::string apply_;
  std::vector<std::string> operands_;
};

/// Does the map take the product itself, and besides it only what few elements make?
bool FinishServes(const ValidGraph& graph, NodeId product, const Node& result) {
  constexpr double kMostWork = 16;
  if (!result.As<graph::Map>() || std::ranges::find(result.operands, product) == result.operands.end()) return false;
  return std::ranges::all_of(result.operands, [&](NodeId operand) {
    if (operand == product) return true;
    const auto served = graph::ElementText::Serves(graph, operand);
    return served.yes && served.work <= kMostWork;
  });
}

/// Inputs that something else than the product takes.
std::vector<NodeId> OtherInputs(const ValidGraph& graph, NodeId product) {
  std::vector<NodeId> others;
  for (NodeId input : graph.inputs()) {
    const auto takes = [&](const Node& node) {
      return &node != &graph.node(product) && std::ranges::find(node.operands, input) != node.operands.end();
    };
    if (std::ranges::any_of(graph.nodes(), takes)) others.push_back(input);
  }
  return others;
}

/// nullopt for other graphs, and for types that tensor cores do not multiply or the kernels do not store.
std::optional<ProductGraph> ProductGraphOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  if (!fused) return std::nullopt;
  const ValidGraph& graph = *fused;
  const auto& nodes = graph.nodes();
  const auto found =
      std::ranges::find_if(nodes, [](const Node& node) { return node.As<graph::Contract>() != nullptr; });
  if (found == nodes.end() || graph.outputs().size() != 1) return std::nullopt;
  const auto product = static_cast<NodeId>(found - nodes.begin());
  const NodeId output = graph.outputs()[0].node;
  const auto transposed = Transposed(found->As<graph::Contract>()->equation);
  const Node& a = graph.node(found->operands[0]);
  const Node& b = graph.node(found->operands[1]);
  if (!transposed || !a.As<graph::Input>() || !b.As<graph::Input>()) return std::nullopt;
  if (output != product && !FinishServes(graph, product, graph.node(output))) return std::nullopt;
  ProductParts parts{.a = {a.name, a.type.dtype},
                     .b = {b.name, b.type.dtype},
                     .c = {graph.outputs()[0].name, graph.node(output).type.dtype},
                     .m = found->type.shape[0].ToString(),
                     .n = found->type.shape[1].ToString(),
                     .k = a.type.shape[1].ToString(),
                     .b_transposed = *transposed};
  if (!Serves(parts, found->type.dtype)) return std::nullopt;
  ProductGraph made{graph, product, std::move(parts), std::string(embed::kPlainFinishCuh), {}};
  if (output == product) return made;
  const std::vector<NodeId> inputs = OtherInputs(graph, product);
  FinishWriter writer(graph, product, output, inputs);
  made.finish = writer.Run();
  made.parts.column_bytes = writer.ColumnBytes();
  for (NodeId id : inputs) made.arguments.emplace_back(graph.node(id).name);
  for (const std::string& extent : {made.parts.m, made.parts.n}) made.arguments.emplace_back("i64:" + extent);
  for (const auto& [symbol, range] : graph.symbols()) made.arguments.emplace_back("i64:" + symbol);
  return made;
}

class GraphProduct : public MapsProduct {
 public:
  GraphProduct(const KernelSpec& spec, const DeviceProfile& profile, ProductGraph form)
      : MapsProduct(spec, profile, form.parts),
        finish_(std::move(form.finish)),
        arguments_(std::move(form.arguments)),
        least_(form.graph.symbols().empty() ? 1 : form.graph.symbols().begin()->second.low) {}

  /// As few rows as there may be; and more than one tile has, partly filled.
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    if (!RowsAreOpen()) return {};
    const auto& [name, most] = *spec_.dims.begin();
    const int64_t rows = RowsFetched(configuration);
    const int64_t tile = Integer(configuration, "tile_m");
    const int64_t several = rows < tile ? rows - 3 : tile + 3;
    std::vector<Dims> sizes = {{{name, least_}}};
    if (several > least_) sizes.push_back({{name, std::min(several, most)}});
    return sizes;
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    if (!RowsAreOpen()) return {};
    const std::string& name = spec_.dims.begin()->first;
    return {{name}, {RowsThere(name, configuration)}};
  }

 protected:
  std::string Finish() const override { return finish_; }
  Arguments FinishArguments() const override { return arguments_; }

 private:
  /// Is the number of rows the one open size?
  bool RowsAreOpen() const {
    const auto number = [](const std::string& text) { return Expr::MustParse(text).Names().empty(); };
    return spec_.dims.size() == 1 && spec_.dims.begin()->first == parts_.m && number(parts_.n) && number(parts_.k);
  }

  std::string finish_;
  Arguments arguments_;
  int64_t least_;
};

class Product : public Family {
 public:
  std::string_view name() const override { return "product"; }
  bool Match(const KernelSpec& spec) const override { return ProductGraphOf(spec).has_value(); }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    ProductGraph form = ProductGraphOf(spec).value();
    const graph::Node& product = form.graph.node(form.product);
    const graph::Node& a = form.graph.node(product.operands[0]);
    const auto number = [&](const graph::Extent& extent) { return extent.Bound(spec.dims).factor(); };
    if (MapsPay(profile, number(product.type.shape[0]), number(product.type.shape[1]), number(a.type.shape[1]),
                static_cast<int64_t>(SizeOf(a.type.dtype)), form.parts.b_transposed))
      return std::make_unique<GraphProduct>(spec, profile, std::move(form));
    if (ElementsFamily().Match(spec)) return ElementsFamily().Bind(spec, profile);
    return Fail(ErrorCode::kUnsupported, "no schedule family computes '" + spec.name + "' on " + profile.name +
                                             ": products of graphs take Hopper");
  }
};

}  // namespace

const Family& ProductFamily() {
  static const Product family;
  return family;
}

}  // namespace atunner
