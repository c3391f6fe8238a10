// The text of a kernel that computes a ReductionProgram.
#include "atunner/codegen/reduction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/evaluate_sums.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::Node;
using graph::NodeId;
using graph::Reduce;
using graph::Shape;
using Kind = ReductionProgram::Kind;

bool AllOnes(const Shape& shape) {
  return std::ranges::all_of(shape, [](const graph::Extent& extent) { return extent.one(); });
}

GraphLayout RowLayout(const ReductionProgram& program) {
  std::vector<Shape> shapes;
  for (NodeId id : program.graph.inputs()) shapes.push_back(program.RowPart(program.graph.node(id).type.shape));
  return {program.RowSpace(), shapes};
}

class Writer {
 public:
  Writer(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule)
      : program_(program),
        spec_(spec),
        schedule_(schedule),
        row_layout_(RowLayout(program)),
        inputs_(RowInputsOf(program)),
        values_(program.graph.nodes().size()) {}

  std::string Run() {
    Line("extern \"C\" __global__ void __launch_bounds__(BLOCK) kernel({}) {{", KernelParameters(spec_));
    Line("  const int thread = threadIdx.x % THREADS_PER_ROW;\n  int slot = 0;");
    Line("  const long long all_rows = {};", graph::ElementCount(program_.RowSpace()).ToString());
    Line("  const long long group_step = (long long)gridDim.x * ROWS_PER_BLOCK;");
    if (schedule_.prefetch) FirstRows();
    Line("  for (long long group = (long long)blockIdx.x * ROWS_PER_BLOCK; group < all_rows; group += group_step) {{");
    Line("    // Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.");
    Line("    const bool active = group + threadIdx.x / THREADS_PER_ROW < all_rows;");
    Line("    const long long row = active ? group + threadIdx.x / THREADS_PER_ROW : group;");
    for (const std::string& line : row_layout_.Coordinates("row", row_layout_.rank(), false)) Line("    {}", line);
    Head("    ", "");
    if (schedule_.uneven) Line("    const int tail = (COLS - head) % VEC;");
    if (schedule_.staged) Stage();
    PointAtRows();
    Keep();
    // One after the other: each part knows the values of those before.
    for (int pass = 0; pass < program_.passes; ++pass) {
      RowValues(pass);
      ReducingPass(pass);
    }
    RowValues(program_.passes);
    WritingPass();
    for (const auto& output : program_.graph.outputs()) {
      if (program_.steps[output.node].kind == Kind::kRow)
        Line("    if (active && thread == 0) store(out_{}[row], {});", output.name, values_[output.node]);
    }
    return text_ + "  }\n}\n";
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> form, Args&&... args) {
    text_ += fmt::format(form, std::forward<Args>(args)...) + "\n";
  }

  const std::vector<Node>& nodes() const { return program_.graph.nodes(); }
  const std::string& Name(NodeId id) const { return program_.graph.node(id).name; }
  DType TypeOf(NodeId id) const { return program_.graph.node(id).type.dtype; }
  std::string_view Stored(NodeId id) const { return CudaName(TypeOf(id)); }
  std::string Computed(NodeId id) const { return graph::CudaArithmetic(TypeOf(id), false); }
  Combine CombineOf(NodeId id) const { return nodes()[id].As<Reduce>()->op; }
  bool IsElement(const graph::Output& output) const { return program_.steps[output.node].kind == Kind::kElement; }

  bool IsPrefetched(const RowInput& input) const { return schedule_.prefetch && HasRows(program_, input); }
  /// Do rows stay in shared memory until the last pass over them makes room for the next ones?
  bool IsRing() const { return schedule_.prefetch && !schedule_.keeps; }
  bool IsStaged(const RowInput& input) const { return schedule_.staged && HasRows(program_, input); }
  bool IsKept(const RowInput& input) const {
    return schedule_.keeps && ((input.columns && input.rows && input.passes > 1) || IsPrefetched(input));
  }

