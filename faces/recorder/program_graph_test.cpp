#include "faces/recorder/program_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "faces/recorder/testing/fake_driver.h"
#include "faces/recorder/testing/fake_graphs.h"
#include "faces/recorder/tuned_graph.h"

namespace atunner::recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry f(.param .u32 n) { ret; })";

class Graphs : public testing::Test {
 protected:
  Graphs() : driver_(FakeDriver()), code_(driver_) {
    AddFakeGraphs(driver_);
    Fake().parameter_bytes = {sizeof(int)};
    code_.AddModule(HandleOf<Module>(100), kPtx.c_str());
    code_.AddFunction(function_, HandleOf<Module>(100), "f");
  }
  /// A launch of f with one argument.
  GraphNode AddKernel(FakeGraph& graph, int argument) {
    arguments_.push_back(argument);
    pointers_.push_back(&arguments_.back());
    return graph.Add({.type = NodeType::kKernel,
                      .kernel = {function_, 8, 1, 1, 64, 1, 1, 0, &pointers_.back()}});
  }
  static int ArgumentOf(const GraphStep& step) {
    return *static_cast<int*>(std::get<KernelStep>(step.work).Pointers().at(0));
  }
  static std::vector<int> ArgumentsOf(const ProgramGraph& graph) {
    std::vector<int> arguments;
    for (const GraphStep& step : graph.steps()) arguments.push_back(ArgumentOf(step));
    return arguments;
  }

  Driver driver_;
  ProgramCode code_;
  Function function_ = HandleOf<Function>(7);
  FakeGraph graph_;
  std::deque<int> arguments_;
  std::deque<void*> pointers_;
};

TEST_F(Graphs, StepsFollowTheEdgesAndKeepTheirArguments) {
  const GraphNode last = AddKernel(graph_, 3), middle = AddKernel(graph_, 2),
                  first = AddKernel(graph_, 1);
  graph_.edges = {{middle, last}, {first, middle}, {first, last}};
  const ProgramGraph graph(driver_, code_, graph_.handle(), false);
  for (int& argument : arguments_) argument = 0;  // the program destroys the graph
  EXPECT_EQ(graph.obstacle(), "");
  EXPECT_FALSE(graph.in_sequence()) << "the first node has two edges";
  EXPECT_THAT(ArgumentsOf(graph), ElementsAre(1, 2, 3));
  const auto& kernel = std::get<KernelStep>(graph.steps()[0].work);
  EXPECT_EQ(kernel.kernel->name, "f");
  EXPECT_EQ(kernel.configuration, (capture::LaunchConfiguration{{8}, {64}}));
}

TEST_F(Graphs, AChildGraphsStepsStandInItsPlace) {
  FakeGraph child;
  const GraphNode second = AddKernel(child, 3), first = AddKernel(child, 2);
  child.edges = {{first, second}};
  const GraphNode before = AddKernel(graph_, 1), after = AddKernel(graph_, 4),
                  inside = graph_.Add({.type = NodeType::kGraph, .child = child.handle()});
  graph_.edges = {{before, inside}, {inside, after}};
  const ProgramGraph graph(driver_, code_, graph_.handle(), true);
  EXPECT_EQ(graph.obstacle(), "");
  EXPECT_TRUE(graph.in_sequence());
  EXPECT_THAT(ArgumentsOf(graph), ElementsAre(1, 2, 3, 4));
  EXPECT_NE(graph.steps()[1].copy_graph, graph.steps()[0].copy_graph);
}

TEST_F(Graphs, WhatCannotBeRunAloneIsNamedAndTheKernelsAreListed) {
  AddKernel(graph_, 1);
  graph_.Add({.type = static_cast<NodeType>(10)});
  const ProgramGraph graph(driver_, code_, graph_.handle(), false);
  EXPECT_EQ(graph.obstacle(), "its graph has an allocation");
  EXPECT_EQ(ArgumentOf(graph.steps().at(0)), 1);
}

