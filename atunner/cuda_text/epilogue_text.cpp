#include "atunner/cuda_text/epilogue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/graph/compose.h"

namespace atunner::graph {
namespace {

/// Writes the map that takes the product, operand by operand. Operands with one value per row or
/// per column are loaded once per row or column; others once per element.
class EpilogueWriter {
 public:
  /// `twin` is a second product that the map takes, or -1.
  EpilogueWriter(const ValidGraph& graph, const ProductForm& form, NodeId twin, NodeId result,
                 std::string_view narrow, std::string_view name)
      : form_(form),
        graph_(graph),
        twin_(twin),
        result_(graph_.node(result)),
        inputs_(graph.inputs()),
        narrow_(narrow),
        name_(name) {
    const std::vector<bool> needed = NeededFor(
        graph, {result}, [&](NodeId id) { return id == form.product || id == twin; });
    std::erase_if(inputs_, [&](NodeId id) { return !needed[id]; });
  }

  EpilogueText Run() {
    EpilogueText made{Text(), element_.count > 0, column_.Bytes(), {}};
    for (NodeId id : inputs_) made.arguments.push_back(graph_.node(id).name);
    for (const std::string& letters : {form_.axes.m, form_.axes.n})
      made.arguments.push_back("i64:" + form_.Count(letters).ToString());
    for (const auto& [symbol, range] : graph_.symbols()) made.arguments.push_back("i64:" + symbol);
    return made;
  }

