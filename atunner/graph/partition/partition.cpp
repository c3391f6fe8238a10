#include "atunner/graph/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace atunner::graph {
namespace {

/// Nodes that one part may hold: attention's gradients have some forty.
constexpr size_t kLongest = 48;
constexpr int64_t kSmall = 64;  // times less than the largest value
// of what the usual order costs: else parts stay as they were measured and judged
constexpr double kClearly = 0.9;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct PartitionPlan {
  double cost = kNever;
  std::vector<ValidGraph> parts;
};

/// Does it compute more than each element of its result from few elements?
bool IsHeavy(const Node& node) {
  return node.As<Reduce>() || node.As<Scan>() || node.As<Contract>() || node.As<Sort>() ||
         node.As<Scatter>();
}

struct Manner {
  /// Small values that inputs alone say are computed again wherever they are needed
  bool repeats = true;
  /// What is summed up of small values alone comes first: a loss's gradient needs the number of
  /// rows that count, which else lies between two parts that read the logits.
  bool small_first = false;
  bool deep_first = false;  ///< of operands the one with most before it comes first, else last

  bool usual() const { return !small_first && !deep_first; }
};

class Partitioner {
 public:
  Partitioner(const ValidGraph& graph, const Dims& sizes, Manner manner)
      : graph_(graph),
        sizes_(sizes),
        manner_(manner),
        multiplied_(Multiplied(graph)),
        repeated_(graph.nodes().size(), false),
        depths_(graph.nodes().size(), 0),
        large_(graph.nodes().size(), false),
        origins_(graph.nodes().size(), 0),
        places_(graph.nodes().size(), kNowhere) {
    for (const Output& output : graph.outputs()) names_.try_emplace(output.node, output.name);
    for (const Node& node : graph.nodes()) most_ = std::max(most_, CountOf(node));
    for (size_t id = 0; id < repeated_.size(); ++id) {
      const Node& node = graph.nodes()[id];
      repeated_[id] = IsRepeated(static_cast<NodeId>(id), manner.repeats);
      large_[id] = manner.small_first && CountOf(node) > most_ / kSmall;
      for (NodeId operand : node.operands) {
        depths_[id] = std::max(depths_[id], depths_[operand] + 1);
        large_[id] = large_[id] || large_[operand];
      }
      origins_[id] = OnlyAddsOnes(static_cast<NodeId>(id)) ? origins_[node.operands[0]]
                                                           : static_cast<NodeId>(id);
    }
    for (size_t id = 0; id < large_.size() && manner.small_first; ++id) {
      if (!large_[id] && IsHeavy(graph.nodes()[id])) Place(static_cast<NodeId>(id));
    }
    for (const Output& output : graph.outputs()) Place(output.node);
  }

  const std::vector<NodeId>& order() const { return order_; }

  /// Is there anything but inputs and constants to repeat?
  bool repeats() const {
    for (size_t id = 0; id < repeated_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (repeated_[id] && !node.As<Input>() && !node.As<Constant>()) return true;
    }
    return false;
  }

  /// From the end: the best way to compute what is behind each place.
  PartitionPlan Run(const SubgraphCost& cost) {
    std::vector<Way> ways(order_.size() + 1);
    ways.back().cost = 0;
    for (size_t begin = order_.size(); begin-- > 0;) {
      // Long parts first: what they cost spares most of the short ones.
      for (size_t end = std::min(order_.size(), begin + kLongest); end > begin; --end) {
        const double most = ways[begin].cost - ways[end].cost;
        if (ways[end].cost == kNever || most <= 0) continue;
        auto part = Part(begin, end);
        const auto own = part ? cost(*part, most) : std::nullopt;
        if (own && *own < most) ways[begin] = {*own + ways[end].cost, end, *std::move(part)};
      }
    }
    PartitionPlan division{ways[0].cost, {}};
    for (size_t at = 0; at < order_.size() && division.cost < kNever; at = ways[at].end)
      division.parts.push_back(*ways[at].part);
    return division;
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;
  struct Way {
    double cost = kNever;
    size_t end = 0;  ///< where the first part ends
    std::optional<ValidGraph> part;
  };

  int64_t CountOf(const Node& node) const {
    return ElementCount(node.type.shape).Bound(sizes_).factor();
  }

  bool IsRepeated(NodeId id, bool repeats) const {
    const Node& node = graph_.node(id);
    if (node.As<Input>()) return true;
    if (node.As<Constant>()) return !multiplied_[id];  // products take what is in memory
    return repeats && !IsHeavy(node) && CountOf(node) < most_ && !names_.contains(id) &&
           std::ranges::all_of(node.operands, [&](NodeId operand) { return repeated_[operand]; });
  }

  /// Another shape of what lies in memory anyway, with more or fewer axes of extent 1? Then that is
  /// kept: families tell a row's values by their shape. Products take what is in memory as it is.
  bool OnlyAddsOnes(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!node.As<Reshape>() || repeated_[id] || multiplied_[id] || names_.contains(id))
      return false;
    const auto without = [](Shape shape) {
      std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
      return shape;
    };
    return !repeated_[node.operands[0]] &&
           without(node.type.shape) == without(graph_.node(node.operands[0]).type.shape);
  }

