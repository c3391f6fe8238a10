// Partition: which nodes share a kernel.
//
// Example: cross entropy with logits x [R, C] and targets t [R].
//
//     m = reduce_max(x)            e = exp(x - m)            s = reduce_sum(e)        [R]
//     p = gather(x, t)             l = m + log(s) - p                                 [R]
//     y = reduce_sum(l)                                                               []
//
// 1. Order. The nodes are listed so that each comes right before its first user:
//
//        m  e  s  p  l | y
//
//    Inputs, constants, integers that are made of indices alone (positions, masks), and small
//    values that are made of inputs alone ("repeated" nodes) are not in the list: every kernel that
//    needs one computes it again. A reshape that only adds or removes axes of extent 1 belongs to
//    the value behind it (its "origin").
//
// 2. Cuts. A subgraph is an interval of the list. best[i] is the least cost of computing all nodes
//    from place i on:
//
//        best[i] = min over j of  cost(interval [i, j)) + best[j]
//
//    It is computed from the end of the list, for intervals of up to kLongest nodes. Long intervals
//    are tried first: their cost is the limit with which short ones are asked, so that most of
//    those need not be costed exactly. In the example, kernels for [m, l] and [y] win: a kernel of
//    rows cannot also add all rows up.
//
// 3. Subgraphs. A value that crosses a cut is stored. It is an output of the first interval and an
//    input of the second, called as the graph's output or else kept<id>. Here l is kept in float32:
//    a small stored value keeps the precision of arithmetic, unless the graph itself rounds it or a
//    contraction takes it in its own type (KeptType). A large one is stored as the graph says.
//
// Only intervals of one order are considered, so the order matters. Several are tried (Strategy):
// with and without repeated nodes, small reductions first, and the deepest operand first. An order
// that is not the usual one is used only if it is clearly cheaper, because costs are estimates.
//
// Costs come from a callback (codegen/stages.cpp): it asks the schedule families whether one
// of them computes the subgraph, and counts bytes of memory and a launch. Subgraphs of different
// orders have most intervals in common, and models repeat their layers: CostCache keeps costs by a
// key of the interval (Key), which is equal for subgraphs that differ in names alone. Only
// subgraphs that are costed, or become parts, are built. Intervals with more contractions than any
// kernel has (kMostContractions) are not costed at all.
#include "atunner/graph/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "atunner/graph/partition/cost_cache.h"
#include "atunner/graph/partition/node_codes.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// The most nodes of a subgraph: attention's gradients have about forty.
constexpr size_t kLongest = 48;
/// The most contractions of a subgraph: those of attention, or a pair.
constexpr size_t kMostContractions = 2;
/// A value is small if it has so many times fewer elements than the largest one.
constexpr int64_t kSmall = 64;
/// Another order must cost less than this fraction of the usual one to be used.
constexpr double kClearly = 0.9;
/// The usual order alone is tried for graphs with more nodes. What another order gains in one place
/// is no clear part of their cost, and to cost the subgraphs of ResNet-50's step takes minutes.
constexpr size_t kLargeGraph = 1000;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct PartitionPlan {
  double cost = kNever;
  std::vector<Part> parts;
};

/// True if an element of the result may depend on many elements of the operands.
bool IsHeavy(const Node& node) {
  return node.As<Reduce>() || node.As<Scan>() || node.As<Contract>() || node.As<Sort>() ||
         node.As<Scatter>();
}

/// How the nodes are ordered.
struct Strategy {
  /// Small values that are made of inputs alone are computed again in each kernel that needs them
  bool repeats = true;
  /// Reductions of small values come first. A loss's gradient needs the number of counted rows; in
  /// the usual order that reduction would lie between two kernels that read the logits.
  bool small_first = false;
  /// The operand that is deepest in the graph is placed first, else last
  bool deep_first = false;

  bool usual() const { return !small_first && !deep_first; }
};

