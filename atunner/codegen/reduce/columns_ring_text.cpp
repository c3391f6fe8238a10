// The ring kernel of an outer-axis reduction whose results need the elements once more, e.g.
// batch_norm: y = (x - mean) / sqrt(var). Two kernels would read x from DRAM twice. Here x is read
// once, waits in shared memory while the blocks agree on mean and var, and is written from there.
//
// A column is the set of elements that are reduced to one result. Each column is cut into SPLITS
// segments, and the segments are dealt out over blocks in turn: block b takes the segments b,
// b + gridDim.x, b + 2 * gridDim.x, …, each of which passes through these steps:
//
//   copy      cp.async brings the segment into a slot of a ring in shared memory, SLOTS - DELAY
//             segments ahead of the reduction.
//   reduce    The block's threads reduce it. Each warp posts its Partial (a sum, moments, or a
//             maximum with a sum of exponentials) to the exchange in shared memory.
//   publish   Warp BLOCK / 32 combines the warps' partials and writes the result to global memory,
//             each 32-bit word beside a flag in one 64-bit store, so that no fence is needed.
//   gather    Warp BLOCK / 32 + 1 polls the flags of all SPLITS segments of the column, combines
//             them in a fixed order (results do not depend on timing) and posts the total.
//   write     DELAY segments later the block's threads take the total, compute the results from the
//             slot, store them, and start the copy of a new segment into the same slot.
//
// With SLOTS = 5 and DELAY = 2, block b at turn t, where s(t) is its t-th segment:
//
//   slot      0        1        2        3        4
//   turn 2    write    reduced  reduce   copying  copying      writes s(0), reduces s(2)
//   turn 3    copying  write    reduced  reduce   copying      writes s(1), reduces s(3)
//
// No thread that copies, reduces or writes waits for another block, unless the total is still
// missing DELAY turns later: columns_family.cpp (Delay) chooses DELAY so that this is rare. All
// blocks must be resident at the same time, since they wait for one another; the launch has at most
// `rings` blocks per SM. A first kernel, clear_published, clears the flags.
//
// The helpers are in kernels/graph/columns_ring.cuh; this file writes the parts that depend on the
// graph: which inputs are copied, how an element is computed, and what a Partial holds.
#include <fmt/format.h>

#include "atunner/codegen/reduce/columns_kernel.h"
#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"