  /// The beginning of a loop over the vectors of a thread.
  void OpenChunks(const std::string& indent, const std::string& head = "") {
    Line("#pragma unroll{}\n{}for (int chunk = 0; chunk < CHUNKS; ++chunk) {{", schedule_.keeps ? "" : " 4", indent);
    Line("{}  const int column = {}(chunk * THREADS_PER_ROW + thread) * VEC;", indent, schedule_.uneven ? head : "");
  }
  std::string_view HasColumn() const { return schedule_.uneven ? "column + VEC <= COLS" : "EXACT || column < COLS"; }
  /// Elements of the row before its first whole vector.
  void Head(std::string_view indent, std::string_view of) {
    if (schedule_.uneven) Line("{0}const int {1}head = (int)(-({1}row * COLS) & (VEC - 1));", indent, of);
  }
  /// Asks for a chunk of the row `of`row, if there is one of the group `group`, and closes the batch.
  void Request(const std::string& indent, const std::string& group, std::string_view of) {
    Line("{}  if ({} < all_rows && ({})) {{", indent, group, HasColumn());
    for (const RowInput& input : inputs_) {
      if (IsPrefetched(input))
        Line("{0}    copy_async({1}_next + chunk * BLOCK, in_{1} + {2}row * COLS + column);", indent, Name(input.id),
             of);
    }
    Line("{0}  }}\n{0}  commit_copies();", indent);
  }
  /// Of the rows that a block serves next the copies go to shared memory, a batch for each chunk of a thread; each
  /// thread reads what it has copied itself.
  void FirstRows() {
    Line("  extern __shared__ __align__(16) unsigned char next_rows[];");
    std::string begin = "next_rows";
    for (const RowInput& input : inputs_) {
      if (!IsPrefetched(input)) continue;
      const std::string next = Name(input.id) + "_next";
      Line("  Vector<{0}>* const {1} = (Vector<{0}>*)({2}) + threadIdx.x;", Stored(input.id), next, begin);
      begin = next + " + CHUNKS * BLOCK - threadIdx.x";
    }
    Line("  const long long first_group = (long long)blockIdx.x * ROWS_PER_BLOCK;");
    Line("  const long long first_row = row_of(first_group, all_rows);");
    Head("  ", "first_");
    OpenChunks("  ", "first_head + ");
    Request("  ", "first_group", "first_");
    Line("  }}");
  }

  void Stage() {
    for (const RowInput& input : inputs_) {
      if (IsStaged(input))
        Line("    __shared__ __align__(16) {} {}_stage[ROWS_PER_BLOCK * COLS];", Stored(input.id), Name(input.id));
    }
    Line("    const int staged = (int)min((long long)ROWS_PER_BLOCK, all_rows - group) * COLS;\n    __syncthreads();");
    for (const RowInput& input : inputs_) {
      if (IsStaged(input)) Line("    stage({0}_stage, in_{0} + group * COLS, staged);", Name(input.id));
    }
    Line("    commit_copies();\n    wait_copies<0>();\n    __syncthreads();");
  }

  /// Where the row begins in every input; values that all its elements share.
  void PointAtRows() {
    for (const RowInput& input : inputs_) {
      if (input.passes == 0) continue;
      std::string offset = row_layout_.Offset(input.number, row_layout_.rank());
      if (input.columns && offset != "0") offset = "(" + offset + ") * COLS";
      const std::string& name = Name(input.id);
      if (IsStaged(input)) {
        Line("    const {0}* {1}_row = {1}_stage + (int)(row - group) * COLS;", Stored(input.id), name);
      } else if (input.columns) {
        Line("    const {0}* {1}_row = in_{1} + {2};", Stored(input.id), name, offset);
      } else {
        Line("    const {0} {1}_value = load<{0}>(in_{1}[{2}]);", Computed(input.id), name, offset);
        values_[input.id] = name + "_value";
      }
    }
  }

  void Keep() {
    for (const RowInput& input : inputs_) {
      if (!IsKept(input)) continue;
      Line("    Vector<{}> {}_kept[CHUNKS];", Stored(input.id), Name(input.id));
      if (IsPrefetched(input)) continue;
      OpenChunks("    ");
      Line("      if (EXACT || column < COLS) read({0}_kept[chunk], {0}_row + column);\n    }}", Name(input.id));
    }
    if (!schedule_.prefetch) return;
    Line("    const long long next_row = row_of(group + group_step, all_rows);");
    Head("    ", "next_");
    if (!schedule_.keeps) return;
    OpenChunks("    ");
    Line("      wait_copies<CHUNKS - 1>();");
    for (const RowInput& input : inputs_) {
      if (IsPrefetched(input))
        Line("      if (EXACT || column < COLS) {0}_kept[chunk] = {0}_next[chunk * BLOCK];", Name(input.id));
    }
    Request("    ", "group + group_step", "next_");
    Line("    }}");
  }