bool UsesSymbol(const ValidGraph& graph, const std::string& name) {
  const auto has = [&](const Extent& extent) {
    return std::ranges::find(extent.symbols(), name) != extent.symbols().end();
  };
  return std::ranges::any_of(
      graph.nodes(), [&](const Node& node) { return std::ranges::any_of(node.type.shape, has); });
}

class Partitioner {
 public:
  Partitioner(const ValidGraph& graph, const NodeCodes& codes, const Dims& sizes, Strategy strategy)
      : graph_(graph),
        codes_(codes),
        sizes_(sizes),
        strategy_(strategy),
        multiplied_(Multiplied(graph)),
        of_indices_(graph.nodes().size(), false),
        repeated_(graph.nodes().size(), false),
        depths_(graph.nodes().size(), 0),
        large_(graph.nodes().size(), false),
        origins_(graph.nodes().size(), 0),
        places_(graph.nodes().size(), kNowhere),
        last_uses_(graph.nodes().size(), 0),
        local_(graph.nodes().size(), 0),
        seen_(graph.nodes().size(), 0) {
    for (const Output& output : graph.outputs()) names_.try_emplace(output.node, output.name);
    for (const Node& node : graph.nodes()) most_ = std::max(most_, CountOf(node));
    for (size_t id = 0; id < repeated_.size(); ++id) Classify(static_cast<NodeId>(id));
    for (size_t id = 0; id < large_.size() && strategy.small_first; ++id) {
      if (!large_[id] && IsHeavy(graph.nodes()[id])) Append(static_cast<NodeId>(id));
    }
    for (const Output& output : graph.outputs()) Append(output.node);
    for (size_t place = 0; place < order_.size(); ++place) {
      for (NodeId operand : graph.node(order_[place]).operands) last_uses_[operand] = place;
    }
  }

  const std::vector<NodeId>& order() const { return order_; }

  /// True if a node besides inputs and constants is repeated.
  bool repeats() const {
    for (size_t id = 0; id < repeated_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (repeated_[id] && !node.As<Input>() && !node.As<Constant>()) return true;
    }
    return false;
  }

