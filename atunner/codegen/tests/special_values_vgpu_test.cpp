// Pointwise kernels where floats are unlike numbers: infinities, NaN, zeros of both signs, poles
// and kinks. The judge leaves out most of it, since a constant passes there.
#include <array>
#include <cmath>
#include <cstring>

#include "atunner/codegen/tests/graph_kernels_test.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/evaluate/evaluate.h"

namespace atunner {
namespace {

constexpr std::array kValues = {
    0.0,  -0.0, 1.0,       -1.0,     0.5,
    -0.5, 2.0,  -2.0,      3.0,      6.0,
    -3.5, 40.0, -HUGE_VAL, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()};
constexpr size_t kCount = kValues.size() * kValues.size();
constexpr size_t kTogether = 12;  // as the operators' own tests have it

class SpecialValues : public GraphKernels {
 protected:
  SpecialValues() : GraphKernels("H200") {}

  /// Every pair of the values in the first two inputs; one of them, too, in all others.
  static graph::Tensor InputOf(size_t input) {
    std::vector<double> values;
    for (size_t i = 0; i < kCount; ++i)
      values.push_back(input == 0   ? kValues[i / kValues.size()]
                       : input == 1 ? kValues[i % kValues.size()]
                                    : 0.5 + static_cast<double>(i % 3));
    return graph::Tensor::Of(DType::kFloat32, {static_cast<int64_t>(kCount)}, values);
  }

  void CheckTogether(const std::vector<graph::ValidGraph>& graphs) {
    const graph::ValidGraph graph = graph::Together("special", graphs).value();
    const KernelSpec spec = SpecOfGraph(graph, {}).value();
    const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
    const RenderedKernel kernel = schedule->Render(schedule->Default()).value();
    const CompileOutcome outcome =
        compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error << kernel.source.text;
    const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
    std::vector<graph::Tensor> inputs;
    for (const graph::NodeId id : graph.inputs()) {
      inputs.push_back(InputOf(inputs.size()));
      std::vector<float> narrow;
      for (const double value : inputs.back().Reals()) narrow.push_back(static_cast<float>(value));
      ASSERT_TRUE(gpu_.CopyIn(buffers.Find(graph.node(id).name)->address,
                              std::as_bytes(std::span(narrow))));
    }
    const auto loaded = gpu_.Load(*outcome.module).value();
    const BoundPlan bound = BindPlan(gpu_, kernel.plan, spec, buffers).value();
    ASSERT_TRUE(RunPlan(gpu_, *loaded, bound, {.timeout_seconds = 60, .blocks = {}})->completed());
    const auto wanted = graph::Evaluate(graph, inputs).value();
    for (size_t i = 0; i < wanted.size(); ++i)
      CheckOutput(*buffers.Find(graph.outputs()[i].name), inputs, wanted[i].Reals());
  }

  void CheckOutput(const TaskBuffers::Tensor& output, const std::vector<graph::Tensor>& inputs,
                   const std::vector<double>& wanted) {
    const DType dtype = output.spec->dtype;
    std::vector<std::byte> bytes(kCount * SizeOf(dtype));
    ASSERT_TRUE(gpu_.CopyOut(bytes, output.address));
    for (size_t i = 0; i < kCount; ++i) {
      const double got = LoadElement(dtype, bytes.data(), i);
      // What float32 does not hold.
      const double want = std::isfinite(wanted[i]) ? static_cast<float>(wanted[i]) : wanted[i];
      const bool near = std::fabs(got - want) <= 1e-4 * std::fabs(want) + 1e-6;
      const bool equal = got == want || (std::isnan(got) && std::isnan(want)) || near;
      EXPECT_TRUE(equal) << output.spec->name << " of " << inputs[0].cells[i].real << ", "
                         << (inputs.size() > 1 ? inputs[1].cells[i].real : 0) << ": " << got
                         << " for " << want;
    }
    ++verified_;
  }
};

TEST_F(SpecialValues, KernelsDoWhatTheEvaluatorDoes) {
  std::vector<graph::ValidGraph> graphs;
  for (const graph::LibraryOperator& op : graph::Library()) {
    if (!op.pointwise || op.name.starts_with("bitwise")) continue;
    graphs.push_back(
        graph::Build({&op, false}, {DType::kFloat32, {{static_cast<int64_t>(kCount)}}, {}})
            .value());
    if (graphs.size() == kTogether) CheckTogether(std::exchange(graphs, {}));
  }
  CheckTogether(graphs);
  EXPECT_GT(verified_, 110u);
}

}  // namespace
}  // namespace atunner
