#include "atunner/codegen/reduce/columns_text.h"

#include <fmt/format.h>

#include "atunner/codegen/template/bound_template.h"
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
using graph::Shape;

class Writer {
 public:
  Writer(const ReductionProgram& program, const KernelSpec* spec, const ColumnsSchedule& schedule)
      : program_(program),
        spec_(spec),
        schedule_(schedule),
        lanes_(program.kept_inside ? schedule.vector : 1) {}

  /// One kernel, or one per pass and one that ends.
  std::string Run() {
    if (schedule_.ring) return Ring();
    if (schedule_.splits == 1) {
      std::string text = Head("kernel");
      for (int pass = 0; pass < program_.pass_count; ++pass) text += Pass(pass);
      return text + Finish() + "}\n";
    }
    std::string text, before;
    for (int pass = 0; pass < program_.pass_count; ++pass) {
      text += Head(fmt::format("pass{}", pass + 1)) + before + Pass(pass) + Partials(pass) +
              "}\n\n";
      before += Collected(pass);
    }
    return text + Head("finish") + before + Finish() + "}\n";
  }
  bool failed() const { return failed_; }

 private:
  const graph::TensorType& TypeOf(NodeId id) const { return program_.graph.node(id).type; }
  const Reduce& ReduceOf(NodeId id) const { return *program_.graph.node(id).As<Reduce>(); }
  std::string Name(NodeId id) const { return program_.ValueName(id); }
  std::string Arithmetic(NodeId id) const { return graph::CudaArithmetic(TypeOf(id).dtype, false); }

  /// Each part of a strip is copied, measured, and written once others were measured, when what
  /// other blocks have found about its strip is there (kernels/graph/columns_ring.cuh).
  std::string Ring() {
    const std::vector<NodeId> reductions = program_.ReductionsOf(0);
    std::string values, found;
    for (NodeId id : reductions) {
      values += ValueText(id);
      found += fmt::format("measured<{}>({}value, part.count, {}), ", Combiner(id), Name(id),
                           Neutral(id));
    }
    std::string text =
        "extern \"C\" __global__ void nothing_told(unsigned long long* told, long long count) {\n"
        "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
        "  if (i < count) told[i] = 0;\n}\n\n" +
        FoundText(reductions) + Opening("kernel") +
        "  const int all_parts = all_kept * SPLITS;\n  __shared__ Exchange<Found> ring;\n  "
        "ring.begin();\n"
        "  if (threadIdx.x >= BLOCK) return tell_and_await(ring, told, all_parts);\n"
        "  const auto copy = [&](const Part& part, int i, int place) {\n" +
        PartText("part") + Step() + Copies() +
        "  };\n  for (int place = 0; place < PLACES - LATE; ++place) {\n"
        "    copy_rest(copy, Part(blockIdx.x + place * gridDim.x, all_parts), 0, place);\n  }\n"
        "  for (Turn now(0), late(-LATE); late.number < all_parts; now.next(), late.next()) {\n"
        "  const Part part(late.number, all_parts);\n" +
        PartText("part") + Early() +
        "  wait_copies<PLACES - LATE - 1>();\n  if (now.number < all_parts) {\n"
        "  const Part part(now.number, all_parts);\n  const int place = now.place;\n" +
        PartText("part") + values + "  ring.leave(now, Found{" + found +
        "});\n  }\n  const int place = late.place;\n"
        "  const Part next(late.number + PLACES * (int)gridDim.x, all_parts);\n"
        "  if (part.count > 0) {\n  const Found all = ring.known_of(late);\n";
    for (NodeId id : reductions)
      text += fmt::format("  {} {}[LANES] = {{all.{}}};\n", SumType(id), Sums(id), Name(id)) +
              Divided(id);
    return text + "  const bool active = true;\n" + Finish() +
           "  }\n  copy_rest(copy, next, part.count, place);\n  }\n}\n";
  }
  /// Where a part lies.
  std::string PartText(const std::string& part) const {
    return fmt::format("  const {0} kept = {1}.kept;\n  const int begin = {1}.begin;\n", Index(),
                       part) +
           Coordinated("k", "kept", false, "  ");
  }
  /// Of a thread's vector number i of a part.
  std::string Step() const {
    return "    const int step = begin + i;\n" + Coordinated("r", "step * VEC", true, "    ");
  }
  /// A function that says what the lanes of a vector add to a reduction.
  std::string ValueText(NodeId id) {
    ElementText elements = Elements(0, "    ");
    const std::string parked = Unparked(elements);
    const auto value = elements.Of(program_.graph.node(id).operands[0], ElementAt());
    failed_ = failed_ || elements.failed();
    return fmt::format("  const auto {}value = [&](int i, {} (&of)[VEC]) {{\n", Name(id),
                       Arithmetic(id)) +
           Step() + parked +
           LanesText(elements, fmt::format("      of[lane] = {};\n", value.text), "    ") +
           "  };\n";
  }
  /// What a part comes to, and what those of a warp's threads come to.
  std::string FoundText(const std::vector<NodeId>& reductions) const {
    std::string members, none, parts, all;
    for (NodeId id : reductions) {
      members += fmt::format("  {} {};\n", SumType(id), Name(id));
      none += Neutral(id) + ", ";
      parts += fmt::format(
          "    {0} {1}[N];\n#pragma unroll\n    for (int i = 0; i < N; ++i) {1}[i] = "
          "found[i].{1};\n",
          SumType(id), Name(id));
      all += fmt::format("combined_in_warp<{}>({}), ", Combiner(id), Name(id));
    }
    return fmt::format(
        "struct Found {{\n{}  static DEVICE Found none() {{ return {{{}}}; }}\n"
        "  template <int N> static DEVICE Found of_warp(const Found (&found)[N]) {{\n{}    return "
        "{{{}}};\n  "
        "}}\n}};\n\n",
        members, none, parts, all);
  }

