#include "faces/recorder/tuned_graph.h"

#include <algorithm>
#include <utility>

namespace atunner::recorder {
namespace {

constexpr int kMemoryDevice = 2;  // CU_MEMORYTYPE_DEVICE

/// The node's parameters; `pointers` must outlive them.
KernelNodeParams ParamsOf(const KernelStep& step, const Replaced& by,
                          std::vector<void*>& pointers) {
  const capture::LaunchConfiguration& to = by.tuned != nullptr ? by.to : step.configuration;
  pointers = step.Pointers();
  KernelNodeParams params{};
  params.function = by.tuned != nullptr ? by.tuned->function : step.function;
  params.kernel = params.function == nullptr ? step.of_library : nullptr;
  params.grid_x = to.grid.x, params.grid_y = to.grid.y, params.grid_z = to.grid.z;
  params.block_x = to.block.x, params.block_y = to.block.y, params.block_z = to.block.z;
  params.shared_bytes = to.shared_bytes;
  params.params = pointers.data();
  return params;
}

/// Nodes before or after one.
std::vector<GraphNode> Neighbours(int (*get)(GraphNode, GraphNode*, size_t*), GraphNode node) {
  size_t count = 0;
  if (get(node, nullptr, &count) != cuda::kSuccess) return {};
  std::vector<GraphNode> nodes(count);
  if (count > 0 && get(node, nodes.data(), &count) != cuda::kSuccess) return {};
  return nodes;
}

}  // namespace

TunedGraph::~TunedGraph() {
  if (exec_ != nullptr) (void)driver_.cuGraphExecDestroy(exec_);
}

bool TunedGraph::Prepare(ProgramGraph& graph, const Choose& choose) {
  return exec_ == nullptr ? Build(graph, choose) : Follow(graph, choose);
}

bool TunedGraph::Build(ProgramGraph& graph, const Choose& choose) {
  for (GraphStep& step : graph.steps()) {
    auto* kernel = std::get_if<KernelStep>(&step.work);
    const Replaced by = kernel != nullptr ? choose(*kernel) : Replaced{};
    chosen_.push_back(by.tuned);
    if (kernel != nullptr && !BuildNode(step, *kernel, by)) return false;
  }
  return driver_.cuGraphInstantiateWithFlags(&exec_, graph.copy(), 0) == cuda::kSuccess;
}

bool TunedGraph::BuildNode(const GraphStep& step, KernelStep& kernel, const Replaced& by) {
  const bool changed = std::exchange(kernel.changed, false);
  if (by.tuned == nullptr && !changed) return true;
  std::vector<void*> pointers;
  const KernelNodeParams params = ParamsOf(kernel, by, pointers);
  if (driver_.cuGraphKernelNodeSetParams_v2(step.copy, &params) != cuda::kSuccess) return false;
  if (by.tuned == nullptr) return true;
  if (by.to.cluster.Count() > 1 || kernel.configuration.cluster.Count() > 1) {
    decltype(cuda::LaunchAttribute::value) value{};
    value.cluster = {by.to.cluster.x, by.to.cluster.y, by.to.cluster.z};
    if (driver_.cuGraphKernelNodeSetAttribute(step.copy, cuda::kLaunchAttributeClusterDimension,
                                              &value) != cuda::kSuccess)
      return false;
  }
  return CopySymbols(step, *by.tuned);
}

bool TunedGraph::Follow(ProgramGraph& graph, const Choose& choose) {
  std::vector<void*> pointers;
  for (size_t i = 0; i < graph.steps().size(); ++i) {
    GraphStep& step = graph.steps()[i];
    auto* kernel = std::get_if<KernelStep>(&step.work);
    if (kernel == nullptr || !std::exchange(kernel->changed, false)) continue;
    const Replaced by = choose(*kernel);
    if (by.tuned != chosen_.at(i)) return false;  // it needs other copies and attributes
    const KernelNodeParams params = ParamsOf(*kernel, by, pointers);
    if (driver_.cuGraphExecKernelNodeSetParams_v2(exec_, step.copy, &params) != cuda::kSuccess)
      return false;
  }
  return true;
}

bool TunedGraph::AddCopy(const GraphStep& step, const SymbolPair& symbol, bool back) {
  ArrayCopy copy{};
  copy.from.memory = copy.to.memory = kMemoryDevice;
  copy.from.device = back ? symbol.tuned : symbol.program;
  copy.to.device = back ? symbol.program : symbol.tuned;
  copy.width_bytes = symbol.bytes;
  copy.height = copy.depth = 1;
  const std::vector<GraphNode> before = back ? std::vector{step.copy}
                                             : Neighbours(driver_.cuGraphNodeGetDependencies,
                                                          step.copy);
  const std::vector<GraphNode> after = back ? Neighbours(driver_.cuGraphNodeGetDependentNodes,
                                                         step.copy)
                                            : std::vector{step.copy};
  Context context = nullptr;
  GraphNode node = nullptr;
  driver_.cuCtxGetCurrent(&context);
  if (driver_.cuGraphAddMemcpyNode(&node, step.copy_graph, before.data(), before.size(), &copy,
                                   context) != cuda::kSuccess)
    return false;
  const std::vector<GraphNode> from(after.size(), node);
  return after.empty() || driver_.cuGraphAddDependencies(step.copy_graph, from.data(), after.data(),
                                                         after.size()) == cuda::kSuccess;
}

bool TunedGraph::CopySymbols(const GraphStep& step, const TunedKernel& tuned) {
  return std::ranges::all_of(tuned.symbols, [&](const SymbolPair& symbol) {
    return AddCopy(step, symbol, false) && (symbol.constant || AddCopy(step, symbol, true));
  });
}

}  // namespace atunner::recorder