  /// The cheapest cuts of the order.
  PartitionPlan Run(CostCache& costs) {
    std::vector<Suffix> best(order_.size() + 1);
    best.back().cost = 0;
    for (size_t begin = order_.size(); begin-- > 0;) {
      for (size_t end = LastEnd(begin); end > begin; --end) {
        const double limit = best[begin].cost - best[end].cost;
        if (best[end].cost == kNever || limit <= 0) continue;
        const auto own = costs.Of(Key(begin, end), limit, [&] { return Subgraph(begin, end); });
        if (own && *own < limit) best[begin] = {*own + best[end].cost, end};
      }
    }
    PartitionPlan plan{best[0].cost, {}};
    for (size_t at = 0; at < order_.size() && plan.cost < kNever; at = best[at].end)
      plan.parts.push_back({Subgraph(at, best[at].end).value(),
                            {order_.begin() + static_cast<ptrdiff_t>(at),
                             order_.begin() + static_cast<ptrdiff_t>(best[at].end)}});
    return plan;
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;
  /// The cheapest way to compute all nodes from some place of the order on.
  struct Suffix {
    double cost = kNever;
    size_t end = 0;  ///< the place behind the first subgraph
  };

  /// The place behind the longest interval that is tried. Two contractions are a pair, which share
  /// an operand, or attention's, which has exponentials between them.
  size_t LastEnd(size_t begin) const {
    const size_t most = std::min(order_.size(), begin + kLongest);
    std::vector<NodeId> contractions;
    bool exponential = false;
    for (size_t end = begin; end < most; ++end) {
      const NodeId id = order_[end];
      exponential = exponential || HasExponential(graph_.node(id));
      if (!graph_.node(id).As<Contract>()) continue;
      contractions.push_back(id);
      if (contractions.size() > kMostContractions) return end;
      if (contractions.size() == 2 && !exponential && !ShareOperand(contractions[0], id))
        return end;
    }
    return most;
  }

  static bool HasExponential(const Node& node) {
    const auto* map = node.As<Map>();
    return map != nullptr && std::ranges::any_of(map->body.nodes(), [](const ScalarNode& each) {
             return each.op == ScalarOp::kExp || each.op == ScalarOp::kExp2;
           });
  }

  bool ShareOperand(NodeId a, NodeId b) const {
    return std::ranges::any_of(graph_.node(a).operands, [&](NodeId operand) {
      return std::ranges::count(graph_.node(b).operands, operand) > 0;
    });
  }

  /// Equal for intervals whose subgraphs are equal but for names: the nodes in the order in which
  /// Subgraph makes them, and which of them are outputs.
  std::string Key(size_t begin, size_t end) {
    key_.clear();
    ++visit_;
    made_ = 0;
    for (size_t place = begin; place < end; ++place) AddToKey(order_[place], begin);
    key_.push_back(-1);
    for (const Output& output : graph_.outputs()) {
      const size_t place = places_[output.node];
      if (place >= begin && place < end) key_.push_back(local_[output.node]);
    }
    key_.push_back(-2);
    for (size_t place = begin; place < end; ++place) {
      const NodeId id = origins_[order_[place]];
      if (places_[id] >= begin && IsNeededFrom(order_[place], end)) {
        key_.push_back(local_[id]);
        key_.push_back(static_cast<int32_t>(KeptType(id)));
      }
    }
    return {reinterpret_cast<const char*>(key_.data()), key_.size() * sizeof(int32_t)};
  }
  void AddToKey(NodeId id, size_t begin) {
    if (seen_[id] == visit_) return;
    const Node& node = graph_.node(id);
    if (places_[id] < begin) {
      if (origins_[id] != id) AddToKey(origins_[id], begin);
      const bool moved = origins_[id] != id;
      key_.insert(key_.end(),
                  {-3, moved ? local_[origins_[id]] : -1, codes_.OfType(id, KeptType(id)),
                   static_cast<int32_t>(node.type.dtype)});
    } else {
      for (NodeId operand : node.operands) AddToKey(operand, begin);
      key_.push_back(codes_.Of(id));
      for (NodeId operand : node.operands) key_.push_back(local_[operand]);
    }
    seen_[id] = visit_;
    local_[id] = made_++;
  }

  int64_t CountOf(const Node& node) const {
    return ElementCount(node.type.shape).Bound(sizes_).factor();
  }

  void Classify(NodeId id) {
    const Node& node = graph_.node(id);
    of_indices_[id] = IsOfIndices(id);
    repeated_[id] = IsRepeated(id, strategy_.repeats);
    large_[id] = strategy_.small_first && CountOf(node) > most_ / kSmall;
    for (NodeId operand : node.operands) {
      depths_[id] = std::max(depths_[id], depths_[operand] + 1);
      large_[id] = large_[id] || large_[operand];
    }
    origins_[id] = OnlyAddsOnes(id) ? origins_[node.operands[0]] : id;
  }

  bool IsRepeated(NodeId id, bool repeats) const {
    const Node& node = graph_.node(id);
    if (node.As<Input>()) return true;
    if (node.As<Constant>()) return !multiplied_[id];  // contractions read operands from memory
    if (IsInputWithOnes(id) || of_indices_[id]) return true;
    return repeats && !IsHeavy(node) && CountOf(node) < most_ && !names_.contains(id) &&
           std::ranges::all_of(node.operands, [&](NodeId operand) { return repeated_[operand]; });
  }

  /// True for integers and bools that depend on no input: to compute them costs less than to read
  /// them, and a kernel that knew them as an input alone would be judged on numbers that they never
  /// are.
  bool IsOfIndices(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool light = node.As<Constant>() || node.As<Map>() || node.As<Reshape>() ||
                       node.As<Transpose>() || node.As<Slice>();
    return light && !IsFloat(node.type.dtype) && !multiplied_[id] && !names_.contains(id) &&
           std::ranges::all_of(node.operands, [&](NodeId operand) { return of_indices_[operand]; });
  }

  /// True for an input with axes of extent 1 added or removed, as the weights of channels have
  /// them: a kernel reads the input itself. As nodes of the order, the weights of a model's batch
  /// norms would be half of it.
  bool IsInputWithOnes(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.As<Reshape>() && !multiplied_[id] && !names_.contains(id) &&
           graph_.node(node.operands[0]).As<Input>() && HasSameAxes(id, node.operands[0]);
  }

  /// True if the shapes are equal but for axes of extent 1.
  bool HasSameAxes(NodeId a, NodeId b) const {
    const auto without = [](Shape shape) {
      std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
      return shape;
    };
    return without(graph_.node(a).type.shape) == without(graph_.node(b).type.shape);
  }

  /// True for a reshape that only adds or removes axes of extent 1, of a value that is stored
  /// anyway. The value is stored in its own shape then, because families recognise values of rows
  /// by their shape.
  bool OnlyAddsOnes(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!node.As<Reshape>() || repeated_[id] || multiplied_[id] || names_.contains(id))
      return false;
    return !repeated_[node.operands[0]] && HasSameAxes(id, node.operands[0]);
  }

