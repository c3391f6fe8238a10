// Elements of a graph's nodes as CUDA C++: what lies between an element of a result and the tensors
// in memory that it is computed from. Moves of data (transpose, slice, pad, concat, reverse,
// window, gather, …) become arithmetic on coordinates; maps become expressions; small sums become
// loops.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/graph.h"
#include "atunner/graph/match/inline_work.h"

namespace atunner::graph {

/// A place along one axis, for one element or for the lanes of a vector of neighbouring ones.
struct Coordinate {
  enum class Lanes : uint8_t {
    kSame,  ///< all lanes have it
    kNext,  ///< `text` is lane 0's, the others follow
    kAny,   ///< `text` speaks of `lane`
  };
  std::string text;
  Lanes lanes = Lanes::kSame;
  int64_t multiple = 1;  ///< kNext: what lane 0's place is a multiple of
  int depth = 0;         ///< scope in which its text may stand

  bool operator==(const Coordinate& other) const {
    return text == other.text && lanes == other.lanes;
  }
  std::string OfLane() const { return lanes == Lanes::kNext ? "(" + text + " + lane)" : text; }
};
using Coordinates = std::vector<Coordinate>;

class ElementText {
 public:
  /// A tensor in memory.
  struct Stored {
    std::string pointer;
    std::string type;  ///< of its elements
  };
  struct Options {
    int64_t vector = 1;               ///< lanes
    bool wide = false;                ///< floats are computed in float64
    std::string indent;               ///< of scope 0
    std::string index = "long long";  ///< type of coordinates
    bool narrow = false;              ///< short functions, as 16-bit results need them
    /// What all lanes share is computed for several vectors before any lane is: its names are
    /// arrays over `item`.
    bool ahead = false;
  };
  /// What part of an expression is at hand, and from which scope on: 0 once for all lanes, 1 for
  /// each lane, more inside of loops.
  struct Value {
    std::string text;
    int depth = 0;
  };

  ElementText(const ValidGraph& graph, std::function<std::optional<Stored>(NodeId)> stored,
              Options options);
  /// Inputs alone lie in memory, x at in_x.
  ElementText(const ValidGraph& graph, Options options);

  /// The element's value; what it takes is added to the scopes.
  Value Of(NodeId id, const Coordinates& at);
  /// From here on the node's element at these coordinates is at hand; one elsewhere cannot be had.
  void Know(NodeId id, Value value, Coordinates at) {
    known_nodes_[id] = {std::move(value), std::move(at)};
  }
  /// Elements at these coordinates of a tensor of this shape follow each other from number `text`
  /// on, whatever rows they lie in.
  void Number(Shape shape, Coordinates at, std::string text) {
    numbered_ = {std::move(shape), std::move(at), std::move(text)};
  }
  /// Was an element asked for that cannot be had?
  bool failed() const { return failed_; }
  /// The statements of scope 0 or 1 so far.
  const std::string& Scope(size_t depth) const { return scopes_[depth].text; }
  /// What is computed ahead, in place of scope 0, and the arrays that it fills.
  const std::string& Ahead() const { return ahead_; }
  const std::string& Arrays() const { return arrays_; }

 private:
  struct Statements {
    std::string text;
    std::map<std::string, std::string> known;  ///< names of values by what they are
  };

  Value Compute(NodeId id, const Coordinates& at);
  Value Load(NodeId id, const Stored& stored, const Coordinates& at);
  /// Elements that are known, as an array of the kernel.
  Stored Table(NodeId id, const Constant& constant);
  Value MapAt(const Node& node, const Map& map, const Coordinates& at);
  Value Move(const Node& node, const Coordinates& at);
  Value Joined(const Node& node, int64_t axis, const Coordinates& at);
  Value Padded(const Node& node, const Pad& pad, const Coordinates& at);
  Value Folded(const Node& node, const Fold& fold, const Coordinates& at);
  Value Gathered(const Node& node, const Gather& gather, const Coordinates& at);
  Value Reduced(const Node& node, const Reduce& reduce, const Coordinates& at);
  Value Contracted(const Node& node, const Contract& contract, const Coordinates& at);
  Coordinates Reshaped(const Shape& from, const Shape& to, const Coordinates& at) const;

  /// A loop whose body adds to `total` (a variable that begins as `start`): `body` says what each
  /// turn combines.
  Value Loop(const std::string& type, const std::string& start,
             const std::vector<std::string>& extents,
             const std::function<std::string(const std::vector<Coordinate>&,
                                             const std::string& total)>& body);
  /// Runs `make` where only elements that fulfil the condition are touched.
  Value If(const Value& condition, const std::function<Value()>& make);
  /// A constant of that type, named once for each value.
  Value Named(const std::string& type, const std::string& text, int depth, const std::string& stem);
  bool IsAhead(int depth) const { return depth == 0 && options_.ahead; }
  std::string NewName(int depth, const std::string& type, const std::string& stem);
  void Line(int depth, const std::string& line);
  std::string Indent(int depth) const;
  std::string Arithmetic(DType dtype) const;
  const TensorType& TypeOf(NodeId id) const { return graph_.node(id).type; }

  const ValidGraph& graph_;
  std::function<std::optional<Stored>(NodeId)> stored_;
  Options options_;
  struct Numbered {
    Shape shape;
    Coordinates at;
    std::string text;
  };
  std::vector<Statements> scopes_;
  std::string ahead_, arrays_;
  Numbered numbered_;
  std::map<NodeId, std::pair<Value, Coordinates>> known_nodes_;
  bool failed_ = false;
  Value valid_;  ///< condition under which elements may be touched; empty = always
  int names_ = 0;
};

/// Is every output of the node's shape, and each of its elements made of the node's at the same
/// place and at most so many of inputs?
bool IsFinishedInPlace(const ValidGraph& graph, NodeId node, double most);

/// A device function of that name: an element of node `to` by the element of `from` that it is made
/// of, through maps and moves. Both types are C++'s, of storage or of arithmetic.
std::string ElementFunction(const ValidGraph& graph, std::string_view name, NodeId from,
                            std::string_view from_type, NodeId to, std::string_view to_type);

}  // namespace atunner::graph
