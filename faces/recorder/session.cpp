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
  if (capturing) return original();  // it takes part when the graph is launched
  Lock lock(mutex);
  ProgramKernel& kernel = code.Find(call.function);
  const bool quiet = captures_ <= 0;
  if (replacer_ != nullptr) return replacer_->Launch(kernel, call, original, quiet, lock);
  return recorder_->Launch(kernel, call, original, quiet, lock);
}

Session::Executable* Session::Find(GraphExec exec) {
  const auto found = graphs_.find(exec);
  return found == graphs_.end() ? nullptr : &found->second;
}

void Session::Read(Executable& executable, Graph graph) {
  executable.tuned = std::make_unique<TunedGraph>(driver_);
  executable.graph = std::make_unique<ProgramGraph>(driver_, code, graph, replacer_ != nullptr);
}

void Session::OnInstantiate(GraphExec exec, Graph graph) {
  if (recorder_ == nullptr && replacer_ == nullptr) return;
  const Lock lock(mutex);
  Read(graphs_[exec], graph);
}

void Session::OnGraphUpdate(GraphExec exec, Graph graph) {
  constexpr int kMostUpdates = 16;  // after each the graph is read again
  const Lock lock(mutex);
  Executable* known = Find(exec);
  if (known == nullptr) return;
  const int updates = known->graph->updates + 1;
  if (updates <= kMostUpdates)
    Read(*known, graph);
  else
    known->graph->AddObstacle("the program updates its graph again and again");
  known->graph->updates = updates;
}

void Session::OnKernelNode(GraphExec exec, GraphNode node, const KernelNodeParams& params) {
  const Lock lock(mutex);
  if (Executable* known = Find(exec)) known->graph->ChangeKernel(node, params);
}

void Session::OnOtherNode(GraphExec exec) {
  const Lock lock(mutex);
  if (Executable* known = Find(exec))
    known->graph->AddObstacle("the program changes nodes of its graph that are no kernels");
}

int Session::LaunchGraph(GraphExec exec, Stream stream, const OriginalLaunch& original) {
  if ((recorder_ == nullptr && replacer_ == nullptr) || IsCapturing(stream)) return original();
  Lock lock(mutex);
  Executable* known = Find(exec);
  if (known == nullptr) {
    lock.unlock();
    return original();
  }
  ProgramGraph& graph = *known->graph;
  const bool wanted = recorder_ != nullptr ? recorder_->Wants(graph) : replacer_->Wants(graph);
  if (wanted && captures_ <= 0 && graph.obstacle().empty()) return LaunchSteps(graph, stream, lock);
  if (replacer_ != nullptr)
    return replacer_->LaunchGraph(graph, *known->tuned, stream, original, lock);
  recorder_->CountGraph(graph, wanted);
  lock.unlock();
  return original();
}

int Session::LaunchSteps(const ProgramGraph& graph, Stream stream, Lock& lock) {
  for (const GraphStep& step : graph.steps()) {
    if (!lock.owns_lock()) lock.lock();
    const auto* kernel = std::get_if<KernelStep>(&step.work);
    if (kernel == nullptr) memory.OnLaunch();
    const int result = kernel != nullptr ? LaunchStep(*kernel, stream, lock)
                                         : graph.Run(step, stream);
    if (result != cuda::kSuccess) return result;
  }
  return cuda::kSuccess;
}

int Session::LaunchStep(const KernelStep& step, Stream stream, Lock& lock) {
  const capture::LaunchConfiguration& like = step.configuration;
  cuda::LaunchAttributes attributes(like.cooperative, false);
  if (like.cluster.Count() > 1)
    attributes.SetCluster(like.cluster.x, like.cluster.y, like.cluster.z);
  const LaunchConfig config{
      like.grid.x,  like.grid.y,       like.grid.z, like.block.x,           like.block.y,
      like.block.z, like.shared_bytes, stream,      attributes.list.data(), attributes.count};
  std::vector<void*> params = step.Pointers();
  const auto launch = [&] {
    return driver_.cuLaunchKernelEx(&config, step.handle(), params.data(), nullptr);
  };
  const LaunchCall call{step.handle(), like, stream, params.data(), nullptr, &config};
  const OriginalLaunch original(launch);
  if (replacer_ != nullptr) return replacer_->Launch(*step.kernel, call, original, true, lock);
  return recorder_->Launch(*step.kernel, call, original, true, lock);
}

void Session::OnGraphDestroy(GraphExec exec) {
  const Lock lock(mutex);
  graphs_.erase(exec);
}

void Session::OnReset() {
  const Lock lock(mutex);
  memory.RemoveDeviceMemory();
  for (auto& [exec, executable] : graphs_) {
    executable.graph->Forget();
    executable.tuned->Forget();
  }
  graphs_.clear();
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