  /// Appends the node behind its operands. In the usual order the deepest operand comes last, so
  /// that a long chain is not interrupted by the short ones that it needs. Attention divides a
  /// product by the sums of the weights that it multiplies: the product comes first then, since
  /// what makes its other operand, the values, would come between the weights and the product.
  void Append(NodeId id) {
    if (places_[id] != kNowhere || (repeated_[id] && !names_.contains(id))) return;
    std::vector<NodeId> operands = graph_.node(id).operands;
    std::ranges::stable_sort(operands, {}, [&](NodeId operand) {
      return strategy_.deep_first ? -depths_[operand] : depths_[operand];
    });
    std::ranges::stable_partition(operands, [&](NodeId operand) {
      return std::ranges::any_of(operands, [&](NodeId sum) { return Multiplies(operand, sum); });
    });
    for (NodeId operand : operands) Append(operand);
    places_[id] = order_.size();
    order_.push_back(id);
  }

  /// True for a product of the values that `sum` adds up.
  bool Multiplies(NodeId product, NodeId sum) const {
    const auto source = [&](NodeId from) {
      while (IsMoved(from)) from = graph_.node(from).operands[0];
      return from;
    };
    const Node& contract = graph_.node(source(product));
    const Node& reduce = graph_.node(source(sum));
    return contract.As<Contract>() && reduce.As<Reduce>() &&
           std::ranges::any_of(contract.operands, [&](NodeId operand) {
             return source(operand) == source(reduce.operands[0]);
           });
  }

  /// True for another shape, or another type, of one value.
  bool IsMoved(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    return node.As<Reshape>() || (map != nullptr && node.operands.size() == 1 &&
                                  map->body.root().op == ScalarOp::kCast && IsFree(map->body));
  }

  std::string NameOf(NodeId id) const {
    const auto named = names_.find(id);
    return named == names_.end() ? fmt::format("kept{}", id) : named->second;
  }

  /// The subgraph of the nodes at places begin … end - 1 of the order.
  Result<ValidGraph> Subgraph(size_t begin, size_t end) const {
    GraphBuilder builder(graph_.name());
    for (const auto& [name, range] : graph_.symbols())
      ATUNNER_CHECK(builder.Symbol(name, range).has_value());
    std::map<NodeId, Value> made;
    const std::function<Value(NodeId)> make = [&](NodeId id) {
      if (const auto found = made.find(id); found != made.end()) return found->second;
      return made[id] = Make(builder, id, begin, make);
    };
    for (size_t place = begin; place < end; ++place) make(order_[place]);
    for (const Output& output : graph_.outputs()) {
      const size_t place = places_[output.node];
      if (place >= begin && place < end) builder.Output(output.name, make(output.node));
    }
    std::set<NodeId> kept;
    for (size_t place = begin; place < end; ++place) {
      const NodeId id = origins_[order_[place]];
      if (places_[id] >= begin && IsNeededFrom(order_[place], end) && kept.insert(id).second)
        builder.Output(NameOf(id), builder.Cast(make(id), KeptType(id)));
    }
    return std::move(builder).Finish();
  }