namespace atunner {

using graph::ElementText;
using graph::NodeId;

std::string ColumnsRing::Run() {
  const std::vector<NodeId> reductions = program_.ReductionsOf(0);
  std::string values, partial, totals;
  for (NodeId id : reductions) {
    values += ValueText(id);
    partial += fmt::format("reduce_segment<{}>({}value, segment.count, {}), ", sums_.Combiner(id),
                           sums_.Name(id), sums_.Neutral(id));
    totals += fmt::format("  {} {}[LANES] = {{total.{}}};\n", sums_.Type(id), sums_.Variable(id),
                          sums_.Name(id)) +
              sums_.Results(id);
  }
  std::string text =
      Prologue(reductions) +
      "  for (Turn reducing(0), writing(-DELAY); writing.number < all_segments; reducing.next(), "
      "writing.next()) {\n"
      "  const Segment segment(writing.number, all_segments);\n" +
      SegmentText("segment") + LoadEarly();
  text +=
      "  wait_copies<SLOTS - DELAY - 1>();\n  if (reducing.number < all_segments) {\n"
      "  const Segment segment(reducing.number, all_segments);\n"
      "  const int slot = reducing.slot;\n" +
      SegmentText("segment") + values + "  ring.post(reducing, Partial{" + partial +
      "});\n  }\n  const int slot = writing.slot;\n"
      "  const Segment next(writing.number + SLOTS * (int)gridDim.x, all_segments);\n"
      "  if (segment.count > 0) {\n  const Partial total = ring.total_of(writing);\n" +
      totals + "  const bool active = true;\n" + WritingPass();
  if (!program_.kept_outputs.empty()) text += KeptOutputs("segment.number");
  return text + "  }\n  copy_rest(copy, next, segment.count, slot);\n  }\n}\n";
}

/// The kernel that clears flags, the Partial structure, and the kernel up to its loop.
std::string ColumnsRing::Prologue(const std::vector<NodeId>& reductions) const {
  return "extern \"C\" __global__ void clear_published(unsigned long long* published, long long "
         "count) {\n"
         "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
         "  if (i < count) published[i] = 0;\n}\n\n" +
         PartialText(reductions) +
         Opening("kernel", "BLOCK + 64, RINGS", PartialsOf(program_, true)) + Buffers() +
         "  const int all_segments = kept_count * SPLITS;\n  __shared__ Exchange<Partial> ring;\n"
         "  ring.begin();\n"
         "  if (threadIdx.x >= BLOCK) return exchange_partials(ring, published, all_segments);\n"
         "  const auto copy = [&](const Segment& segment, int i, int slot) {\n" +
         SegmentText("segment") + Step() + Copies() +
         "  };\n  for (int slot = 0; slot < SLOTS - DELAY; ++slot) {\n"
         "    copy_rest(copy, Segment(blockIdx.x + slot * gridDim.x, all_segments), 0, slot);\n"
         "  }\n";
}

/// Lines that set the column, the first vector and the kept coordinates of a segment.
std::string ColumnsRing::SegmentText(const std::string& segment) const {
  return fmt::format("  const {0} kept = {1}.kept;\n  const int begin = {1}.begin;\n", Index(),
                     segment) +
         Coordinated("k", "kept", false, "  ");
}
/// Lines that set the reduced coordinates of vector number i of a segment.
std::string ColumnsRing::Step() const {
  return "    const int step = begin + i;\n" + Coordinated("r", "step * VEC", true, "    ");
}
/// A lambda that computes the operand of a reduction for the lanes of a vector.
std::string ColumnsRing::ValueText(NodeId id) {
  ElementText elements = Elements(0, "    ");
  const std::string loads = Loads(elements);
  const auto value = elements.Of(program_.graph.node(id).operands[0], ElementAt());
  Note(elements);
  return fmt::format("  const auto {}value = [&](int i, {} (&of)[VEC]) {{\n", sums_.Name(id),
                     sums_.Arithmetic(id)) +
         Step() + loads +
         LanesText(elements, fmt::format("      of[lane] = {};\n", value.text), "    ") + "  };\n";
}
/// The accumulators of a segment, and how those of a warp's threads are combined.
std::string ColumnsRing::PartialText(const std::vector<NodeId>& reductions) const {
  std::string members, none, parts, all;
  for (NodeId id : reductions) {
    members += fmt::format("  {} {};\n", sums_.Type(id), sums_.Name(id));
    none += sums_.Neutral(id) + ", ";
    parts += fmt::format(
        "    {0} {1}[N];\n#pragma unroll\n    for (int i = 0; i < N; ++i) {1}[i] = "
        "partials[i].{1};\n",
        sums_.Type(id), sums_.Name(id));
    all += fmt::format("combined_in_warp<{}>({}), ", sums_.Combiner(id), sums_.Name(id));
  }
  return fmt::format(
      "struct Partial {{\n{}  static DEVICE Partial none() {{ return {{{}}}; }}\n"
      "  template <int N> static DEVICE Partial of_warp(const Partial (&partials)[N]) {{\n{}    "
      "return {{{}}};\n  }}\n}};\n\n",
      members, none, parts, all);
}

/// Loads the values that all elements of a segment share before anything waits:
/// cross_entropy_backward took 1067 us with them and 1216 without (bfloat16, 32768 x 32000, on an
/// H200). They keep their type in memory, because a conversion would wait for them.
std::string ColumnsRing::LoadEarly() {
  std::string text;
  for (NodeId id : program_.graph.inputs()) {
    const graph::Shape& shape = sums_.TypeOf(id).shape;
    const bool kept = shape == program_.KeptShape() ||
                      // else it might have the shape of a column
                      (shape == program_.Part(false) && shape != program_.Part(true));
    if (!kept && !graph::ElementCount(shape).one()) continue;
    early_.push_back(id);
    text += fmt::format("  {0} early_{1} = in_{1}[{2}];\n  pin(early_{1});\n",
                        CudaName(sums_.TypeOf(id).dtype), program_.graph.node(id).name,
                        NumberText(shape, KeptAt(id)));
  }
  return text;
}

/// The inputs that pass through the ring. A thread reads only vectors that it copied itself, so
/// that no barrier is needed.
std::vector<NodeId> ColumnsRing::Buffered() const {
  std::vector<NodeId> buffered = program_.graph.inputs();
  std::erase_if(buffered, [&](NodeId id) { return !program_.IsStreamed(id); });
  return buffered;
}
std::string ColumnsRing::Buffers() const {
  std::string text = "  extern __shared__ uint4 shared_ring[];\n", before = "shared_ring";
  for (NodeId id : Buffered()) {
    text += fmt::format("  auto* const ring_{0} = (Vector<{1}>*){2};\n",
                        program_.graph.node(id).name, CudaName(sums_.TypeOf(id).dtype), before);
    before = fmt::format("(ring_{} + RING_STEPS)", program_.graph.node(id).name);
  }
  return text;
}
/// Copies vector i of a segment into its slot.
std::string ColumnsRing::Copies() const {
  std::string text;
  for (NodeId id : Buffered())
    text += fmt::format("    copy_async(&ring_{0}[slot * MAX_STEPS + i], in_{0} + {1});\n",
                        program_.graph.node(id).name, Offset());
  return text;
}
/// Lines that load vector i from its slot; `elements` then knows the inputs.
std::string ColumnsRing::Loads(ElementText& elements) const {
  std::string text;
  for (NodeId id : Buffered()) {
    const std::string& name = program_.graph.node(id).name;
    text += fmt::format("    const Vector<{0}> loaded_{1} = ring_{1}[slot * MAX_STEPS + i];\n",
                        CudaName(sums_.TypeOf(id).dtype), name);
    elements.Know(id, {fmt::format("get<{}>(loaded_{}, lane)", sums_.Arithmetic(id), name), 1},
                  ElementAt());
  }
  return text;
}

std::string ColumnsRing::WritingPass() {
  if (program_.element_outputs.empty()) return "";
  ElementText elements = Elements(program_.pass_count, "    ");
  const std::string loads = Loads(elements);
  const std::string results = ResultsText(elements, program_.graph, program_.element_outputs,
                                          ElementAt(), Offset(), "    ");
  Note(elements);
  return "  for_vectors(segment.count, [&](int i) {\n" + Step() + loads +
         "    if (i < next.count) copy(next, i, slot);\n" + results + "  });\n";
}

}  // namespace atunner
