// A graph of maps and reductions over the same axes: passes over the elements, each of which ends
// in reductions that the next one needs. Two families compute such programs: one where the reduced
// axes are the last ("rows"), and one wherever they lie ("columns").
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/cuda_text/element_text.h"
#include "atunner/graph/graph.h"

namespace atunner {

struct ReductionProgram {
  graph::ValidGraph graph;
  graph::Shape space;         ///< of what is reduced
  std::vector<bool> reduced;  ///< by axis of the space
  std::vector<int> passes;    ///< by node: of a reduction, the pass that computes it; of others -1
  std::vector<int> known;     ///< by node: the first pass in which its value is at hand
  int pass_count = 0;         ///< before the one that writes elements
  /// By a node that needs no pass of its own, what it is computed beside: a mean or sum of squared
  /// distances from a mean, that mean; a sum of exp(x - m), where m is the largest x, that m.
  std::map<graph::NodeId, graph::NodeId> beside;
  /// Sums of exponentials for which equal infinities are 0 apart
  std::set<graph::NodeId> equals;
  /// Are neighbouring elements kept (columns), or reduced?
  bool kept_inside = false;
  std::vector<graph::Output> element_outputs;  ///< of the space's shape
  std::vector<graph::Output> kept_outputs;     ///< one element for each of the kept space

  graph::Shape Part(bool of_reduced) const;
  /// The axis along which neighbours lie in memory; -1 where the space has one element.
  int InnerAxis() const;
  /// The reductions that a pass computes, without those beside others.
  std::vector<graph::NodeId> ReductionsOf(int pass) const;
  std::vector<graph::NodeId> BesideOf(graph::NodeId id) const;
  /// The kept space, with the reduced axes as extents of 1.
  graph::Shape KeptShape() const;
  /// Of the kept space, or of one element: all elements that are reduced together share its value.
  bool IsShared(graph::NodeId id) const;
  /// An input with an element for each of the space.
  bool IsStreamed(graph::NodeId id) const;
  /// The streamed inputs that `wanted` are computed from, where what elements share is at hand.
  std::vector<graph::NodeId> StreamedFor(const std::vector<graph::NodeId>& wanted) const;
  /// What a pass over the elements is for: operands of its reductions, and in the last one the
  /// outputs.
  std::vector<graph::NodeId> WantedIn(int pass) const;
  /// The last one over elements.
  int LastPass() const { return element_outputs.empty() ? pass_count - 1 : pass_count; }

  /// Coordinates k0, r1, … of an element of the space (kept axes and reduced ones), where the inner
  /// axis' are those of so many lanes.
  graph::Coordinates ElementAt(int64_t lanes) const;
  /// Of a value that elements share.
  graph::Coordinates SharedAt(graph::NodeId id, int64_t lanes) const;
  /// The name of a node's value: none other ends in an underscore.
  std::string ValueName(graph::NodeId id) const;
};

/// nullopt where reductions differ in their axes, or something else than a map comes between.
/// `online`: sums of exponentials are computed beside their maximum (else they are sums like
/// others).
std::optional<ReductionProgram> MakeColumnsProgram(const graph::ValidGraph& graph,
                                                   bool online = false);
/// Of last axes of known extent alone, and of elements of rows at places that inputs tell.
std::optional<ReductionProgram> MakeRowsProgram(const graph::ValidGraph& graph,
                                                bool online = false);

}  // namespace atunner