  Value Make(GraphBuilder& builder, NodeId id, size_t begin,
             const std::function<Value(NodeId)>& make) const {
    const Node& node = graph_.node(id);
    if (places_[id] < begin && origins_[id] != id)
      return builder.Add(Reshape{node.type.shape}, {make(origins_[id])});
    if (places_[id] < begin)
      return builder.Cast(builder.Input(NameOf(id), {KeptType(id), node.type.shape}),
                          node.type.dtype);
    if (node.As<Input>()) return builder.Input(node.name, node.type);
    std::vector<Value> operands;
    for (NodeId operand : node.operands) operands.push_back(make(operand));
    return builder.Copy(node, std::move(operands));
  }

  /// True if the elements of the node are elements of an input, in another layout.
  bool IsMovedInput(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool moves = node.As<Gather>() || node.As<Reshape>() || node.As<Transpose>() ||
                       node.As<Slice>();
    return node.As<Input>() || (moves && IsMovedInput(node.operands[0]));
  }

  /// The type in which a value is stored between kernels. Small values, statistics of rows for
  /// example, have the type of arithmetic, so that a cut rounds nothing. Large ones have their own,
  /// since a wider one would take twice the time; so have values that the graph casts, outputs,
  /// moved inputs and operands of contractions. Results of convolutions stay wide: stored in
  /// bfloat16, they made a ResNet-50 three times less exact on an H200 (1.1e-2 for 3.6e-3).
  DType KeptType(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    const bool rounds = map != nullptr && map->body.root().op == ScalarOp::kCast;
    const bool large = most_ / kSmall < CountOf(node) && !IsConvolution(node);
    return large || rounds || multiplied_[id] || names_.contains(id) || IsMovedInput(id)
               ? node.type.dtype
               : ArithmeticType(node.type.dtype);
  }

  /// True for a product of windows.
  bool IsConvolution(const Node& node) const {
    return node.As<Contract>() && std::ranges::any_of(node.operands, [&](NodeId operand) {
             return IsMovedWindow(operand);
           });
  }
  bool IsMovedWindow(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool moves = node.As<Reshape>() || node.As<Transpose>() || node.As<Pad>();
    return node.As<Window>() || (moves && IsMovedWindow(node.operands[0]));
  }

  /// By node: true for operands of contractions, and for what layout operations make such operands
  /// of.
  static std::vector<bool> Multiplied(const ValidGraph& graph) {
    std::vector<bool> multiplied(graph.nodes().size(), false);
    for (size_t id = multiplied.size(); id-- > 0;) {
      const Node& user = graph.nodes()[id];
      const bool moves = !IsHeavy(user) && !user.As<Map>();
      for (NodeId operand : user.operands)
        if (user.As<Contract>() || (moves && multiplied[id])) multiplied[operand] = true;
    }
    return multiplied;
  }

  /// True if a node at `place` or later uses it and it is not an output of the graph.
  bool IsNeededFrom(NodeId id, size_t place) const {
    return !names_.contains(id) && last_uses_[id] >= place;
  }

