// A graph of maps and reductions over the same axes: passes over the elements, each of which ends
// in reductions whose results the next pass needs. Example: softmax is pass 1 (maximum and sum of
// exponentials) and the writing pass. Two families compute such programs: `reduction`, where the
// reduced axes are the last ones, and `columns`, for any axes.
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
  graph::Shape space;         ///< shape of the elements
  std::vector<bool> reduced;  ///< by axis of the space
  std::vector<int> passes;    ///< by node: the pass that computes a reduction; -1 for other nodes
  std::vector<int> known;     ///< by node: the first pass in which its value is known
  int pass_count = 0;         ///< passes before the one that writes elements
  /// Maps a reduction that needs no pass of its own to the one beside which it is computed: a mean
  /// or sum of squared distances from a mean to that mean; a sum of exp(x - m), where m is the
  /// largest x, to that maximum.
  std::map<graph::NodeId, graph::NodeId> beside;
  /// Sums of exponentials in which the distance of equal infinities is 0
  std::set<graph::NodeId> equals;
  /// True if the innermost axis is kept (not reduced), so that neighbours in memory belong to
  /// different results.
  bool kept_inside = false;
  std::vector<graph::Output> element_outputs;  ///< of the space's shape
  std::vector<graph::Output> kept_outputs;     ///< outputs with the shape of the kept space

  graph::Shape Part(bool of_reduced) const;
  /// The axis with the elements' neighbours in memory; -1 if the space has one element.
  int InnerAxis() const;
  /// The reductions that a pass computes, without those computed beside others.
  std::vector<graph::NodeId> ReductionsOf(int pass) const;
  std::vector<graph::NodeId> BesideOf(graph::NodeId id) const;
  /// The kept space, with the reduced axes as extents of 1.
  graph::Shape KeptShape() const;
  /// True if a node has the shape of the kept space, or one element: all elements that are reduced
  /// together share its value.
  bool IsShared(graph::NodeId id) const;
  /// True for an input with the shape of the space.
  bool IsStreamed(graph::NodeId id) const;
  /// The streamed inputs that `wanted` are computed from, given the values that elements share.
  std::vector<graph::NodeId> StreamedFor(const std::vector<graph::NodeId>& wanted) const;
  /// The nodes that a pass computes: operands of its reductions, and in the last pass the outputs.
  std::vector<graph::NodeId> WantedIn(int pass) const;
  /// The last pass over elements.
  int LastPass() const { return element_outputs.empty() ? pass_count - 1 : pass_count; }

  /// Coordinates k0, r1, … of an element of the space (kept and reduced axes), where the inner axis
  /// advances with the lanes of a vector.
  graph::Coordinates ElementAt(int64_t lanes) const;
  /// Coordinates of a value that elements share.
  graph::Coordinates SharedAt(graph::NodeId id, int64_t lanes) const;
  /// The name of a node's value; only these names end in an underscore.
  std::string ValueName(graph::NodeId id) const;
};

/// nullopt if reductions differ in their axes, or a node other than a map comes between them.
/// `online`: sums of exponentials are computed beside their maximum (online softmax); else they are
/// ordinary sums.
std::optional<ReductionProgram> MakeColumnsProgram(const graph::ValidGraph& graph,
                                                   bool online = false);
/// The same for reductions over last axes of constant extent; maps may also gather elements of a
/// row by indices from inputs.
std::optional<ReductionProgram> MakeRowsProgram(const graph::ValidGraph& graph,
                                                bool online = false);

}  // namespace atunner