  /// Parameters, which part of the work is this thread's, and its kept coordinates.
  std::string Head(const std::string& name) const {
    return Opening(name) +
           "  const long long kept = ((long long)blockIdx.x * KEPT_THREADS + kept_thread) * "
           "LANES;\n"
           "  const bool active = kept < all_kept;  // threads beyond the end only meet at "
           "barriers\n"
           "  const long long begin = STEPS * blockIdx.y / gridDim.y;\n"
           "  const long long end = active ? STEPS * (blockIdx.y + 1) / gridDim.y : 0;\n" +
           Coordinated("k", "active ? kept : 0", false, "  ");
  }
  /// What all elements of a strip share is asked for before anybody waits: cross_entropy_backward
  /// took 1216 us in place of 1067 where rows did not (bfloat16, 32768 x 32000, on an H200). As it
  /// lies in memory: a conversion here would wait.
  std::string Early() {
    std::string text;
    for (NodeId id : program_.graph.inputs()) {
      const Shape& shape = TypeOf(id).shape;
      const bool kept = shape == program_.KeptShape() ||
                        // or it might be of columns
                        (shape == program_.Part(false) && shape != program_.Part(true));
      if (!kept && !graph::ElementCount(shape).one()) continue;
      early_.push_back(id);
      text += fmt::format("  {0} early_{1} = in_{1}[{2}];\n  pin(early_{1});\n",
                          CudaName(TypeOf(id).dtype), program_.graph.node(id).name,
                          NumberText(shape, KeptAt(id)));
    }
    return text;
  }
  std::string Opening(const std::string& name) const {
    std::string parameters = KernelParameters(*spec_);
    for (const ColumnsPartial& partial : PartialsOf(program_, schedule_.ring)) {
      if (schedule_.splits > 1)
        parameters += fmt::format(", {}* __restrict__ {}", partial.type, partial.name);
    }
    std::string text = fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(BLOCK{}) {}({}) {{\n",
        schedule_.ring ? " + 64, RINGS" : "", name, parameters);
    const bool inside = program_.kept_inside;
    text += fmt::format("  const int kept_thread = threadIdx.x {} {};\n", inside ? '%' : '/',
                        inside ? "KEPT_THREADS" : "REDUCED_THREADS");
    text += fmt::format("  const int reduced_thread = threadIdx.x {} {};\n", inside ? '/' : '%',
                        inside ? "KEPT_THREADS" : "REDUCED_THREADS");
    text += fmt::format("  const long long all_kept = {};\n",
                        graph::CountText(program_.Part(false)));
    return text + ParkedPlaces();
  }

  /// What rings park. Each thread parks what it alone reads: nobody has to wait.
  std::vector<NodeId> Parked() const {
    std::vector<NodeId> parked = program_.graph.inputs();
    std::erase_if(parked, [&](NodeId id) { return !schedule_.ring || !program_.IsStreamed(id); });
    return parked;
  }
  std::string ParkedPlaces() const {
    std::string text = schedule_.ring ? "  extern __shared__ uint4 parked[];\n" : "",
                before = "parked";
    for (NodeId id : Parked()) {
      text += fmt::format("  auto* const parked_{0} = (Vector<{1}>*){2};\n",
                          program_.graph.node(id).name, CudaName(TypeOf(id).dtype), before);
      before = fmt::format("(parked_{} + RING_STEPS)", program_.graph.node(id).name);
    }
    return text;
  }
  /// Copies vector i of a part to its place.
  std::string Copies() const {
    std::string text;
    for (NodeId id : Parked())
      text += fmt::format("    copy_async(&parked_{0}[place * MOST_STEPS + i], in_{0} + {1});\n",
                          program_.graph.node(id).name, Offset());
    return text;
  }
  /// Lines that make parked elements known.
  std::string Unparked(ElementText& elements) const {
    std::string text;
    for (NodeId id : Parked()) {
      const std::string& name = program_.graph.node(id).name;
      text += fmt::format("    const Vector<{0}> now_{1} = parked_{1}[place * MOST_STEPS + i];\n",
                          CudaName(TypeOf(id).dtype), name);
      elements.Know(id, {fmt::format("get<{}>(now_{}, lane)", Arithmetic(id), name), 1},
                    ElementAt());
    }
    return text;
  }
  /// Of an element of the space, from the begin of a tensor of its shape. In parentheses: one
  /// address is computed.
  std::string Offset() const { return "(" + NumberText(program_.space, ElementAt()) + ")"; }

  /// k0, k2, … of the kept axes or r1, … of the reduced ones, from their elements' number.
  std::string Coordinated(const char* prefix, const std::string& number, bool reduced,
                          const std::string& indent) const {
    return CoordinateLines(
        program_.space, [&](size_t axis) { return program_.reduced[axis] == reduced; }, prefix,
        number, Index(), indent);
  }
  std::string Index() const { return IndexType(program_.graph, spec_->dims); }

  Coordinates ElementAt() const { return program_.ElementAt(schedule_.vector); }
  Coordinates KeptAt(NodeId id) const { return program_.SharedAt(id, schedule_.vector); }

  /// Elements where the results of the passes before `pass` are at hand.
  ElementText Elements(int pass, const std::string& indent) const {
    ElementText elements(program_.graph, {.vector = schedule_.vector,
                                          .indent = indent,
                                          .index = Index(),
                                          .narrow = schedule_.narrow});
    for (size_t id = 0; id < program_.passes.size(); ++id) {
      const auto node = static_cast<NodeId>(id);
      if (program_.passes[id] >= 0 && program_.passes[id] < pass)
        elements.Know(node, {Name(node) + Lane(), lanes_ > 1 ? 1 : 0}, KeptAt(node));
    }
    for (NodeId id : early_)
      elements.Know(
          id, {fmt::format("load<{}>(early_{})", Arithmetic(id), program_.graph.node(id).name)},
          KeptAt(id));
    return elements;
  }
  bool HasExponentials(NodeId id) const {
    return ReduceOf(id).op == Combine::kMax && !program_.BesideOf(id).empty();
  }
  bool HasSpread(NodeId id) const {
    return ReduceOf(id).op != Combine::kMax && !program_.BesideOf(id).empty();
  }
  /// What a pass adds up in, for each lane: the result's type, or moments.
  std::string Sums(NodeId id) const {
    return program_.BesideOf(id).empty() ? Name(id) : Name(id) + "moments";
  }
  std::string SumType(NodeId id) const {
    return HasExponentials(id) ? "Peak"
           : HasSpread(id)     ? "Moments<" + Arithmetic(id) + ">"
                               : Arithmetic(id);
  }
  std::string Combiner(NodeId id) const {
    return HasExponentials(id) ? "Higher"
           : HasSpread(id)     ? "Merged"
                               : std::string(CombinerName(ReduceOf(id).op));
  }
  std::string Neutral(NodeId id) const {
    const DType dtype = TypeOf(id).dtype;
    if (HasSpread(id)) return SumType(id) + "{}";
    const std::string neutral = graph::CudaLiteral(dtype, graph::Neutral(ReduceOf(id).op, dtype),
                                                   false);
    return HasExponentials(id) ? "Peak{" + neutral + ", 0}" : neutral;
  }
  std::string Lane() const { return lanes_ > 1 ? "[lane]" : "[0]"; }

  /// Loads from memory stay further ahead of what is computed where steps have 64 bits: sums over
  /// axis 0 took 123 us in place of 153 (bfloat16, 16384 x 14336, on an H200). What is held is read
  /// by the first pass and known to the others: the compiler sees loads of the same places in loops
  /// without conditions, and nothing may write there.
  std::string OpenLoop() const {
    const std::string head =
        schedule_.hold
            ? "#pragma unroll\n  for (int turn = 0; turn < STEPS / REDUCED_THREADS; ++turn) {\n"
              "    const int step = turn * REDUCED_THREADS + reduced_thread;\n"
            : fmt::format(
                  "#pragma unroll {}\n  for (long long step = begin + reduced_thread; step < end; "
                  "step += REDUCED_THREADS) {{\n",
                  schedule_.unroll);
    return head + Coordinated("r", program_.kept_inside ? "step" : "step * VEC", true, "    ");
  }
  std::string Declare(NodeId id, const std::string& name, const char* lanes) const {
    return fmt::format(
        "  {0} {1}[{3}];\n#pragma unroll\n  for (int lane = 0; lane < {3}; ++lane) {1}[lane] = "
        "{2};\n",
        SumType(id), name, Neutral(id), lanes);
  }
  /// Over the threads of a block, which have gathered so many elements.
  std::string Combined(NodeId id, const char* elements) const {
    if (!HasSpread(id))
      return fmt::format("  block_combine<{}>({}, kept_thread, reduced_thread);\n", Combiner(id),
                         Name(id));
    return fmt::format(
        "  {0} {1}[LANES];\n  block_moments({2}, ({3})({4}), {1}, kept_thread, reduced_thread);\n",
        SumType(id), Sums(id), Gathered(id), Arithmetic(id), elements);
  }
  /// The results, once everything is added up.
  std::string Divided(NodeId id) const {
    const std::string count = graph::CountText(program_.Part(true));
    const std::string lanes = "#pragma unroll\n  for (int lane = 0; lane < LANES; ++lane) ";
    if (HasExponentials(id))  // infinities differ from themselves by no number
      return fmt::format(
          "  const float {0}[LANES] = {{{1}[0].top}}, {2}[LANES] = {{{1}[0].sum + ({1}[0].top - "
          "{1}[0].top)}};\n",
          Name(id), Sums(id), Name(program_.BesideOf(id)[0]));
    if (!HasSpread(id))
      return ReduceOf(id).op == Combine::kMean
                 ? fmt::format("{}{}[lane] /= {};\n", lanes, Name(id), count)
                 : "";
    std::string text = fmt::format("  {} {}[LANES];\n{}{}[lane] = {}[lane].mean;\n", Arithmetic(id),
                                   Name(id), lanes, Name(id), Sums(id));
    for (NodeId spread : program_.BesideOf(id))
      text += fmt::format("  {} {}[LANES];\n{}{}[lane] = {}[lane].spread{};\n", Arithmetic(spread),
                          Name(spread), lanes, Name(spread), Sums(id),
                          ReduceOf(spread).op == Combine::kMean ? " / " + count : "");
    return text;
  }

  std::string Pass(int pass) {
    const std::vector<NodeId> reductions = program_.ReductionsOf(pass);
    std::string text = fmt::format("\n  // Pass {}.\n", pass + 1);
    ElementText elements = Elements(pass, "    ");
    std::string sums, counts, share;
    for (NodeId id : reductions) {
      text += Declare(id, Gathered(id), HasSpread(id) ? "VEC" : "LANES");
      const auto value = elements.Of(program_.graph.node(id).operands[0], ElementAt());
      if (HasSpread(id)) {
        counts = "  int taken = 0;\n";
        share += fmt::format("    const {0} {1}share = quotient(({0})1, ({0})(taken + 1));\n",
                             Arithmetic(id), Name(id));
        sums += fmt::format("      {}[lane].add({}, {}share);\n", Gathered(id), value.text,
                            Name(id));
      } else {
        sums += fmt::format("      {0}{1} = {2}::of({0}{1}, ({3}){4});\n", Name(id), Lane(),
                            Combiner(id), Arithmetic(id), value.text);
      }
    }
    if (!share.empty()) share += "    ++taken;\n";
    text += counts + OpenLoop() + share + LanesText(elements, sums, "    ") + "  }\n";
    for (NodeId id : reductions)
      text += Counted(id) + Combined(id, "(end - begin) * (VEC / LANES)");
    if (schedule_.splits == 1) {
      for (NodeId id : reductions) text += Divided(id);
    }
    failed_ = failed_ || elements.failed();
    return text;
  }
  std::string Counted(NodeId id) const {
    if (!HasSpread(id)) return "";
    return fmt::format(
        "#pragma unroll\n  for (int lane = 0; lane < VEC; ++lane) {}[lane].count = taken;\n",
        Gathered(id));
  }
  /// What a thread adds up in by itself: of moments every lane its own.
  std::string Gathered(NodeId id) const { return HasSpread(id) ? Name(id) + "gathered" : Name(id); }

  std::string Partials(int pass) const {
    std::string text = "  if (active && reduced_thread == 0) {\n";
    text += "#pragma unroll\n  for (int lane = 0; lane < LANES; ++lane) {\n";
    for (NodeId id : program_.ReductionsOf(pass))
      text += fmt::format("    {}parts[{}] = {}[lane];\n", Name(id), PartPlace("blockIdx.y"),
                          Sums(id));
    return text + "  }\n  }\n";
  }

  /// Neighbouring threads write or read neighbours.
  std::string PartPlace(const std::string& part) const {
    return program_.kept_inside ? part + " * all_kept + kept + lane" : "kept * SPLITS + " + part;
  }

  /// The results of a pass from what blocks have left, in order.
  std::string Collected(int pass) const {
    std::string text;
    const std::vector<NodeId> reductions = program_.ReductionsOf(pass);
    for (NodeId id : reductions) text += Declare(id, Gathered(id), "LANES");
    text +=
        "  for (int part = reduced_thread; part < SPLITS && active; part += REDUCED_THREADS) {\n";
    text += "#pragma unroll\n    for (int lane = 0; lane < LANES; ++lane) {\n";
    for (NodeId id : reductions)
      text += fmt::format("      {0}[lane] = {1}::of({0}[lane], {2}parts[{3}]);\n", Gathered(id),
                          Combiner(id), Name(id), PartPlace("part"));
    text += "    }\n  }\n";
    for (NodeId id : reductions) text += Combined(id, "STEPS * (VEC / LANES)") + Divided(id);
    return text;
  }

  std::string Finish() {
    std::string text;
    if (!program_.element_outputs.empty()) text += WritingPass();
    if (!program_.kept_outputs.empty()) text += KeptOutputs();
    return text;
  }

  std::string WritingPass() {
    ElementText elements = Elements(program_.pass_count, "    ");
    const std::string parked = Unparked(elements);
    const std::string results = ResultsText(elements, program_.graph, program_.element_outputs,
                                            ElementAt(), Offset(), "    ");
    failed_ = failed_ || elements.failed();
    if (!schedule_.ring) return "\n  // The results.\n" + OpenLoop() + results + "  }\n";
    return "  for_vectors(part.count, [&](int i) {\n" + Step() + parked +
           "    if (i < next.count) copy(next, i, place);\n" + results + "  });\n";
  }

  /// One value per kept element; of several blocks that know it the first writes.
  std::string KeptOutputs() {
    std::string text = fmt::format("\n  if (active && reduced_thread == 0 && {} == 0) {{\n",
                                   schedule_.ring ? "part.number" : "blockIdx.y");
    ElementText elements = Elements(program_.pass_count, "  ");
    std::string vectors, stores, writes;
    for (const graph::Output& output : program_.kept_outputs) {
      const auto value = elements.Of(output.node, KeptAt(output.node));
      if (lanes_ == 1) {
        stores += fmt::format("  store(out_{}[kept], {});\n", output.name, value.text);
        continue;
      }
      vectors += fmt::format("  Vector<{}> {}_out;\n", CudaName(TypeOf(output.node).dtype),
                             output.name);
      stores += fmt::format("    store({}_out.element[lane], {});\n", output.name, value.text);
      writes += fmt::format("  write(out_{0} + kept, {0}_out);\n", output.name);
    }
    failed_ = failed_ || elements.failed();
    if (lanes_ == 1) return text + elements.Scope(0) + elements.Scope(1) + stores + "  }\n";
    return text + LanesText(elements, stores, "  ", vectors) + writes + "  }\n";
  }

  const ReductionProgram& program_;
  const KernelSpec* spec_;
  ColumnsSchedule schedule_;
  int64_t lanes_;              ///< kept elements of a thread
  std::vector<NodeId> early_;  ///< inputs that were asked for already
  bool failed_ = false;
};

}  // namespace