  /// Values per row that what came before makes known, before the elements of this pass.
  void RowValues(int pass) {
    for (size_t id = 0; id < nodes().size(); ++id) {
      const Node& node = nodes()[id];
      const ReductionProgram::Step& step = program_.steps[id];
      if (step.kind != Kind::kRow || node.As<graph::Input>() || node.As<Reduce>() || step.pass != pass) continue;
      if (node.As<graph::Reshape>()) values_[id] = values_[node.operands[0]];
      if (node.As<graph::Map>()) State(static_cast<NodeId>(id), "    ");
      if (!node.As<graph::Gather>()) continue;
      if (pass == 0) GatherInputs(static_cast<NodeId>(id));
      Gather(static_cast<NodeId>(id));
    }
    // What later passes need of elements at places is asked for early.
    for (size_t id = 0; id < nodes().size() && pass == 0; ++id) {
      if (nodes()[id].As<graph::Gather>() && program_.steps[id].pass > 0) GatherInputs(static_cast<NodeId>(id));
    }
  }

  /// Of a gather: the place, and what the inputs have there.
  void GatherInputs(NodeId id) {
    const std::string name = ValueName(id);
    Line("    const int {}place = (int)max(0ll, min((long long){}, COLS - 1ll));", name,
         values_[nodes()[id].operands[1]]);
    for (NodeId element : program_.ElementsFor({nodes()[id].operands[0]})) {
      if (ChangesInRow(element))
        Line("    const {0} {1}{2} = load<{0}>({2}_row[{1}place]);", Computed(element), name, Name(element));
    }
  }
  void Gather(NodeId id) {
    const NodeId operand = nodes()[id].operands[0];
    values_[id] = ValueName(id);
    Line("    {0} {1};\n    {{\n      [[maybe_unused]] const int column = {1}place, lane = 0;", Computed(id),
         values_[id]);
    for (NodeId element : program_.ElementsFor({operand})) {
      if (ChangesInRow(element)) values_[element] = values_[id] + Name(element);
      if (nodes()[element].As<graph::Map>()) State(element, "      ");
    }
    Line("      {} = {};\n    }}", values_[id], values_[operand]);
  }
  /// Is the node an input that changes within a row?
  bool ChangesInRow(NodeId id) const {
    return std::ranges::any_of(inputs_, [id](const RowInput& input) { return input.id == id && input.columns; });
  }

  /// The node's name, with an underscore that no other name here ends in.
  std::string ValueName(NodeId id) const { return (Name(id).empty() ? "v" + std::to_string(id) : Name(id)) + "_"; }

  /// `const float name = expression;` of a map.
  void State(NodeId id, const std::string& indent) {
    const Node& node = program_.graph.node(id);
    graph::CudaContext context{
        .operands = {}, .place = {}, .temporary = ValueName(id) + "t", .narrow = schedule_.narrow};
    for (NodeId operand : node.operands) context.operands.push_back(values_[operand]);
    const Shape& space = program_.space;
    context.place = [&](graph::ScalarOp op, int axis) {
      const size_t at = space.size() + axis;
      if (op == graph::ScalarOp::kExtent) return "(long long)(" + space[at].ToString() + ")";
      const bool in_row = at < program_.row_axes;
      const auto end = space.begin() + static_cast<int64_t>(in_row ? program_.row_axes : space.size());
      const std::string stride = graph::ElementCount({space.begin() + static_cast<int64_t>(at) + 1, end}).ToString();
      if (!in_row && space[at].factor() == program_.columns) return std::string("(long long)(column + lane)");
      return fmt::format("{} / ({}) % ({})", in_row ? "row" : "(long long)(column + lane)", stride,
                         space[at].ToString());
    };
    const graph::CudaText value = graph::ToCuda(node.As<graph::Map>()->body, context);
    for (const std::string& statement : value.statements) Line("{}{}", indent, statement);
    values_[id] = ValueName(id);
    Line("{}const {} {} = {};", indent, Computed(id), values_[id], value.value);
  }

