// A state graph: nodes that compute updates of the state, and edges that say which nodes run in the
// next super-step.
//
//   GraphBuilder builder("answer");
//   builder.Add(LastValue("text")).Add(Appended("drafts"));
//   builder.Node("plan", Plan).Node("draft", Draft).Node("choose", Choose);
//   builder.Edge(kStart, "plan");
//   builder.Branch("plan", OneDraftPerIdea, {"draft"});  // dynamic fan-out
//   builder.Edge("draft", "choose").Edge("choose", kEnd);
//   ATUNNER_TRY(const Graph graph, builder.Build());
//
// All tasks of a super-step see the same state. A node that several tasks of one step lead to runs
// once, unless they give it inputs of its own (Target::input). So "draft" above runs once an idea,
// and "choose" once after all drafts.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/workflow/state.h"

namespace atunner::workflow {

inline constexpr std::string_view kStart = "__start__";
inline constexpr std::string_view kEnd = "__end__";

/// A node to run next. With an input it is a task of its own, one for each target.
struct Target {
  std::string node;
  std::optional<Json> input = std::nullopt;
};

/// The result of a node.
struct NodeResult {
  Updates updates = {};
  /// The next nodes in place of the graph's edges; an empty list ends the branch.
  std::optional<std::vector<Target>> go_to = std::nullopt;
  /// Set: a person must decide. The flow pauses; the node runs again with the answer, and what else
  /// is in this result is dropped.
  std::optional<Json> question = std::nullopt;
};

/// A node's view of the flow. It is valid until the node returns.
struct NodeContext {
  const State& state;
  const Json* input;                      ///< Target::input, or nullptr
  const std::vector<Json>& answers;       ///< to the questions that this task asked so far
  std::stop_token stop;                   ///< the flow was cancelled, or the node's time is over
  int attempt;                            ///< 1, 2, … of the retries
  const std::function<void(Json)>& emit;  ///< sends a custom event
};

using NodeFunction = std::function<Result<NodeResult>(const NodeContext&)>;
/// Chooses the next nodes by the state after the step.
using Router = std::function<std::vector<Target>(const State&)>;

struct RetryPolicy {
  int attempts = 1;  ///< all in all
  double first_seconds = 0.5;
  double factor = 2;
  double most_seconds = 128;
  /// Which errors are worth another attempt; empty: all.
  std::function<bool(const Error&)> retry_on = nullptr;

  /// Wait before attempt `attempt` (2, 3, …).
  double SecondsBefore(int attempt) const;
};

struct NodeOptions {
  RetryPolicy retry = {};
  /// 0: none. When it is over, the node's stop token is set and its result is not awaited. A node
  /// that ignores its token keeps its thread until it returns.
  double timeout_seconds = 0;
  /// Runs only when no other node is left to run: joins branches of unequal lengths.
  bool deferred = false;
};

class Graph;

/// A graph as a node: `inputs` are channels that both have and that the inner flow begins with;
/// `outputs` are written back when it ends. An object as the task's input also sets channels.
struct Subgraph {
  std::shared_ptr<const Graph> graph;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct Node {
  std::string name;
  NodeFunction function;  ///< empty for a subgraph
  std::optional<Subgraph> inner = std::nullopt;
  NodeOptions options = {};
  std::vector<int> edges = {};  ///< numbers of nodes, Graph::kEndNode
  std::vector<Router> routers = {};
  std::vector<int> routes = {};  ///< possible targets of the routers, for drawing
  std::vector<int> joins = {};   ///< numbers of joins that wait for this node
};

/// `target` runs when all sources have ended, be it in different super-steps.
struct Join {
  std::vector<int> sources;
  int target = 0;
};

/// Made by GraphBuilder; never changes.
class Graph {
 public:
  static constexpr int kEndNode = -1;

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Join>& joins() const { return joins_; }
  const std::vector<int>& entries() const { return entries_; }
  const std::shared_ptr<const std::vector<Channel>>& channels() const { return channels_; }
  /// Number of the node, or -2 for an unknown name; kEnd is kEndNode.
  int Find(std::string_view node) const;

 private:
  friend class GraphBuilder;
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Join> joins_;
  std::vector<int> entries_;
  std::shared_ptr<const std::vector<Channel>> channels_;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name_ = std::move(name); }

  GraphBuilder& Add(Channel channel);
  GraphBuilder& Node(std::string name, NodeFunction function, NodeOptions options = {});
  GraphBuilder& Node(std::string name, Subgraph inner, NodeOptions options = {});
  /// Several edges from one node are a static fan-out.
  GraphBuilder& Edge(std::string_view from, std::string_view to);
  GraphBuilder& Join(const std::vector<std::string>& sources, std::string_view target);
  /// `targets`: the nodes that the router may name; another one is an error when the flow runs.
  GraphBuilder& Branch(std::string_view from, Router router,
                       const std::vector<std::string>& targets);
  /// kInvalidInput that lists all faults: unknown or duplicate names, no entry, nodes that cannot
  /// be reached.
  Result<Graph> Build();

 private:
  int Number(std::string_view node);
  void CheckReachable();

  Graph graph_;
  std::vector<Channel> channels_;
  struct NamedEdge {
    std::string from, to;
  };
  struct NamedBranch {
    std::string from;
    Router router;
    std::vector<std::string> targets;
  };
  struct NamedJoin {
    std::vector<std::string> sources;
    std::string target;
  };
  std::vector<NamedEdge> edges_;
  std::vector<NamedBranch> branches_;
  std::vector<NamedJoin> joins_;
  std::vector<std::string> faults_;
};

}  // namespace atunner::workflow