 private:
  std::string Text() {
    for (size_t i = 0; i < result_.operands.size(); ++i)
      Take(result_.operands[i], fmt::format("v{}", i));
    const CudaText value = ToCuda(result_.As<Map>()->body, Context());
    std::string apply;
    for (const std::string& statement : value.statements) apply += "    " + statement + "\n";
    for (NodeId id : inputs_) {
      const std::string name = "in_" + graph_.node(id).name;
      AddMember(fmt::format("const {}* __restrict__", CudaName(graph_.node(id).type.dtype)), name,
                name);
    }
    for (const char* size : {"epilogue_rows", "epilogue_columns"})
      AddMember("long long", size, size);
    for (const auto& [symbol, range] : graph_.symbols())
      AddMember("long long", symbol, "size_" + symbol);
    if (twin_ >= 0) parameters_ += ", const __grid_constant__ CUtensorMap twin";
    const std::string text = fmt::format(
        R"(struct {0} {{
  static constexpr int SUMS = {1}, COLUMN_BYTES = {2};
  static constexpr bool ELEMENTS = {3};
  {4}long long batch;
  struct Row {{{5}
  }};
  struct Column {{{6}
  }};
  struct Element {{{7}
  }};
  DEVICE Row row(long long index) const {{
{8}    return {{{9}}};
  }}
  DEVICE Column column(long long index) const {{
{10}    return {{{11}}};
  }}
  DEVICE Element element(long long row_index, long long column_index) const {{
{12}    return {{{13}}};
  }}
  template <int COUNT>
  DEVICE void elements(Element (&some)[COUNT], long long row_index, long long column_index) const {{
    if ({14} && C_ALIGNED) {{  // all of them lie as the result does
      const long long at = (batch * epilogue_rows + row_index) * epilogue_columns + min(column_index, epilogue_columns - COUNT);
{15}    }} else {{
      UNROLLED for (int e = 0; e < COUNT; ++e) some[e] = element(row_index, min(column_index + e, epilogue_columns - 1));
    }}
  }}
  template <class S>
  DEVICE float operator()(S sum, float twin, const Row& row, const Column& column, const Element& element, long long row_index, long long column_index) const {{
{16}    return {17};
  }}
  DEVICE float at(float sum, long long element) const {{
    const long long above = element / epilogue_columns, left = element % epilogue_columns;
    {0} here = *this;
    here.batch = above / epilogue_rows;
    const long long row = above % epilogue_rows;
    return here(sum, 0.0f, here.row(row), here.column(left), here.element(row, left), row, left);
  }}
}};
)",
        name_, twin_ < 0 ? 1 : 2, column_.Bytes(), element_.count > 0, members_, row_.fields,
        column_.fields, element_.fields, row_.statements, row_.values, column_.statements,
        column_.values, element_.statements, element_.values, in_layout_ == element_.count, along_,
        apply, value.value);
    return fmt::format(
        "{}{}\n{}#define EPILOGUE_PARAMETERS {}\n#define TWIN {}\n#define EPILOGUE(batch) "
        "Epilogue{{{}batch}}\n",
        KernelPrelude(text), narrow_, text, parameters_, twin_ < 0 ? "b" : "twin", values_);
  }

  struct Side {
    std::string fields, statements, values;
    int64_t count = 0;
    int64_t widest = 4;
    int64_t Bytes() const { return count * widest; }
  };

  /// A member of Epilogue, which a parameter of the kernel fills.
  void AddMember(const std::string& type, const std::string& name, const std::string& parameter) {
    members_ += fmt::format("{} {};\n  ", type, name);
    parameters_ += fmt::format(", {} {}", type, parameter);
    values_ += parameter + ", ";
  }

  /// The index along an axis of the result; `row` and `column` are indices in the batch's matrix.
  std::string AxisIndex(size_t axis, const char* row, const char* column) const {
    const char letter = form_.letters[axis];
    for (const auto& [some, place] :
         {std::pair(form_.axes.batch, "batch"), {form_.axes.m, row}, {form_.axes.n, column}}) {
      const size_t at = some.find(letter);
      if (at == std::string::npos) continue;
      const Extent inner = form_.Count(some.substr(at + 1));
      std::string text = inner.one() ? place : fmt::format("{} / ({})", place, inner.ToString());
      if (at > 0) text = fmt::format("{} % ({})", text, form_.shape[axis].ToString());
      return text == place ? text : "(" + text + ")";
    }
    return "0";
  }

  /// The text of an operand's element at a row and a column.
  std::string Element(NodeId id, const char* row, const char* column,
                      std::string& statements) const {
    const Shape& shape = graph_.node(id).type.shape;
    Coordinates at;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const size_t of_result = axis + form_.letters.size() - shape.size();
      at.push_back(
          {.text = shape[axis].one() ? "0" : AxisIndex(of_result, row, column), .multiple = 1});
    }
    ElementText text(graph_, {.indent = "    "});
    const auto value = text.Of(id, at);
    if (!text.Scope(1).empty())  // loops need a scope of their own for their variables
      return fmt::format("[&] {{\n{}{}      return {};\n    }}()", text.Scope(0), text.Scope(1),
                         value.text);
    statements += text.Scope(0);
    return value.text;
  }

  /// True if an operand varies along an axis with one of these letters.
  bool Differs(NodeId id, const std::string& letters) const {
    const Shape& shape = graph_.node(id).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const char letter = form_.letters[axis + form_.letters.size() - shape.size()];
      if (!shape[axis].one() && letters.contains(letter)) return true;
    }
    return false;
  }

  void Take(NodeId id, const std::string& name) {
    const std::string arithmetic(CudaArithmetic(graph_.node(id).type.dtype, false));
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
    const auto [input, triangle] = FactorOf(graph_, id);
    if (both && input && triangle == 0 && graph_.node(id).type.shape == form_.shape) {
      ++in_layout_;
      along_ += fmt::format(
          "      const auto {0} = *(const Units<{1}, COUNT>*)(in_{2} + at);\n"
          "      UNROLLED for (int e = 0; e < COUNT; ++e) some[e].{0} = "
          "load<{3}>({0}.element[e]);\n",
          name, CudaName(input->type.dtype), input->name, arithmetic);
    }
    side.widest = std::max(side.widest, static_cast<int64_t>(SizeOf(graph_.node(id).type.dtype)));
    operands_.push_back((both ? "element." : columns ? "column." : "row.") + name);
  }

  CudaContext Context() const {
    CudaContext context{
        .operands = operands_, .place = {}, .temporary = "epilogue_t", .narrow = !narrow_.empty()};
    context.place = [&](ScalarOp op, int axis) -> std::string {
      const size_t of_result = form_.letters.size() + axis;
      if (op == ScalarOp::kIndex) return AxisIndex(of_result, "row_index", "column_index");
      return fmt::format("(long long)({})", form_.shape[of_result].ToString());
    };
    return context;
  }

  const ProductForm& form_;
  const ValidGraph& graph_;
  NodeId twin_;
  const Node& result_;
  std::vector<NodeId> inputs_;  ///< the inputs of the result besides the products
  std::string_view narrow_;
  std::string_view name_;
  Side row_, column_, element_;
  /// Operands in the result's layout, and the text that reads neighbouring elements of them
  int64_t in_layout_ = 0;
  std::string along_;
  std::string members_, parameters_, values_;
  std::vector<std::string> operands_;
};

}  // namespace

EpilogueText TextOfEpilogue(const ValidGraph& graph, const ProductForm& form, NodeId twin,
                            NodeId result, std::string_view narrow, std::string_view name) {
  return EpilogueWriter(graph, form, twin, result, narrow, name).Run();
}

}  // namespace atunner::graph