  /// Right before the first that needs it. Where the operand with most before it comes last, a long
  /// chain has its short ones' results at hand.
  void Place(NodeId id) {
    if (places_[id] != kNowhere || (repeated_[id] && !names_.contains(id))) return;
    std::vector<NodeId> operands = graph_.node(id).operands;
    std::ranges::stable_sort(operands, {}, [&](NodeId operand) {
      return manner_.deep_first ? -depths_[operand] : depths_[operand];
    });
    for (NodeId operand : operands) Place(operand);
    places_[id] = order_.size();
    order_.push_back(id);
  }

  std::string NameOf(NodeId id) const {
    const auto named = names_.find(id);
    return named == names_.end() ? fmt::format("kept{}", id) : named->second;
  }

  /// The nodes at these places.
  Result<ValidGraph> Part(size_t begin, size_t end) const {
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

  /// Elements of an input, wherever they lie now?
  bool IsMoved(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool moves = node.As<Gather>() || node.As<Reshape>() || node.As<Transpose>() ||
                       node.As<Slice>();
    return node.As<Input>() || (moves && IsMoved(node.operands[0]));
  }

  /// What goes from part to part loses no more than arithmetic does, but for what the graph itself
  /// makes narrower, and what products take as it is.
  DType KeptType(NodeId id) const {
    const DType own = graph_.node(id).type.dtype;
    const auto* map = graph_.node(id).As<Map>();
    const bool rounds = map != nullptr && map->body.root().op == ScalarOp::kCast;
    return rounds || multiplied_[id] || names_.contains(id) || IsMoved(id) ? own
                                                                           : ArithmeticType(own);
  }

  /// Which nodes contractions take, as they are or moved.
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

  static bool Uses(const Node& user, NodeId id) {
    return std::ranges::find(user.operands, id) != user.operands.end();
  }

  /// By a node at `place` or later, where it is not an output of the graph anyway.
  bool IsNeededFrom(NodeId id, size_t place) const {
    if (names_.contains(id)) return false;
    return std::any_of(order_.begin() + static_cast<ptrdiff_t>(place), order_.end(),
                       [&](NodeId user) { return Uses(graph_.node(user), id); });
  }

  const ValidGraph& graph_;
  const Dims& sizes_;
  const Manner manner_;
  std::vector<bool> multiplied_;
  std::map<NodeId, std::string> names_;  ///< of what is an output
  std::vector<bool> repeated_;
  std::vector<int> depths_;      ///< nodes on the longest way from an input
  std::vector<bool> large_;      ///< takes large values, where those come last
  std::vector<NodeId> origins_;  ///< what each is another shape of, or itself
  std::vector<size_t> places_;   ///< of each node in `order_`
  std::vector<NodeId> order_;
  int64_t most_ = 1;
};

/// Costs that were asked for: manners of dividing have most parts in common.
class CostCache {
 public:
  explicit CostCache(const SubgraphCost& cost) : cost_(cost) {}
  std::optional<double> Of(const ValidGraph& part, double most) {
    const auto [known, fresh] = known_.try_emplace(part.ContentDigest());
    auto& [own, asked] = known->second;
    if (fresh || (!own && most > asked)) own = cost_(part, most), asked = most;
    return own;
  }

 private:
  const SubgraphCost& cost_;
  /// By the part's digest: its cost, if there is one, and the limit that it was asked for with
  std::map<Digest, std::pair<std::optional<double>, double>> known_;
};

}  // namespace

std::optional<std::vector<ValidGraph>> Partition(const ValidGraph& graph, const Dims& sizes,
                                                 const SubgraphCost& cost) {
  CostCache known(cost);
  const SubgraphCost known_cost = [&](const ValidGraph& part, double most) {
    return known.Of(part, most);
  };
  PartitionPlan best;
  std::vector<std::pair<bool, std::vector<NodeId>>> tried;
  for (const Manner manner : {Manner{},
                              {.repeats = false},
                              {.small_first = true},
                              {.repeats = false, .small_first = true},
                              {.deep_first = true}}) {
    Partitioner divider(graph, sizes, manner);
    // Where there is nothing to repeat, or all is of one size, a manner is one that was tried.
    const auto way = std::pair(divider.repeats(), divider.order());
    if (std::ranges::find(tried, way) != tried.end()) continue;
    tried.push_back(way);
    const double least = best.cost * (manner.usual() ? 1 : kClearly);
    if (PartitionPlan other = divider.Run(known_cost); other.cost < least) best = std::move(other);
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
    const auto has = [&](const Extent& extent) {
      return std::ranges::find(extent.symbols(), name) != extent.symbols().end();
    };
    if (std::ranges::any_of(part.nodes(), [&](const Node& node) {
          return std::ranges::any_of(node.type.shape, has);
        }))
      ATUNNER_CHECK(builder.Symbol(name, range).has_value());
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