std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring) {
  std::vector<ColumnsPartial> partials;
  size_t all = 0;  // in a structure
  for (size_t id = 0; id < program.passes.size(); ++id) {
    const auto node = static_cast<NodeId>(id);
    if (program.passes[id] < 0 || program.beside.contains(node)) continue;
    const DType dtype = program.graph.node(node).type.dtype;
    const std::string type = graph::CudaArithmetic(dtype, false);
    const size_t bytes = IsFloat(dtype) && SizeOf(dtype) < 4 ? 4 : SizeOf(dtype);
    const bool moments = !program.BesideOf(node).empty();
    ColumnsPartial partial{node, program.ValueName(node) + "parts",
                           moments ? "Moments<" + type + ">" : type, moments ? 3 * bytes : bytes};
    all += CeilDiv(partial.bytes, 8) * 8;
    partials.push_back(std::move(partial));
  }
  if (ring) return {{-1, "told", "Told<Found>", 2 * all}};
  return partials;
}

std::vector<std::string> ColumnsKernels(const ReductionProgram& program,
                                        const ColumnsSchedule& schedule) {
  if (schedule.splits == 1 || schedule.ring) return {"kernel"};
  std::vector<std::string> names;
  for (int pass = 0; pass < program.pass_count; ++pass)
    names.push_back(fmt::format("pass{}", pass + 1));
  names.emplace_back("finish");
  return names;
}

std::string ColumnsText(const ReductionProgram& program, const KernelSpec& spec,
                        const ColumnsSchedule& schedule) {
  return Indented(Writer(program, &spec, schedule).Run());
}

bool ColumnsCanBeWritten(const ReductionProgram& program, const ColumnsSchedule& schedule) {
  const KernelSpec none;
  Writer writer(program, &none, schedule);
  writer.Run();
  return !writer.failed();
}

}  // namespace atunner
