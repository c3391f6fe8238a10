#include "faces/recorder/program_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "faces/recorder/recorder.h"

namespace atunner::recorder {
namespace {

std::string NameOf(int type) {
  switch (type) {
    case 8:
    case 9:
      return "an external semaphore";
    case 10:
    case 11:
      return "an allocation";
    case 13:
      return "a condition";
    default:
      return fmt::format("a node of type {}", type);
  }
}

int Fill(const Driver& driver, const MemsetNodeParams& fill, Stream stream) {
  const auto [to, pitch, value, element, width, height] = fill;
  const auto byte = static_cast<unsigned char>(value);
  const auto half = static_cast<unsigned short>(value);
  if (height > 1) {
    if (element == 1) return driver.cuMemsetD2D8Async(to, pitch, byte, width, height, stream);
    if (element == 2) return driver.cuMemsetD2D16Async(to, pitch, half, width, height, stream);
    return driver.cuMemsetD2D32Async(to, pitch, value, width, height, stream);
  }
  if (element == 1) return driver.cuMemsetD8Async(to, byte, width, stream);
  if (element == 2) return driver.cuMemsetD16Async(to, half, width, stream);
  return driver.cuMemsetD32Async(to, value, width, stream);
}

}  // namespace

std::vector<void*> KernelStep::Pointers() const {
  std::vector<void*> pointers;
  for (const std::string& value : parameters)
    pointers.push_back(const_cast<char*>(value.data()));  // NOLINT(*-const-cast): CUDA's interface
  return pointers;
}

ProgramGraph::ProgramGraph(const Driver& driver, ProgramCode& code, Graph graph, bool copied)
    : driver_(driver), code_(code) {
  if (driver_.cuGraphGetNodes == nullptr || driver_.cuGraphKernelNodeGetParams_v2 == nullptr ||
      driver_.cuLaunchKernelEx == nullptr)
    AddObstacle("the driver is older than CUDA 12");
  if (copied && driver_.cuGraphClone(&copy_, graph) != cuda::kSuccess) {
    copy_ = nullptr;
    AddObstacle("its graph cannot be copied");
  }
  Read(graph, copy_);
}

ProgramGraph::~ProgramGraph() {
  if (copy_ != nullptr) (void)driver_.cuGraphDestroy(copy_);
}

std::vector<GraphNode> ProgramGraph::NodesOf(Graph graph) const {
  size_t count = 0;
  if (driver_.cuGraphGetNodes == nullptr ||
      driver_.cuGraphGetNodes(graph, nullptr, &count) != cuda::kSuccess)
    return {};
  std::vector<GraphNode> nodes(count);
  if (driver_.cuGraphGetNodes(graph, nodes.data(), &count) != cuda::kSuccess) return {};
  return nodes;
}

std::vector<GraphNode> ProgramGraph::Ordered(Graph graph) {
  std::vector<GraphNode> nodes = NodesOf(graph);
  size_t count = 0;
  if (driver_.cuGraphGetEdges == nullptr ||
      driver_.cuGraphGetEdges(graph, nullptr, nullptr, &count) != cuda::kSuccess) {
    AddObstacle("the edges of its graph have properties");  // CUDA_ERROR_LOSSY_QUERY
    return nodes;
  }
  std::vector<GraphNode> from(count), to(count);
  if (count > 0 && driver_.cuGraphGetEdges(graph, from.data(), to.data(), &count) != 0) {
    AddObstacle("the edges of its graph have properties");
    return nodes;
  }
  std::unordered_map<GraphNode, size_t> waits;
  std::unordered_map<GraphNode, std::vector<GraphNode>> after;
  for (size_t i = 0; i < count; ++i) {
    ++waits[to[i]];
    after[from[i]].push_back(to[i]);
  }
  std::vector<GraphNode> ordered;
  std::ranges::copy_if(nodes, std::back_inserter(ordered),
                       [&](GraphNode node) { return !waits.contains(node); });
  const bool forks = std::ranges::any_of(after,
                                         [](const auto& one) { return one.second.size() > 1; });
  in_sequence_ = in_sequence_ && ordered.size() <= 1 && !forks;
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (const GraphNode next : after[ordered[i]]) {
      if (--waits[next] == 0) ordered.push_back(next);
    }
  }
  return ordered;
}

GraphNode ProgramGraph::InCopy(GraphNode node, Graph graph, Graph copy) {
  if (copy == nullptr) return nullptr;
  GraphNode found = nullptr;
  if (driver_.cuGraphNodeFindInClone(&found, node, copy) == cuda::kSuccess) return found;
  // The driver does not look into child graphs; their nodes keep their order.
  const std::vector<GraphNode> nodes = NodesOf(graph), copies = NodesOf(copy);
  const auto at = static_cast<size_t>(std::ranges::find(nodes, node) - nodes.begin());
  if (nodes.size() == copies.size() && at < nodes.size()) return copies[at];
  AddObstacle("the copy of its graph lacks a node");
  return nullptr;
}

void ProgramGraph::Read(Graph graph, Graph copy) {
  for (const GraphNode node : Ordered(graph))
    ReadNode({.node = node, .copy = InCopy(node, graph, copy), .copy_graph = copy, .work = {}},
             copy);
}

