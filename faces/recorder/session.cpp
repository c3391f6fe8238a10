#include "faces/recorder/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "faces/recorder/interpose.h"

namespace atunner::recorder {
namespace {

void Complain(const std::string& what) { fmt::print(stderr, "atunner: {}\n", what); }

std::unique_ptr<Recorder> RecorderOfEnvironment(const Driver& driver, ProgramCode& code,
                                                DeviceMemory& memory) {
  const char* text = std::getenv(kRecordVariable);
  if (text == nullptr) return nullptr;
  const auto order = ReadRecordOrder(text);
  if (!order) {
    Complain(order.error().ToString());
    return nullptr;
  }
  if (!ClaimCapture(order->capture)) return nullptr;
  return std::make_unique<Recorder>(driver, code, memory, *order);
}

std::unique_ptr<Replacer> ReplacerOfEnvironment(const Driver& driver, ProgramCode& code,
                                                DeviceMemory& memory) {
  const char* text = std::getenv(kApplyVariable);
  if (text == nullptr) return nullptr;
  auto order = ReadApplyOrder(text);
  if (!order) {
    Complain(order.error().ToString());
    return nullptr;
  }
  return std::make_unique<Replacer>(driver, code, memory, *std::move(order));
}

}  // namespace

Session& Session::Get() {
  static Session* session = [] {
    auto* made = new Session(RealDriver());  // never deleted: used until the end
    std::atexit([] { Get().End(); });
    return made;
  }();
  return *session;
}

Session::Session(const Driver& driver)
    : code(driver),
      memory(driver),
      driver_(driver),
      process_(getpid()),
      recorder_(RecorderOfEnvironment(driver, code, memory)),
      replacer_(ReplacerOfEnvironment(driver, code, memory)) {}

bool Session::IsCapturing(Stream stream) const {
  int status = 0;
  return captures_ > 0 && driver_.cuStreamIsCapturing != nullptr &&
         driver_.cuStreamIsCapturing(stream, &status) == cuda::kSuccess && status != 0;
}

int Session::Launch(const LaunchCall& call, const OriginalLaunch& original) {
  if (recorder_ == nullptr && replacer_ == nullptr) return original();
  const bool capturing = IsCapturing(call.stream);
  if (capturing && replacer_ == nullptr) return original();  // counted when the graph is launched
  Lock lock(mutex);
  ProgramKernel& kernel = code.Find(call.function);
  const bool quiet = captures_ <= 0;
  if (replacer_ != nullptr) return replacer_->Launch(kernel, call, original, quiet, lock);
  return recorder_->Launch(kernel, call, original, quiet, lock);
}

void Session::AddNodes(Graph graph, std::vector<GraphKernel>& kernels) {
  size_t count = 0;
  if (driver_.cuGraphGetNodes == nullptr ||
      driver_.cuGraphGetNodes(graph, nullptr, &count) != cuda::kSuccess)
    return;
  std::vector<GraphNode> nodes(count);
  if (driver_.cuGraphGetNodes(graph, nodes.data(), &count) != cuda::kSuccess) return;
  for (const GraphNode node : nodes) {
    int type = -1;
    driver_.cuGraphNodeGetType(node, &type);
    Graph child = nullptr;
    if (type == kNodeOfGraph &&
        driver_.cuGraphChildGraphNodeGetGraph(node, &child) == cuda::kSuccess)
      AddNodes(child, kernels);
    KernelNodeParams params{};
    if (type != kNodeOfKernel ||
        driver_.cuGraphKernelNodeGetParams_v2(node, &params) != cuda::kSuccess)
      continue;
    void* handle = params.kernel != nullptr ? static_cast<void*>(params.kernel) : params.function;
    kernels.push_back({&code.Find(handle),
                       {{params.grid_x, params.grid_y, params.grid_z},
                        {params.block_x, params.block_y, params.block_z},
                        {},
                        params.shared_bytes}});
  }
}

void Session::OnInstantiate(GraphExec exec, Graph graph) {
  if (recorder_ == nullptr && replacer_ == nullptr) return;
  const Lock lock(mutex);
  std::vector<GraphKernel>& kernels = graphs_[exec];
  kernels.clear();
  AddNodes(graph, kernels);
}

void Session::OnGraphLaunch(GraphExec exec) {
  const Lock lock(mutex);
  const auto found = graphs_.find(exec);
  if (found == graphs_.end()) return;
  if (recorder_ != nullptr) recorder_->CountGraph(found->second);
  if (replacer_ != nullptr) replacer_->CountGraph(found->second);
}

void Session::OnGraphDestroy(GraphExec exec) {
  const Lock lock(mutex);
  graphs_.erase(exec);
}

void Session::OnReset() {
  const Lock lock(mutex);
  memory.RemoveDeviceMemory();
  if (recorder_ != nullptr) recorder_->OnReset();
  if (replacer_ != nullptr) replacer_->OnReset();
}

void Session::End() {
  if (process_ != getpid()) return;  // another thread may have held the mutex at the fork
  const Lock lock(mutex);
  if (recorder_ != nullptr) {
    recorder_->Finish();
    if (!recorder_->problem().empty()) Complain(recorder_->problem());
  }
  if (replacer_ != nullptr) replacer_->Report();
}

}  // namespace atunner::recorder