  /// The loop over a thread's elements: `before` the lanes of a vector, `each` of them, `after` them. Where rows begin
  /// anywhere, once more over what lies before the row's first whole vector and behind its last, one by one.
  void Loop(int pass, const std::function<void(bool edge)>& before, const std::function<void(bool edge)>& each,
            const std::function<void(bool edge)>& after) {
    for (const bool edge : {false, true}) {
      if (edge && !schedule_.uneven) return;
      OpenLoop(pass, edge, before);
      each(edge);
      Line("      }}");
      after(edge);
      Line("    }}");
    }
  }
  void OpenLoop(int pass, bool edge, const std::function<void(bool edge)>& before) {
    const std::vector<NodeId> elements = program_.ElementsFor(program_.WantedIn(pass));
    if (edge) {
      Line("    for (int edge = thread; edge < head + tail; edge += THREADS_PER_ROW) {{");
      Line("      const int column = edge < head ? edge : COLS - tail + (edge - head);");
    } else {
      OpenChunks("    ", "head + ");
      if (IsRing() && pass == 0) Line("      wait_copies<CHUNKS - 1>();\n      commit_copies();");
      if (!IsRing() || pass < program_.LastPass()) Line("      if (!({})) continue;", HasColumn());
    }
    std::vector<RowInput> used = inputs_;
    std::erase_if(used, [&](const RowInput& input) {
      return !input.columns || std::ranges::find(elements, input.id) == elements.end();
    });
    for (const RowInput& input : used) {
      if (IsKept(input)) continue;
      const std::string& name = Name(input.id);
      Line("      Vector<{}> {}_in;", Stored(input.id), name);
      if (edge)
        Line("      {0}_in.element[0] = {0}_row[column];", name);
      else if (IsPrefetched(input))
        Line("      if ({1}) {0}_in = {0}_next[chunk * BLOCK];", name, HasColumn());
      else
        Line("      read({0}_in, {0}_row + column);", name);
    }
    if (IsRing() && pass == program_.LastPass() && !edge) RequestNext();
    before(edge);
    Line("#pragma unroll\n      for (int lane = 0; lane < {}; ++lane) {{", edge ? "1" : "VEC");
    for (const RowInput& input : used) {
      values_[input.id] = Name(input.id) + "_value";
      Line("        const {0} {1}_value = get<{0}>({1}_{2}, lane);", Computed(input.id), Name(input.id),
           IsKept(input) ? "kept[chunk]" : "in");
    }
    for (NodeId id : elements) {
      if (nodes()[id].As<graph::Map>()) State(id, "        ");
    }
  }

  /// In the place of a chunk that the last pass has read, a chunk of the next row.
  void RequestNext() {
    Line("      {{");
    if (schedule_.uneven) Line("        const int column = next_head + (chunk * THREADS_PER_ROW + thread) * VEC;");
    Request("      ", "group + group_step", "next_");
    Line("      }}\n      if (!({})) continue;", HasColumn());
  }

  void ReducingPass(int pass) {
    std::vector<NodeId> reductions;
    std::vector<NodeId> tops;  // of exponentials that are summed beside them
    for (size_t at = 0; at < nodes().size(); ++at) {
      const auto id = static_cast<NodeId>(at);
      if (!nodes()[id].As<Reduce>() || program_.steps[id].pass != pass) continue;
      reductions.push_back(id);
      if (SumOfExponentials(id)) tops.push_back(id);
    }
    Line("    // Pass {}.", pass + 1);
    for (NodeId id : reductions)
      Line("    {} {} = {};", Computed(id), ValueName(id),
           graph::CudaLiteral(TypeOf(id), graph::Neutral(CombineOf(id), TypeOf(id)), false));
    const auto before = [&](bool edge) {
      for (NodeId id : tops) Line("      float {}of_lane[{}];", ValueName(id), edge ? "1" : "VEC");
    };
    const auto each = [&](bool) {
      for (NodeId id : reductions) {
        const std::string& value = values_[nodes()[id].operands[0]];
        if (SumOfExponentials(id))
          Line("        {}of_lane[lane] = {};", ValueName(id), value);
        else if (!program_.exponentials.contains(id))
          Line("        {0} = {1}::of({0}, ({2}){3});", ValueName(id), CombinerName(CombineOf(id)), Computed(id),
               value);
      }
    };
    const auto after = [&](bool) {
      for (NodeId id : tops)
        Line("      add_exponentials<{2}>({0}, {1}, {0}of_lane);", ValueName(id), ValueName(*SumOfExponentials(id)),
             program_.equals.contains(*SumOfExponentials(id)));
    };
    Loop(pass, before, each, after);
    for (NodeId id : reductions) {
      if (const auto sum = SumOfExponentials(id))
        Merge(id, *sum);
      else if (!program_.exponentials.contains(id))
        Reduced(id, CombineOf(id) == Combine::kMean ? " / COLS" : "");
      values_[id] = ValueName(id);
    }
  }
  /// The sum that is computed beside this maximum.
  std::optional<NodeId> SumOfExponentials(NodeId top) const {
    const auto found = std::ranges::find(program_.exponentials, top, &std::pair<const NodeId, NodeId>::second);
    return found == program_.exponentials.end() ? std::nullopt : std::optional(found->first);
  }
  void Reduced(NodeId id, const std::string& finish) {
    Line("    {0} = row_reduce<{1}>({0}, slot){2};", ValueName(id), CombinerName(CombineOf(id)), finish);
  }
  /// All threads' exponentials over the largest element of all.
  void Merge(NodeId top, NodeId sum) {
    Line("    const float {0}mine = {0};", ValueName(top));
    Reduced(top, "");
    const bool equals = program_.equals.contains(sum);
    Line("    {1} = scaled_sum<{2}>({1}, {0}mine, {0});", ValueName(top), ValueName(sum), equals);
    // Of infinities, which differ from themselves by no number, there is no sum.
    Reduced(sum, equals ? "" : fmt::format(" + ({0} - {0})", ValueName(top)));
  }