template <class T>
T ProgramGraph::ParamsOf(int (*get)(GraphNode, T*), GraphNode node) {
  T params{};
  if (get == nullptr || get(node, &params) != cuda::kSuccess)
    AddObstacle("a node of its graph cannot be read");
  return params;
}

void ProgramGraph::ReadNode(GraphStep step, Graph copy) {
  const auto type = static_cast<NodeType>(ParamsOf(driver_.cuGraphNodeGetType, step.node));
  if (type == NodeType::kEmpty) return;
  if (type == NodeType::kGraph) return ReadChild(step, copy);
  if (type == NodeType::kKernel)
    ReadKernel(step);
  else if (type == NodeType::kMemcpy)
    step.work = ParamsOf(driver_.cuGraphMemcpyNodeGetParams, step.node);
  else if (type == NodeType::kMemset)
    step.work = ParamsOf(driver_.cuGraphMemsetNodeGetParams, step.node);
  else if (type == NodeType::kHost)
    step.work = ParamsOf(driver_.cuGraphHostNodeGetParams, step.node);
  else if (type == NodeType::kWaitEvent)
    step.work = WaitEventStep{ParamsOf(driver_.cuGraphEventWaitNodeGetEvent, step.node)};
  else if (type == NodeType::kRecordEvent)
    step.work = RecordEventStep{ParamsOf(driver_.cuGraphEventRecordNodeGetEvent, step.node)};
  else
    AddObstacle("its graph has " + NameOf(static_cast<int>(type)));
  steps_.push_back(std::move(step));
}

void ProgramGraph::ReadChild(const GraphStep& step, Graph copy) {
  const Graph child = ParamsOf(driver_.cuGraphChildGraphNodeGetGraph, step.node);
  const bool copied = copy != nullptr && step.copy != nullptr;
  if (child != nullptr)
    Read(child, copied ? ParamsOf(driver_.cuGraphChildGraphNodeGetGraph, step.copy) : nullptr);
}

KernelStep ProgramGraph::KernelOf(const KernelNodeParams& params) {
  // Nodes of a launch by a Kernel have both, and the function is one that nobody has asked for.
  void* handle = params.kernel != nullptr ? static_cast<void*>(params.kernel) : params.function;
  KernelStep step{.kernel = &code_.Find(handle),
                  .function = params.function,
                  .of_library = params.kernel,
                  .configuration = {{params.grid_x, params.grid_y, params.grid_z},
                                    {params.block_x, params.block_y, params.block_z},
                                    {},
                                    params.shared_bytes},
                  .parameters = {}};
  step.parameters = ParametersOf(*step.kernel, {.params = params.params, .extra = params.extra});
  if (step.kernel->problem == kUnknownParameters)
    AddObstacle("the parameters of one of its kernels are not known");
  return step;
}

void ProgramGraph::ReadKernel(GraphStep& step) {
  KernelStep kernel = KernelOf(ParamsOf(driver_.cuGraphKernelNodeGetParams_v2, step.node));
  decltype(cuda::LaunchAttribute::value) value{};
  const auto has = [&](int attribute) {
    value = {};
    return driver_.cuGraphKernelNodeGetAttribute != nullptr &&
           driver_.cuGraphKernelNodeGetAttribute(step.node, attribute, &value) == cuda::kSuccess;
  };
  if (has(cuda::kLaunchAttributeCooperative)) kernel.configuration.cooperative = value.enabled != 0;
  if (has(cuda::kLaunchAttributeClusterDimension) && value.cluster.x > 0)
    kernel.configuration.cluster = {value.cluster.x, value.cluster.y, value.cluster.z};
  step.work = std::move(kernel);
}

void ProgramGraph::ChangeKernel(GraphNode node, const KernelNodeParams& params) {
  const auto step = std::ranges::find(steps_, node, &GraphStep::node);
  auto* kernel = step == steps_.end() ? nullptr : std::get_if<KernelStep>(&step->work);
  if (kernel == nullptr) return AddObstacle("the program changes a node that is not known");
  KernelStep changed = KernelOf(params);
  changed.configuration.cluster = kernel->configuration.cluster;
  changed.configuration.cooperative = kernel->configuration.cooperative;
  changed.changed = true;
  *kernel = std::move(changed);
}

int ProgramGraph::Run(const GraphStep& step, Stream stream) const {
  if (const auto* copy = std::get_if<ArrayCopy>(&step.work))
    return driver_.cuMemcpy3DAsync_v2(copy, stream);
  if (const auto* fill = std::get_if<MemsetNodeParams>(&step.work))
    return Fill(driver_, *fill, stream);
  if (const auto* host = std::get_if<HostNodeParams>(&step.work))
    return driver_.cuLaunchHostFunc(stream, host->function, host->argument);
  if (const auto* record = std::get_if<RecordEventStep>(&step.work))
    return driver_.cuEventRecord(record->event, stream);
  if (const auto* wait = std::get_if<WaitEventStep>(&step.work))
    return driver_.cuStreamWaitEvent(stream, wait->event, 0);
  return cuda::kSuccess;
}

}  // namespace atunner::recorder