TEST_F(Graphs, EdgesWithPropertiesAreAnObstacle) {
  AddKernel(graph_, 1);
  driver_.cuGraphGetEdges = [](Graph, GraphNode*, GraphNode*, size_t*) { return 904; };
  const ProgramGraph graph(driver_, code_, graph_.handle(), false);
  EXPECT_THAT(graph.obstacle(), HasSubstr("edges"));
  EXPECT_THAT(graph.steps(), SizeIs(1));
}

TEST_F(Graphs, FillsAndCopiesRunInTheStream) {
  graph_.Add({.type = NodeType::kMemset, .fill = {4096, 0, 7, 4, 100, 1}});
  graph_.Add({.type = NodeType::kMemset, .fill = {4096, 512, 1, 1, 30, 20}});
  graph_.Add({.type = NodeType::kMemcpy, .copy = {.width_bytes = 12}});
  const ProgramGraph graph(driver_, code_, graph_.handle(), false);
  for (const GraphStep& step : graph.steps()) EXPECT_EQ(graph.Run(step, nullptr), 0);
  EXPECT_THAT(FakeGraphCalls(),
              ElementsAre("fill 100 words at 4096 with 7", "fill 30x20 bytes at 4096 by 512 with 1",
                          "copy 12 bytes"));
}

TEST_F(Graphs, TunedKernelsTakeTheirPlaceWithCopiesOfVariables) {
  const GraphNode first = AddKernel(graph_, 1), second = AddKernel(graph_, 2);
  graph_.edges = {{first, second}};
  ProgramGraph graph(driver_, code_, graph_.handle(), true);
  const TunedKernel tuned{HandleOf<Function>(9), {{1000, 2000, 16, false}}};
  const auto choose = [&](const KernelStep& step) -> Replaced {
    if (*static_cast<int*>(step.Pointers()[0]) == 1) return {};
    return {&tuned, {{4}, {128}}};
  };
  TunedGraph of(driver_);
  ASSERT_TRUE(of.Prepare(graph, choose));
  FakeGraph& copy = FakeGraph::Of(graph.copy());
  EXPECT_EQ(copy.nodes.at(0).kernel.function, function_);
  EXPECT_EQ(copy.nodes.at(1).kernel.function, tuned.function);
  EXPECT_EQ(copy.nodes.at(1).kernel.block_x, 128u);
  ASSERT_THAT(copy.nodes, SizeIs(4)) << "two copies of the variable";
  EXPECT_EQ(copy.nodes[2].copy.from.device, 1000u);
  EXPECT_EQ(copy.nodes[3].copy.to.device, 1000u);
  const auto node = [&](size_t i) { return reinterpret_cast<GraphNode>(&copy.nodes[i]); };
  EXPECT_THAT(copy.edges, testing::UnorderedElementsAre(
                              std::pair(node(0), node(1)), std::pair(node(0), node(2)),
                              std::pair(node(2), node(1)), std::pair(node(1), node(3))));
}

TEST_F(Graphs, TunedGraphsFollowChangedArguments) {
  const GraphNode node = AddKernel(graph_, 5);
  ProgramGraph graph(driver_, code_, graph_.handle(), true);
  const TunedKernel tuned{HandleOf<Function>(9), {}}, other = tuned;
  const TunedKernel* chosen = &tuned;
  const auto choose = [&](const KernelStep&) -> Replaced { return {chosen, {{4}, {128}}}; };
  TunedGraph of(driver_);
  ASSERT_TRUE(of.Prepare(graph, choose));
  ASSERT_TRUE(of.Prepare(graph, choose)) << "nothing has changed";
  int changed = 6;
  void* pointer = &changed;
  graph.ChangeKernel(node, {.function = function_, .grid_x = 8, .params = &pointer});
  ASSERT_TRUE(of.Prepare(graph, choose));
  EXPECT_THAT(FakeGraphCalls(), ElementsAre("change to 6"));
  EXPECT_EQ(graph.obstacle(), "");
  graph.ChangeKernel(node, {.function = function_, .grid_x = 8, .params = &pointer});
  chosen = &other;
  EXPECT_FALSE(of.Prepare(graph, choose)) << "another kernel needs other copies";
  graph.ChangeKernel(HandleOf<GraphNode>(1), {.function = function_, .params = &pointer});
  EXPECT_NE(graph.obstacle(), "");
}

}  // namespace
}  // namespace atunner::recorder
