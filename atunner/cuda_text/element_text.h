// ElementText writes CUDA C++ that computes one element of a graph's node from tensors in memory.
//
// It works backwards from the coordinates of the element. Each operation says which elements of its
// operands that element needs:
//
// | node | becomes |
// |---|---|
// | input, stored value | a load: x[(i0) * 64 + i1] |
// | map | an expression over the operands' elements |
// | transpose, slice, reverse, reshape, window | other coordinates for the operand, no code |
// | pad, concat | a condition on a coordinate; only the chosen element is loaded |
// | gather | the index is an element of the second operand, clamped |
// | reduce, contract, fold with few terms | a loop over the summed axes |
//
// Example. y = exp(transpose(x)) + b with x [C, R], b [C], at coordinates {r, c}:
//
//     asked for                               written to scope 0 (once for all lanes)
//     y at {r, c}
//       transpose(x) at {r, c}
//         x at {c, r}                         const float x_0 = load<float>(in_x[c * 1024 + r]);
//       b at {c}                              const float b_1 = load<float>(in_b[c]);
//                                             const float y_2 = expf(x_0) + b_1;
//
// Vectors. A thread may compute `vector` neighbouring elements, its lanes. A coordinate is the same
// for all lanes (kSame), grows by one from lane to lane (kNext), or is any expression over `lane`
// (kAny). A load with kNext along the innermost axis, at a multiple of the vector's width, is one
// wide load. Statements are collected in scopes: scope 0 is computed once for all lanes, scope 1
// for each lane, and deeper scopes are bodies of loops. A value goes into the outermost scope in
// which all it needs is known, and equal values of a scope are computed once:
//
//     Scope(0):  Vector<float> x_0;  read(x_0, in_x + row * 64 + col);
//     caller:    for (int lane = 0; lane < VEC; ++lane) {
//     Scope(1):    const float x_1 = get<float>(x_0, lane);
//     caller:      store(y_out.element[lane], expf(x_1));  }
//
// Conditions. Inside of a pad or concat, loads are guarded by the condition under which the element
// exists: `inside ? load<float>(…) : (float)0`.
//
// A kernel that has computed a node already (the sum of its row, a product) says so with Know; the
// text then uses its variable. Families call Of for each output and put Scope(0) and Scope(1)
// around their own loops (codegen/template/graph_layout.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/cuda_text/coordinate.h"
#include "atunner/graph/graph.h"
#include "atunner/graph/match/inline_work.h"

namespace atunner::graph {

class ElementText {
 public:
  /// A dense tensor in memory, in the node's shape.
  struct Stored {
    std::string pointer;
    std::string type;  ///< of its elements, in CUDA
  };
  struct Options {
    int64_t vector = 1;               ///< lanes of a vector
    bool wide = false;                ///< floats are computed in float64
    std::string indent;               ///< of the statements of scope 0
    std::string index = "long long";  ///< the type of coordinates
    bool narrow = false;              ///< functions may be as inexact as 16-bit results allow
    /// The statements of scope 0 are executed for several vectors before scope 1 of the first one,
    /// so that more loads are in flight. Their variables become arrays over `item`.
    bool ahead = false;
  };
  /// An expression, and the outermost scope in which it can be evaluated: 0 is once for all lanes,
  /// 1 is for each lane, more is inside of loops.
  struct Value {
    std::string text;
    int depth = 0;
  };

  /// `stored` returns where a node is in memory; nullopt for nodes that are to be computed.
  ElementText(const ValidGraph& graph, std::function<std::optional<Stored>(NodeId)> stored,
              Options options);
  /// Only inputs are in memory, x at the pointer in_x.
  ElementText(const ValidGraph& graph, Options options);

  /// The value of the node's element at these coordinates. The statements that it needs are
  /// appended to the scopes.
  Value Of(NodeId id, const Coordinates& at);
  /// From here on `value` is the node's element at these coordinates. An element of this node at
  /// other coordinates cannot be computed; asking for it sets failed().
  void Know(NodeId id, Value value, Coordinates at) {
    known_nodes_[id] = {std::move(value), std::move(at)};
  }
  /// `text` is the row-major index of the element at these coordinates in every tensor of this
  /// shape. Vectors along it are contiguous, also across the ends of rows.
  void Number(Shape shape, Coordinates at, std::string text) {
    numbered_ = {std::move(shape), std::move(at), std::move(text)};
  }
  /// True if an element was asked for that cannot be computed.
  bool failed() const { return failed_; }
  /// The statements of scope `depth`, 0 or 1, so far.
  const std::string& Scope(size_t depth) const { return scopes_[depth].text; }
  /// With Options::ahead: the statements that take the place of scope 0, and the declarations of
  /// the arrays that they fill.
  const std::string& Ahead() const { return ahead_; }
  const std::string& Arrays() const { return arrays_; }

 private:
  struct Statements {
    std::string text;
    std::map<std::string, std::string> known;  ///< names of values by their expressions
  };

  Value Compute(NodeId id, const Coordinates& at);
  /// Where an element is in its tensor, in elements from the tensor's first one.
  struct Offset {
    std::string first, each;  ///< of lane 0 and of the lane `lane`
    int depth = 0;            ///< the outermost scope in which `each` can be evaluated
    bool vectored = false;    ///< all lanes can be read by one aligned load from `first` on
  };
  Offset OffsetOf(const TensorType& type, const Coordinates& at) const;
  Value Load(NodeId id, const Stored& stored, const Coordinates& at);
  /// The name of the vector that is read from offset `first` on, once in scope 0.
  std::string LoadVector(const Stored& stored, const std::string& first, const std::string& stem);
  /// The elements of a constant as a static array of the kernel.
  Stored Table(NodeId id, const Constant& constant);
  Value MapAt(const Node& node, const Map& map, const Coordinates& at);
  Value Relocated(const Node& node, const Coordinates& at);
  Value Concatenated(const Node& node, int64_t axis, const Coordinates& at);
  Value Padded(const Node& node, const Pad& pad, const Coordinates& at);
  Value Folded(const Node& node, const Fold& fold, const Coordinates& at);
  Value Gathered(const Node& node, const Gather& gather, const Coordinates& at);
  Value Reduced(const Node& node, const Reduce& reduce, const Coordinates& at);
  Value Contracted(const Node& node, const Contract& contract, const Coordinates& at);
  Coordinates Reshaped(const Shape& from, const Shape& to, const Coordinates& at) const;

  /// A loop nest that accumulates into `total`, a variable with the initial value `start`. `body`
  /// returns the expression that is assigned to `total` in each iteration.
  Value Loop(const std::string& type, const std::string& start,
             const std::vector<std::string>& extents,
             const std::function<std::string(const std::vector<Coordinate>&,
                                             const std::string& total)>& body);
  /// Calls `make`; the loads in it are guarded by `condition`.
  Value If(const Value& condition, const std::function<Value()>& make);
  /// The name of a constant with this value, which is declared once in each scope.
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
  Value valid_;  ///< the condition that guards loads; empty = always true
  int names_ = 0;
};

/// True if every output has the node's shape, and each of its elements is computed from the node's
/// element at the same coordinates and at most `most` stored elements.
bool IsFinishedInPlace(const ValidGraph& graph, NodeId node, double most);

/// The text of a device function `name` that computes an element of node `to` from one element of
/// node `from`, through maps and layout operations. The types are CUDA types.
std::string ElementFunction(const ValidGraph& graph, std::string_view name, NodeId from,
                            std::string_view from_type, NodeId to, std::string_view to_type);

}  // namespace atunner::graph
