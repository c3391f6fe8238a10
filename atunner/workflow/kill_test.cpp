// kill -9 at every event of a flow, then a new process resumes it: no node runs twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/workflow/flow.h"
#include "atunner/workflow/sqlite_checkpoints.h"

namespace atunner::workflow {
namespace {

/// A node that leaves a line in the log each time it runs.
NodeFunction Logged(const Path& log, const std::string& name) {
  return [log, name](const NodeContext& context) -> Result<NodeResult> {
    const std::string input = context.input ? context.input->dump() : "";
    std::ofstream(log, std::ios::app) << name + input + "\n" << std::flush;
    return NodeResult{{{"done", name + input}}};
  };
}

Graph InnerGraph(const Path& log) {
  GraphBuilder builder("inner");
  builder.Add(Appended("done"));
  builder.Node("x", Logged(log, "x")).Node("y", Logged(log, "y"));
  builder.Edge(kStart, "x").Edge("x", "y").Edge("y", kEnd);
  return builder.Build().value();
}

/// plan, then a branch an idea, a subgraph beside them, and a join.
Graph FlowGraph(const Path& log) {
  GraphBuilder builder("killed");
  builder.Add(Appended("done"));
  builder.Node("plan", Logged(log, "plan"))
      .Node("try", Logged(log, "try"))
      .Node("inner", Subgraph{std::make_shared<const Graph>(InnerGraph(log)), {}, {"done"}})
      .Node("decide", Logged(log, "decide"), {.deferred = true});
  builder.Edge(kStart, "plan").Edge("plan", "inner");
  builder.Branch("plan",
                 [](const State&) {
                   return std::vector<Target>{{"try", Json(1)}, {"try", Json(2)}, {"try", Json(3)}};
                 },
                 {"try"});
  builder.Edge("try", "decide").Edge("inner", "decide").Edge("decide", kEnd);
  return builder.Build().value();
}

/// Runs the flow in a process of its own that kills itself at event `fatal`. Returns true if it
/// lived to the end.
bool RunInProcess(const Path& folder, int fatal) {
  const pid_t child = fork();
  if (child == 0) {
    const auto checkpoints = SqliteCheckpoints::Open(folder / "flows.db").value();
    int events = 0;
    FlowOptions options{.checkpoints = checkpoints.get()};
    options.events = [&](const FlowEvent&) {
      if (events++ == fatal) kill(getpid(), SIGKILL);
    };
    const Graph graph = FlowGraph(folder / "log");
    Flow flow(graph, "f", options);
    const bool known = checkpoints->Get("f", std::nullopt).value().has_value();
    const auto outcome = known ? flow.Resume() : flow.Start(nullptr);
    _exit(outcome && (*outcome->state)["done"].size() == 7 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::map<std::string, int> Lines(const Path& log) {
  std::map<std::string, int> lines;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) ++lines[line];
  return lines;
}

TEST(Kill, AtEveryEventNoNodeRunsTwice) {
  const std::map<std::string, int> once = {{"plan", 1}, {"try1", 1}, {"try2", 1},  {"try3", 1},
                                           {"x", 1},    {"y", 1},    {"decide", 1}};
  int kills = 0;
  for (int fatal = 0; fatal < 200; ++fatal) {
    const TemporaryDirectory folder;
    const bool lived = RunInProcess(folder.path(), fatal);
    if (!lived) {
      ++kills;
      EXPECT_TRUE(RunInProcess(folder.path(), -1)) << "killed at event " << fatal;
    }
    EXPECT_EQ(Lines(folder.path() / "log"), once) << "killed at event " << fatal;
    if (lived) break;
  }
  EXPECT_GT(kills, 20);
}

TEST(Kill, AgainAndAgain) {
  const TemporaryDirectory folder;
  int processes = 1;
  while (!RunInProcess(folder.path(), 3) && processes < 100) ++processes;
  EXPECT_GT(processes, 3);
  for (const auto& [line, count] : Lines(folder.path() / "log")) EXPECT_EQ(count, 1) << line;
}

}  // namespace
}  // namespace atunner::workflow
