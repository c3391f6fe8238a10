#include "atunner/codegen/reduce/reduction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::Coordinates;
using graph::ElementText;
using graph::NodeId;
using graph::Reduce;

class Writer {
 public:
  Writer(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule)
      : program_(program),
        spec_(spec),
        schedule_(schedule),
        inputs_(RowInputsOf(program)),
        row_(program.graph, {.indent = "    ", .narrow = schedule.narrow}) {}

  std::string Run() {
    text_ = KernelHead(spec_);
    Line("  const int thread = threadIdx.x % THREADS_PER_ROW;\n  [[maybe_unused]] int slot = 0;");
    Line("  const long long all_rows = {};", graph::CountText(program_.Part(false)));
    Line("  const long long group_step = (long long)gridDim.x * ROWS_PER_BLOCK;");
    if (schedule_.prefetch) FirstRows();
    Line(
        "  for (long long group = (long long)blockIdx.x * ROWS_PER_BLOCK; group < all_rows; group "
        "+= group_step) {{");
    Line(
        "    // Threads beyond the last row repeat the group's first, so that barriers meet, and "
        "store nothing.");
    Line("    const bool active = group + threadIdx.x / THREADS_PER_ROW < all_rows;");
    Line("    const long long row = active ? group + threadIdx.x / THREADS_PER_ROW : group;");
    text_ += Coordinated("k", "row", false, "    ");
    Head("    ", "");
    if (schedule_.uneven) Line("    const int tail = (COLS - head) % VEC;");
    if (schedule_.staged) Stage();
    for (const RowInput& input : inputs_) {
      if (schedule_.staged)
        Line("    const {0}* {1}_row = {1}_stage + (int)(row - group) * COLS;", Stored(input.id),
             Name(input.id));
      else
        Line("    const {0}* {1}_row = in_{1} + row * COLS;", Stored(input.id), Name(input.id));
    }
    // Values that a row shares are loaded before anything waits for the row's elements.
    for (NodeId id : program_.graph.inputs()) {
      if (program_.IsShared(id)) RowValue(id);
    }
    Keep();
    // In this order each part knows the values of those before.
    for (int pass = 0; pass < program_.pass_count; ++pass) {
      RowValues(pass);
      ReducingPass(pass);
    }
    RowValues(program_.pass_count);
    if (!program_.element_outputs.empty()) WritingPass();
    for (const auto& output : program_.kept_outputs)
      Line("    if (active && thread == 0) store(out_{}[row], {});", output.name,
           rows_.at(output.node));
    return text_ + "  }\n}\n";
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> form, Args&&... args) {
    text_ += fmt::format(form, std::forward<Args>(args)...) + "\n";
  }

  const graph::Node& NodeOf(NodeId id) const { return program_.graph.node(id); }
  const std::string& Name(NodeId id) const { return NodeOf(id).name; }
  std::string_view Stored(NodeId id) const { return CudaName(NodeOf(id).type.dtype); }
  std::string Computed(NodeId id) const {
    return graph::CudaArithmetic(NodeOf(id).type.dtype, false);
  }
  Combine CombineOf(NodeId id) const { return NodeOf(id).As<Reduce>()->op; }
  std::string ValueName(NodeId id) const { return program_.ValueName(id); }
  /// k0, … or r1, … from the number of a row, or of an element within one.
  std::string Coordinated(const char* prefix, const char* number, bool reduced,
                          const char* indent) const {
    const auto takes = [&](size_t axis) { return program_.reduced[axis] == reduced; };
    return CoordinateLines(program_.space, takes, prefix, number, reduced ? "int" : "long long",
                           indent);
  }

  /// True if rows stay in shared memory until the last pass over them makes room for the next ones.
  bool IsRing() const { return schedule_.prefetch && !schedule_.keeps; }
  bool IsKept(const RowInput& input) const {
    return schedule_.keeps && (input.passes > 1 || schedule_.prefetch);
  }

