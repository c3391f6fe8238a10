#include "atunner/codegen/reduce/columns_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"

namespace atunner {

using graph::Combine;
using graph::ElementText;
using graph::NodeId;

namespace {

const char* PlaceCombiner(Combine op) {
  return op == Combine::kArgMax ? "FirstExtreme<true>" : "FirstExtreme<false>";
}

}  // namespace

Combine Accumulators::CombineOf(NodeId id) const {
  return program_.graph.node(id).As<graph::Reduce>()->op;
}
std::string Accumulators::Arithmetic(NodeId id) const {
  return graph::CudaArithmetic(TypeOf(id).dtype, false);
}
bool Accumulators::HasExponentials(NodeId id) const {
  return CombineOf(id) == Combine::kMax && !program_.BesideOf(id).empty();
}
bool Accumulators::HasMoments(NodeId id) const {
  return CombineOf(id) != Combine::kMax && !program_.BesideOf(id).empty();
}
bool Accumulators::HasPlace(NodeId id) const {
  return CombineOf(id) == Combine::kArgMax || CombineOf(id) == Combine::kArgMin;
}
std::string Accumulators::ElementType(NodeId id) const {
  return graph::CudaArithmetic(TypeOf(program_.graph.node(id).operands[0]).dtype, false);
}
std::string Accumulators::Variable(NodeId id) const {
  if (HasPlace(id)) return Name(id) + "best";
  return program_.BesideOf(id).empty() ? Name(id) : Name(id) + "moments";
}
std::string Accumulators::ThreadVariable(NodeId id) const {
  return HasMoments(id) ? Name(id) + "gathered" : HasPlace(id) ? Variable(id) : Name(id);
}
std::string Accumulators::Type(NodeId id) const {
  return HasExponentials(id) ? "MaxExpSum"
         : HasMoments(id)    ? "Moments<" + Arithmetic(id) + ">"
         : HasPlace(id)      ? "Place<" + ElementType(id) + ">"
                             : Arithmetic(id);
}
std::string Accumulators::Combiner(NodeId id) const {
  return HasExponentials(id) ? "MergeMaxExpSum"
         : HasMoments(id)    ? "MergeMoments"
         : HasPlace(id)      ? PlaceCombiner(CombineOf(id))
                             : std::string(CombinerName(CombineOf(id)));
}
std::string Accumulators::CombinerOfLater(NodeId id) const {
  if (!HasPlace(id)) return Combiner(id);
  return CombineOf(id) == Combine::kArgMax ? "LaterExtreme<true>" : "LaterExtreme<false>";
}
std::string Accumulators::Neutral(NodeId id, const std::string& first) const {
  const DType dtype = TypeOf(id).dtype;
  if (HasMoments(id)) return Type(id) + "{}";
  if (HasPlace(id)) {
    const DType element = TypeOf(program_.graph.node(id).operands[0]).dtype;
    const Combine value = CombineOf(id) == Combine::kArgMax ? Combine::kMax : Combine::kMin;
    return fmt::format("{}{{{}, {}}}", Type(id),
                       graph::CudaLiteral(element, graph::Neutral(value, element), false), first);
  }
  const std::string neutral = graph::CudaLiteral(dtype, graph::Neutral(CombineOf(id), dtype),
                                                 false);
  return HasExponentials(id) ? "MaxExpSum{" + neutral + ", 0}" : neutral;
}

std::string Accumulators::Declare(NodeId id, const std::string& name, const char* lanes,
                                  const std::string& first) const {
  return fmt::format(
      "  {0} {1}[{3}];\n#pragma unroll\n  for (int lane = 0; lane < {3}; ++lane) {1}[lane] = "
      "{2};\n",
      Type(id), name, Neutral(id, first), lanes);
}
std::string Accumulators::SetCounts(NodeId id) const {
  if (!HasMoments(id)) return "";
  return fmt::format(
      "#pragma unroll\n  for (int lane = 0; lane < VEC; ++lane) {}[lane].count = taken;\n",
      ThreadVariable(id));
}
std::string Accumulators::CombineInBlock(NodeId id, const char* elements) const {
  if (!HasMoments(id))
    return fmt::format("  block_combine<{}>({}, kept_thread, reduced_thread);\n", Combiner(id),
                       ThreadVariable(id));
  return fmt::format(
      "  {0} {1}[LANES];\n  block_moments({2}, ({3})({4}), {1}, kept_thread, reduced_thread);\n",
      Type(id), Variable(id), ThreadVariable(id), Arithmetic(id), elements);
}
std::string Accumulators::Results(NodeId id) const {
  const std::string count = graph::CountText(program_.Part(true));
  const std::string lanes = "#pragma unroll\n  for (int lane = 0; lane < LANES; ++lane) ";
  if (HasPlace(id))
    return fmt::format("  {} {}[LANES];\n{}{}[lane] = {}[lane].at;\n", Arithmetic(id), Name(id),
                       lanes, Name(id), Variable(id));
  if (HasExponentials(id))  // largest - largest is NaN where the maximum is infinite
    return fmt::format(
        "  const float {0}[LANES] = {{{1}[0].largest}}, {2}[LANES] = {{{1}[0].sum + "
        "({1}[0].largest - {1}[0].largest)}};\n",
        Name(id), Variable(id), Name(program_.BesideOf(id)[0]));
  if (!HasMoments(id))
    return CombineOf(id) == Combine::kMean
               ? fmt::format("{}{}[lane] /= {};\n", lanes, Name(id), count)
               : "";
  std::string text = fmt::format("  {} {}[LANES];\n{}{}[lane] = {}[lane].mean;\n", Arithmetic(id),
                                 Name(id), lanes, Name(id), Variable(id));
  for (NodeId beside : program_.BesideOf(id))
    text += fmt::format("  {} {}[LANES];\n{}{}[lane] = {}[lane].m2{};\n", Arithmetic(beside),
                        Name(beside), lanes, Name(beside), Variable(id),
                        CombineOf(beside) == Combine::kMean ? " / " + count : "");
  return text;
}

std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring) {
  std::vector<ColumnsPartial> partials;
  size_t all = 0;  // bytes of the structure of all
  for (size_t id = 0; id < program.passes.size(); ++id) {
    const auto node = static_cast<NodeId>(id);
    if (program.passes[id] < 0 || program.beside.contains(node)) continue;
    const Accumulators sums(program);
    const bool place = sums.HasPlace(node), moments = !program.BesideOf(node).empty();
    const DType dtype = sums.TypeOf(place ? program.graph.node(node).operands[0] : node).dtype;
    const std::string type = graph::CudaArithmetic(dtype, false);
    const size_t bytes = IsFloat(dtype) && SizeOf(dtype) < 4 ? 4 : SizeOf(dtype);
    ColumnsPartial partial{node, program.ValueName(node) + "parts",
                           place     ? sums.Type(node)
                           : moments ? "Moments<" + type + ">"
                                     : type,
                           place     ? 2 * std::max<size_t>(bytes, 4)
                           : moments ? 3 * bytes
                                     : bytes};
    all += CeilDiv(partial.bytes, 8) * 8;
    partials.push_back(std::move(partial));
  }
  if (ring) return {{-1, "published", "Published<Partial>", 2 * all}};
  return partials;
}

