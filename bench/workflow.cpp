// Time of the state-graph engine itself: a chain of three nodes, and a fan-out of five with a join,
// with nodes that only write one value. Prints the fastest and the median run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/workflow/flow.h"
#include "atunner/workflow/sqlite_checkpoints.h"

namespace atunner::workflow {
namespace {

Result<NodeResult> Write(const NodeContext&) { return NodeResult{{{"n", 1}}}; }

GraphBuilder Nodes(const std::vector<std::string>& names) {
  GraphBuilder builder("bench");
  builder.Add(Reduced("n", 0, [](Json value, const Json& update) {
    return Json(value.get<int64_t>() + update.get<int64_t>());
  }));
  for (const std::string& name : names) builder.Node(name, Write);
  return builder;
}

Graph Chain() {
  GraphBuilder builder = Nodes({"a", "b", "c"});
  builder.Edge(kStart, "a").Edge("a", "b").Edge("b", "c").Edge("c", kEnd);
  return builder.Build().value();
}

Graph FanOut() {
  const std::vector<std::string> names = {"b0", "b1", "b2", "b3", "b4"};
  GraphBuilder builder = Nodes({"a", "b0", "b1", "b2", "b3", "b4", "z"});
  builder.Edge(kStart, "a").Edge("z", kEnd);
  for (const std::string& name : names) builder.Edge("a", name);
  builder.Join(names, "z");
  return builder.Build().value();
}

void Print(const std::string& what, std::vector<double> microseconds) {
  std::ranges::sort(microseconds);
  fmt::print("{:<44} fastest {:>8.2f} us   median {:>8.2f} us\n", what, microseconds.front(),
             microseconds[microseconds.size() / 2]);
}

void Measure(const std::string& what, const Graph& graph, int runs, Checkpoints* checkpoints) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    Flow flow(graph, "run" + std::to_string(run), {.checkpoints = checkpoints});
    const auto outcome = flow.Start(nullptr);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    ATUNNER_CHECK(outcome && outcome->kind == Outcome::Kind::kFinished);
    times.push_back(time.count());
  }
  Print(what, std::move(times));
}

}  // namespace
}  // namespace atunner::workflow

int main() {
  using namespace atunner::workflow;
  const Graph chain = Chain();
  const Graph fan_out = FanOut();
  Measure("chain of 3 nodes", chain, 20000, nullptr);
  Measure("fan-out of 5 and join", fan_out, 20000, nullptr);
  const atunner::TemporaryDirectory folder;
  const auto checkpoints = SqliteCheckpoints::Open(folder.path() / "flows.db").value();
  Measure("chain of 3 nodes, with SQLite", chain, 300, checkpoints.get());
  const auto more = SqliteCheckpoints::Open(folder.path() / "more.db").value();
  Measure("fan-out of 5 and join, with SQLite", fan_out, 300, more.get());
}