  void WritingPass() {
    if (program_.WantedIn(program_.passes).empty()) return;
    std::vector<graph::Output> outputs = program_.graph.outputs();
    std::erase_if(outputs, [this](const graph::Output& output) { return !IsElement(output); });
    Line("    // The results.");
    const auto before = [&](bool edge) {
      for (const auto& output : outputs)
        if (!edge) Line("      Vector<{}> {}_out;", Stored(output.node), output.name);
    };
    const auto each = [&](bool edge) {
      for (const auto& output : outputs) {
        const std::string& value = values_[output.node];
        if (edge)
          Line("        if (active) store(out_{}[ row * COLS + column], {});", output.name, value);
        else
          Line("        store({}_out.element[lane], {});", output.name, value);
      }
    };
    Loop(program_.passes, before, each, [&](bool edge) {
      for (const auto& output : outputs)
        if (!edge) Line("      if (active) write(out_{0} + row * COLS + column, {0}_out);", output.name);
    });
  }

  const ReductionProgram& program_;
  const KernelSpec& spec_;
  ReductionSchedule schedule_;
  GraphLayout row_layout_;
  std::vector<RowInput> inputs_;
  std::vector<std::string> values_;  ///< the text of each node's value, where it is known so far
  std::string text_;
};

}  // namespace

std::vector<RowInput> RowInputsOf(const ReductionProgram& program) {
  std::vector<int> passes(program.graph.nodes().size(), 0);
  for (int pass = 0; pass <= program.passes; ++pass) {
    for (NodeId id : program.ElementsFor(program.WantedIn(pass))) ++passes[id];
  }
  const auto use = [&](NodeId id) { passes[id] = std::max(passes[id], 1); };
  for (size_t id = 0; id < passes.size(); ++id) {
    const Node& node = program.graph.nodes()[id];
    if (program.steps[id].kind != Kind::kRow || node.As<Reduce>()) continue;
    std::ranges::for_each(node.operands, use);
    if (node.As<graph::Gather>()) std::ranges::for_each(program.ElementsFor({node.operands[0]}), use);
  }
  std::vector<RowInput> inputs;
  for (size_t i = 0; i < program.graph.inputs().size(); ++i) {
    const NodeId id = program.graph.inputs()[i];
    const Shape& shape = program.graph.node(id).type.shape;
    const bool columns = !AllOnes(program.ColumnPart(shape)) || program.columns == 1;
    inputs.push_back({id, i, columns, !AllOnes(program.RowPart(shape)), passes[id]});
  }
  return inputs;
}

bool HasRows(const ReductionProgram& program, const RowInput& input) {
  return input.columns && input.passes > 0 && program.graph.node(input.id).type.shape == program.space;
}

std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule) {
  return Writer(program, spec, schedule).Run();
}

}  // namespace atunner
