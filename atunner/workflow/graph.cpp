#include "atunner/workflow/graph.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace atunner::workflow {

double RetryPolicy::SecondsBefore(int attempt) const {
  return std::min(most_seconds, first_seconds * std::pow(factor, attempt - 2));
}

int Graph::Find(std::string_view node) const {
  if (node == kEnd) return kEndNode;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == node) return static_cast<int>(i);
  }
  return -2;
}

GraphBuilder& GraphBuilder::Add(Channel channel) {
  const auto same = [&](const Channel& other) { return other.name == channel.name; };
  if (std::ranges::any_of(channels_, same))
    faults_.push_back("the channel '" + channel.name + "' is declared twice");
  channels_.push_back(std::move(channel));
  return *this;
}

GraphBuilder& GraphBuilder::Node(std::string name, NodeFunction function, NodeOptions options) {
  if (graph_.Find(name) != -2 || name == kStart)
    faults_.push_back("the node '" + name + "' is declared twice");
  graph_.nodes_.push_back({.name = std::move(name),
                           .function = std::move(function),
                           .inner = std::nullopt,
                           .options = std::move(options)});
  return *this;
}

GraphBuilder& GraphBuilder::Node(std::string name, Subgraph inner, NodeOptions options) {
  Node(std::move(name), NodeFunction(), std::move(options));
  graph_.nodes_.back().inner = std::move(inner);
  return *this;
}

GraphBuilder& GraphBuilder::Edge(std::string_view from, std::string_view to) {
  edges_.push_back({std::string(from), std::string(to)});
  return *this;
}

GraphBuilder& GraphBuilder::Join(const std::vector<std::string>& sources, std::string_view target) {
  joins_.push_back({sources, std::string(target)});
  return *this;
}

GraphBuilder& GraphBuilder::Branch(std::string_view from, Router router,
                                   const std::vector<std::string>& targets) {
  branches_.push_back({std::string(from), std::move(router), targets});
  return *this;
}

int GraphBuilder::Number(std::string_view node) {
  const int number = graph_.Find(node);
  if (number == -2) faults_.push_back("there is no node '" + std::string(node) + "'");
  return number;
}

void GraphBuilder::CheckReachable() {
  std::set<int> reached;
  std::vector<int> open = graph_.entries_;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (at < 0 || !reached.insert(at).second) continue;
    const workflow::Node& node = graph_.nodes_[static_cast<size_t>(at)];
    open.insert(open.end(), node.edges.begin(), node.edges.end());
    open.insert(open.end(), node.routes.begin(), node.routes.end());
    for (const int join : node.joins)
      open.push_back(graph_.joins_[static_cast<size_t>(join)].target);
  }
  for (size_t i = 0; i < graph_.nodes_.size(); ++i) {
    if (!reached.contains(static_cast<int>(i)))
      faults_.push_back("no edge leads to the node '" + graph_.nodes_[i].name + "'");
  }
}

Result<Graph> GraphBuilder::Build() {
  for (const NamedEdge& edge : edges_) {
    const int to = Number(edge.to);
    if (edge.from == kStart) {
      graph_.entries_.push_back(to);
    } else if (const int from = Number(edge.from); from >= 0) {
      graph_.nodes_[static_cast<size_t>(from)].edges.push_back(to);
    }
  }
  for (NamedBranch& branch : branches_) {
    const int from = Number(branch.from);
    if (from < 0) continue;
    workflow::Node& node = graph_.nodes_[static_cast<size_t>(from)];
    node.routers.push_back(std::move(branch.router));
    for (const std::string& target : branch.targets) node.routes.push_back(Number(target));
  }
  for (const NamedJoin& named : joins_) {
    workflow::Join join{.sources = {}, .target = Number(named.target)};
    for (const std::string& source : named.sources) {
      const int number = Number(source);
      join.sources.push_back(number);
      if (number >= 0)
        graph_.nodes_[static_cast<size_t>(number)].joins.push_back(
            static_cast<int>(graph_.joins_.size()));
    }
    graph_.joins_.push_back(std::move(join));
  }
  if (graph_.entries_.empty()) faults_.push_back("no edge leaves the start");
  if (faults_.empty()) CheckReachable();
  if (!faults_.empty()) {
    std::string all;
    for (const std::string& fault : faults_) all += (all.empty() ? "" : "; ") + fault;
    return Invalid(all, "graph '" + graph_.name_ + "'");
  }
  graph_.channels_ = std::make_shared<const std::vector<Channel>>(std::move(channels_));
  return std::move(graph_);
}

}  // namespace atunner::workflow