  const ValidGraph& graph_;
  const NodeCodes& codes_;
  const Dims& sizes_;
  const Strategy strategy_;
  std::vector<bool> multiplied_;
  std::map<NodeId, std::string> names_;  ///< of the graph's outputs
  std::vector<bool> of_indices_, repeated_;
  std::vector<int> depths_;      ///< nodes on the longest path from an input
  std::vector<bool> large_;      ///< depends on a large value; all false unless small_first
  std::vector<NodeId> origins_;  ///< the node of which each is a reshape, or itself
  std::vector<size_t> places_;   ///< of each node in `order_`
  std::vector<NodeId> order_;
  std::vector<size_t> last_uses_;  ///< the last place of each node's users
  int64_t most_ = 1;
  // The key that is being made: by node its number, and the visit in which it got it
  std::vector<int32_t> local_, seen_;
  std::vector<int32_t> key_;
  int32_t visit_ = 0, made_ = 0;
};

}  // namespace

std::optional<std::vector<Part>> Partition(const ValidGraph& graph, const Dims& sizes,
                                           const SubgraphCost& cost) {
  CostCache costs(cost);
  const NodeCodes codes(graph);
  PartitionPlan best;
  std::vector<std::pair<bool, std::vector<NodeId>>> tried;
  for (const Strategy strategy : {Strategy{},
                                  {.repeats = false},
                                  {.small_first = true},
                                  {.repeats = false, .small_first = true},
                                  {.deep_first = true}}) {
    Partitioner partitioner(graph, codes, sizes, strategy);
    // Strategies give the same order if nothing is repeated or all values have one size.
    const auto order = std::pair(partitioner.repeats(), partitioner.order());
    if (std::ranges::find(tried, order) != tried.end()) continue;
    tried.push_back(order);
    const double least = best.cost * (strategy.usual() ? 1 : kClearly);
    if (PartitionPlan other = partitioner.Run(costs); other.cost < least) best = std::move(other);
    if (partitioner.order().size() > kLargeGraph && best.cost < kNever) break;
  }
  return best.cost < kNever ? std::optional(std::move(best.parts)) : std::nullopt;
}

bool HasOneAnchor(const ValidGraph& part, bool pairs) {
  std::vector<const Node*> contracts;
  int others = 0;
  for (const Node& node : part.nodes()) {
    if (node.As<Contract>()) contracts.push_back(&node);
    others += node.As<Scan>() || node.As<Sort>() || node.As<Scatter>() ? 1 : 0;
  }
  if (contracts.size() + static_cast<size_t>(others) <= 1) return true;
  const auto shared = [&](NodeId operand) {
    return std::ranges::find(contracts[1]->operands, operand) != contracts[1]->operands.end();
  };
  return pairs && others == 0 && contracts.size() == 2 && part.outputs().size() == 1 &&
         std::ranges::any_of(contracts[0]->operands, shared);
}

bool HasSmallReduction(const ValidGraph& part, const Dims& sizes) {
  const auto count = [&](NodeId id) {
    return ElementCount(part.node(id).type.shape).Bound(sizes).factor();
  };
  int64_t written = 0;
  for (const Output& output : part.outputs()) written = std::max(written, count(output.node));
  return std::ranges::any_of(part.nodes(), [&](const Node& node) {
    return node.As<Reduce>() && count(node.operands[0]) * 8 < written;
  });
}

ValidGraph WithCanonicalNames(const ValidGraph& part) {
  GraphBuilder builder("part");
  for (const auto& [name, range] : part.symbols()) {
    if (UsesSymbol(part, name)) ATUNNER_CHECK(builder.Symbol(name, range).has_value());
  }
  std::vector<Value> made;
  int inputs = 0, outputs = 0;
  for (const Node& node : part.nodes()) {
    std::vector<Value> operands;
    for (NodeId operand : node.operands) operands.push_back(made[operand]);
    made.push_back(node.As<Input>() ? builder.Input(fmt::format("a{}", ++inputs), node.type)
                                    : builder.Copy(node, std::move(operands)));
  }
  for (const Output& output : part.outputs())
    builder.Output(fmt::format("y{}", ++outputs), made[output.node]);
  auto result = std::move(builder).Finish();
  ATUNNER_CHECK(result.has_value());
  return *std::move(result);
}

}  // namespace atunner::graph