  /// The head of a loop over the vectors of a thread.
  void OpenChunks(const std::string& indent, const std::string& head = "") {
    Line("#pragma unroll{}\n{}for (int chunk = 0; chunk < CHUNKS; ++chunk) {{",
         schedule_.keeps ? "" : " 4", indent);
    Line("{}  const int column = {}(chunk * THREADS_PER_ROW + thread) * VEC;", indent,
         schedule_.uneven ? head : "");
  }
  std::string_view HasColumn() const {
    return schedule_.uneven ? "column + VEC <= COLS" : "EXACT || column < COLS";
  }
  /// Elements of the row before its first whole vector.
  void Head(std::string_view indent, std::string_view of) {
    if (schedule_.uneven)
      Line("{0}const int {1}head = (int)(-({1}row * COLS) & (VEC - 1));", indent, of);
  }
  /// Starts the copy of a chunk of the row `of`row, if there is one in the group `group`, and
  /// closes the batch.
  void Request(const std::string& indent, const std::string& group, std::string_view of) {
    Line("{}  if ({} < all_rows && ({})) {{", indent, group, HasColumn());
    for (const RowInput& input : inputs_)
      Line("{0}    copy_async({1}_next + chunk * BLOCK, in_{1} + {2}row * COLS + column);", indent,
           Name(input.id), of);
    Line("{0}  }}\n{0}  commit_copies();", indent);
  }
  /// Starts the copies of a block's first rows to shared memory, one batch per chunk of a thread;
  /// each thread reads only chunks that it copied itself.
  void FirstRows() {
    Line("  extern __shared__ __align__(16) unsigned char next_rows[];");
    std::string begin = "next_rows";
    for (const RowInput& input : inputs_) {
      const std::string next = Name(input.id) + "_next";
      Line("  Vector<{0}>* const {1} = (Vector<{0}>*)({2}) + threadIdx.x;", Stored(input.id), next,
           begin);
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
    for (const RowInput& input : inputs_)
      Line("    __shared__ __align__(16) {} {}_stage[ROWS_PER_BLOCK * COLS];", Stored(input.id),
           Name(input.id));
    Line(
        "    const int staged = (int)min((long long)ROWS_PER_BLOCK, all_rows - group) * COLS;\n    "
        "__syncthreads();");
    for (const RowInput& input : inputs_)
      Line("    stage({0}_stage, in_{0} + group * COLS, staged);", Name(input.id));
    Line("    commit_copies();\n    wait_copies<0>();\n    __syncthreads();");
  }

  void Keep() {
    for (const RowInput& input : inputs_) {
      if (!IsKept(input)) continue;
      Line("    Vector<{}> {}_cached[CHUNKS];", Stored(input.id), Name(input.id));
      if (schedule_.prefetch) continue;
      OpenChunks("    ");
      Line("      if (EXACT || column < COLS) read({0}_cached[chunk], {0}_row + column);\n    }}",
           Name(input.id));
    }
    if (!schedule_.prefetch) return;
    Line("    const long long next_row = row_of(group + group_step, all_rows);");
    Head("    ", "next_");
    if (!schedule_.keeps) return;
    OpenChunks("    ");
    Line("      wait_copies<CHUNKS - 1>();");
    for (const RowInput& input : inputs_)
      Line("      if (EXACT || column < COLS) {0}_cached[chunk] = {0}_next[chunk * BLOCK];",
           Name(input.id));
    Request("    ", "group + group_step", "next_");
    Line("    }}");
  }

  /// Computes the values that a row shares and that earlier passes make known, before the elements
  /// of this pass.
  void RowValues(int pass) {
    for (size_t at = 0; at < program_.graph.nodes().size(); ++at) {
      const auto id = static_cast<NodeId>(at);
      const auto* gather = NodeOf(id).As<graph::Gather>();
      if (gather && pass == 0) AskForPlace(id);
      if (program_.IsShared(id) && program_.known[id] == pass && !rows_.contains(id)) RowValue(id);
    }
  }
  void RowValue(NodeId id) {
    const std::string value = NodeOf(id).As<graph::Gather>()
                                  ? row_.Of(NodeOf(id).operands[0], places_.at(id)).text
                                  : row_.Of(id, SharedAt(id)).text;
    text_ += NewStatements();
    Line("    const {} {} = {};", Computed(id), ValueName(id), value);
    Share(id);
  }
  Coordinates SharedAt(NodeId id) const { return program_.SharedAt(id, schedule_.vector); }
  /// Makes the row's value known by its name.
  void Share(NodeId id) {
    rows_[id] = ValueName(id);
    row_.Know(id, {ValueName(id), 0}, SharedAt(id));
  }
  /// The statements that `row_` has written since the last call.
  std::string NewStatements() {
    const std::string text = row_.Scope(0).substr(written_);
    written_ = row_.Scope(0).size();
    return text;
  }
  /// The index of a gather; inputs at that index are loaded early, whenever they are needed.
  void AskForPlace(NodeId id) {
    const auto& operands = NodeOf(id).operands;
    Line("    const int {}index = (int)max(0ll, min((long long){}, COLS - 1ll));", ValueName(id),
         rows_.at(operands[1]));
    Coordinates at = program_.ElementAt(1);
    for (size_t axis = 0; axis < at.size(); ++axis) {
      if (program_.reduced[axis] && !program_.space[axis].one())
        at[axis].text = ValueName(id) + "index";
    }
    for (NodeId input : program_.StreamedFor({operands[0]})) row_.Of(input, at);
    text_ += NewStatements();
    places_[id] = at;
  }

  /// Elements of a vector, or a single one at a row's edge, where inputs and the row's values are
  /// known.
  ElementText Elements(const std::vector<NodeId>& streamed, bool edge) const {
    ElementText elements(
        program_.graph,
        {.vector = edge ? 1 : schedule_.vector, .indent = "      ", .narrow = schedule_.narrow});
    for (const auto& [id, name] : rows_) elements.Know(id, {name, 0}, SharedAt(id));
    for (const RowInput& input : inputs_) {
      if (std::ranges::find(streamed, input.id) == streamed.end()) continue;
      const std::string value = fmt::format("get<{}>({}_{}, lane)", Computed(input.id),
                                            Name(input.id), IsKept(input) ? "cached[chunk]" : "in");
      elements.Know(input.id, {value, 1}, ElementAt(edge));
    }
    return elements;
  }
  Coordinates ElementAt(bool edge) const { return program_.ElementAt(edge ? 1 : schedule_.vector); }

  /// The loop over a thread's elements, whose body `write` makes of elements' texts. For rows that
  /// begin at any element, a second loop handles the elements before the first whole vector and
  /// behind the last one by one.
  void Loop(int pass, const std::function<std::string(ElementText& elements, bool edge)>& write) {
    const std::vector<NodeId> streamed = program_.StreamedFor(program_.WantedIn(pass));
    for (const bool edge : {false, true}) {
      if (edge && !schedule_.uneven) return;
      OpenLoop(pass, edge);
      Read(streamed, edge);
      if (IsRing() && pass == program_.LastPass() && !edge) RequestNext();
      text_ += Coordinated("r", "column", true, "      ");
      ElementText elements = Elements(streamed, edge);
      text_ += write(elements, edge) + "    }\n";
    }
  }
  void OpenLoop(int pass, bool edge) {
    if (edge) {
      Line("    for (int edge = thread; edge < head + tail; edge += THREADS_PER_ROW) {{");
      Line("      const int column = edge < head ? edge : COLS - tail + (edge - head);");
      Line("      [[maybe_unused]] constexpr int lane = 0;");
      return;
    }
    OpenChunks("    ", "head + ");
    if (IsRing() && pass == 0) Line("      wait_copies<CHUNKS - 1>();\n      commit_copies();");
    if (!IsRing() || pass < program_.LastPass()) Line("      if (!({})) continue;", HasColumn());
  }
  void Read(const std::vector<NodeId>& streamed, bool edge) {
    for (const RowInput& input : inputs_) {
      if (IsKept(input) || std::ranges::find(streamed, input.id) == streamed.end()) continue;
      const std::string& name = Name(input.id);
      Line("      Vector<{}> {}_in;", Stored(input.id), name);
      if (edge)
        Line("      {0}_in.element[0] = {0}_row[column];", name);
      else if (schedule_.prefetch)
        Line("      if ({1}) {0}_in = {0}_next[chunk * BLOCK];", name, HasColumn());
      else
        Line("      read({0}_in, {0}_row + column);", name);
    }
  }
  /// Starts the copy of a chunk of the next row into the buffer of a chunk that the last pass has
  /// read.
  void RequestNext() {
    Line("      {{");
    if (schedule_.uneven)
      Line("        const int column = next_head + (chunk * THREADS_PER_ROW + thread) * VEC;");
    Request("      ", "group + group_step", "next_");
    Line("      }}\n      if (!({})) continue;", HasColumn());
  }
  static std::string Body(const ElementText& elements, const std::string& each, bool edge,
                          const std::string& before) {
    return edge ? before + elements.Scope(0) + elements.Scope(1) + each
                : LanesText(elements, each, "      ", before);
  }

  void ReducingPass(int pass) {
    const std::vector<NodeId> reductions = program_.ReductionsOf(pass);
    Line("    // Pass {}.", pass + 1);
    for (NodeId id : reductions) {
      Declare(id);
      if (const auto sum = SumBeside(id)) Declare(*sum);
    }
    Loop(pass, [&](ElementText& elements, bool edge) {
      std::string before, each, after;
      for (NodeId id : reductions) {
        const std::string value = elements.Of(NodeOf(id).operands[0], ElementAt(edge)).text;
        const auto sum = SumBeside(id);
        if (!sum) {
          each += fmt::format("        {0} = {1}::of({0}, ({2}){3});\n", ValueName(id),
                              CombinerName(CombineOf(id)), Computed(id), value);
          continue;
        }
        before += fmt::format("      float {}of_lane[{}];\n", ValueName(id), edge ? "1" : "VEC");
        each += fmt::format("        {}of_lane[lane] = {};\n", ValueName(id), value);
        after += fmt::format("      add_exponentials<{2}>({0}, {1}, {0}of_lane);\n", ValueName(id),
                             ValueName(*sum), program_.equals.contains(*sum));
      }
      return Body(elements, each, edge, before) + after;
    });
    for (NodeId id : reductions) Finish(id);
  }
  void Declare(NodeId id) {
    const DType dtype = NodeOf(id).type.dtype;
    Line("    {} {} = {};", Computed(id), ValueName(id),
         graph::CudaLiteral(dtype, graph::Neutral(CombineOf(id), dtype), false));
  }
  /// The sum of exponentials that is computed beside this maximum.
  std::optional<NodeId> SumBeside(NodeId top) const {
    const std::vector<NodeId> sums = program_.BesideOf(top);
    return sums.empty() ? std::nullopt : std::optional(sums[0]);
  }
  void Reduced(NodeId id, const std::string& finish) {
    Line("    {0} = row_reduce<{1}>({0}, slot){2};", ValueName(id), CombinerName(CombineOf(id)),
         finish);
    Share(id);
  }
  /// Combines over all threads of a row; sums of exponentials are scaled to the largest element of
  /// all.
  void Finish(NodeId id) {
    const auto sum = SumBeside(id);
    if (sum) Line("    const float {0}mine = {0};", ValueName(id));
    Reduced(id, CombineOf(id) == Combine::kMean ? " / COLS" : "");
    if (!sum) return;
    const bool equals = program_.equals.contains(*sum);
    Line("    {1} = scaled_sum<{2}>({1}, {0}mine, {0});", ValueName(id), ValueName(*sum), equals);
    // The sum becomes NaN if the maximum is infinite.
    Reduced(*sum, equals ? "" : fmt::format(" + ({0} - {0})", ValueName(id)));
  }

  void WritingPass() {
    Line("    // The results.");
    Loop(program_.pass_count, [&](ElementText& elements, bool edge) {
      if (!edge)
        return ResultsText(elements, program_.graph, program_.element_outputs, ElementAt(edge),
                           "row * COLS + column", "      ", "", "if (active) ");
      std::string each;
      for (const auto& output : program_.element_outputs)
        each += fmt::format("      if (active) store(out_{}[row * COLS + column], {});\n",
                            output.name, elements.Of(output.node, ElementAt(edge)).text);
      return Body(elements, each, edge, "");
    });
  }

  const ReductionProgram& program_;
  const KernelSpec& spec_;
  ReductionSchedule schedule_;
  std::vector<RowInput> inputs_;
  ElementText row_;                       ///< values that elements of a row share
  size_t written_ = 0;                    ///< of its statements
  std::map<NodeId, std::string> rows_;    ///< the shared values that are at hand
  std::map<NodeId, Coordinates> places_;  ///< of gathers
  std::string text_;
};

}  // namespace

std::vector<RowInput> RowInputsOf(const ReductionProgram& program) {
  std::vector<RowInput> inputs;
  for (NodeId id : program.graph.inputs()) {
    if (program.IsStreamed(id)) inputs.push_back({id});
  }
  for (int pass = 0; pass <= program.pass_count; ++pass) {
    const std::vector<NodeId> streamed = program.StreamedFor(program.WantedIn(pass));
    for (RowInput& input : inputs)
      input.passes += std::ranges::find(streamed, input.id) == streamed.end() ? 0 : 1;
  }
  std::erase_if(inputs, [](const RowInput& input) { return input.passes == 0; });
  return inputs;
}

std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec,
                          const ReductionSchedule& schedule) {
  return Indented(Writer(program, spec, schedule).Run());
}

}  // namespace atunner