ColumnsKernel::ColumnsKernel(const ReductionProgram& program, const KernelSpec& spec,
                             const ColumnsSchedule& schedule)
    : program_(program),
      spec_(spec),
      schedule_(schedule),
      sums_(program),
      lanes_(program.kept_inside ? schedule.vector : 1) {}

std::string ColumnsKernel::Opening(const std::string& name, const std::string& bounds,
                                   const std::vector<ColumnsPartial>& partials) const {
  std::string parameters = KernelParameters(spec_);
  for (const ColumnsPartial& partial : partials) {
    if (schedule_.splits > 1)
      parameters += fmt::format(", {}* __restrict__ {}", partial.type, partial.name);
  }
  const bool inside = program_.kept_inside;
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", bounds, name,
                     parameters) +
         fmt::format("  const int kept_thread = threadIdx.x {} {};\n", inside ? '%' : '/',
                     inside ? "KEPT_THREADS" : "REDUCED_THREADS") +
         fmt::format("  const int reduced_thread = threadIdx.x {} {};\n", inside ? '/' : '%',
                     inside ? "KEPT_THREADS" : "REDUCED_THREADS") +
         fmt::format("  const long long kept_count = {};\n",
                     graph::CountText(program_.Part(false)));
}

std::string ColumnsKernel::Coordinated(const char* prefix, const std::string& number, bool reduced,
                                       const std::string& indent) const {
  return CoordinateLines(
      program_.space, [&](size_t axis) { return program_.reduced[axis] == reduced; }, prefix,
      number, Index(), indent);
}
std::string ColumnsKernel::Index() const { return IndexType(program_.graph, spec_.dims); }
std::string ColumnsKernel::Offset() const {
  return "(" + NumberText(program_.space, ElementAt()) + ")";
}

ElementText ColumnsKernel::Elements(int pass, const std::string& indent) const {
  ElementText elements(
      program_.graph,
      {.vector = schedule_.vector, .indent = indent, .index = Index(), .narrow = schedule_.narrow});
  for (size_t id = 0; id < program_.passes.size(); ++id) {
    const auto node = static_cast<NodeId>(id);
    if (program_.passes[id] >= 0 && program_.passes[id] < pass)
      elements.Know(node, {sums_.Name(node) + Lane(), lanes_ > 1 ? 1 : 0}, KeptAt(node));
  }
  for (NodeId id : early_)
    elements.Know(
        id, {fmt::format("load<{}>(early_{})", sums_.Arithmetic(id), program_.graph.node(id).name)},
        KeptAt(id));
  return elements;
}

std::string ColumnsKernel::KeptOutputs(const char* first) {
  std::string text = fmt::format("\n  if (active && reduced_thread == 0 && {} == 0) {{\n", first);
  ElementText elements = Elements(program_.pass_count, "  ");
  std::string vectors, stores, writes;
  for (const graph::Output& output : program_.kept_outputs) {
    const auto value = elements.Of(output.node, KeptAt(output.node));
    if (lanes_ == 1) {
      stores += fmt::format("  store(out_{}[kept], {});\n", output.name, value.text);
      continue;
    }
    vectors += fmt::format("  Vector<{}> {}_out;\n", CudaName(sums_.TypeOf(output.node).dtype),
                           output.name);
    stores += fmt::format("    store({}_out.element[lane], {});\n", output.name, value.text);
    writes += fmt::format("  write(out_{0} + kept, {0}_out);\n", output.name);
  }
  Note(elements);
  if (lanes_ == 1) return text + elements.Scope(0) + elements.Scope(1) + stores + "  }\n";
  return text + LanesText(elements, stores, "  ", vectors) + writes + "  }\n";
}

}  // namespace atunner
