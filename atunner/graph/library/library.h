// The library of operators: functions that build graphs. `atunner operators` lists them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// What the library calls the size that it leaves open.
inline constexpr const char* kOpenRows = "rows";

/// What a user asks of an operator.
struct Request {
  DType dtype = DType::kFloat32;
  std::vector<std::vector<int64_t>> shapes;
  Attributes attributes;  ///< those that differ from their fallbacks
  /// The first extent of the first shape, and of others that begin with the same, becomes the
  /// symbol kOpenRows in the range from 1 to it: what is built then serves fewer rows too.
  bool open_rows = false;
};

struct Attribute {
  std::string name;
  atunner::Value fallback;
  std::string meaning;
};

/// One request while its graph is built: the builder, and what was asked for.
class Call {
 public:
  Call(std::string name, Request request) : g(std::move(name)), request_(std::move(request)) {}

  GraphBuilder g;

  DType dtype() const { return request_.dtype; }
  size_t shapes() const { return request_.shapes.size(); }
  /// Shape `i`; the last one stands for those that were not given.
  Shape shape(size_t i = 0) const;
  /// Of one of many tensors, of which each is by itself: rows are open where there is one alone.
  Shape own_shape(size_t i) const { return shapes() == 1 ? shape(i) : FixedShape(i); }
  /// How many of the shapes the operator looked at.
  size_t shapes_used() const { return shapes_used_; }
  double Real(std::string_view name) const;
  int64_t Whole(std::string_view name) const { return static_cast<int64_t>(Real(name)); }
  bool Flag(std::string_view name) const { return Real(name) != 0; }
  std::string Text(std::string_view name) const;

  Value Input(const std::string& name, Shape shape) {
    return g.Input(name, {dtype(), std::move(shape)});
  }
  Value Input(const std::string& name, Shape shape, DType type) {
    return g.Input(name, {type, std::move(shape)});
  }
  /// In float32 where the type is narrower: what sums and norms compute in.
  Value Wide(Value x) { return g.Cast(x, ArithmeticType(g.TypeOf(x).dtype)); }
  /// An output in the request's type.
  void Output(const std::string& name, Value x) { g.Output(name, g.Cast(x, dtype())); }
  /// `axis` attribute, counted from 0; fails for one that x does not have.
  int64_t Axis(Value x, std::string_view name = "axis");
  Value Fail(std::string what, std::string hint = {});
  /// The same, unless `condition`.
  bool Check(bool condition, const std::string& what, const std::string& hint = {});

 private:
  Shape FixedShape(size_t i) const;
  Request request_;
  mutable size_t shapes_used_ = 0;
};

/// `body` with the request's numbers for "$name", attribute by attribute. No attribute's name
/// begins with another's.
std::string WithAttributes(std::string body, const std::vector<Attribute>& attributes,
                           const Call& call);

struct LibraryOperator {
  std::string name;
  std::string signature;  ///< "rms_norm(x[…, C], weight[C]) → y"
  std::string meaning;
  std::string shape_help;  ///< what to give as shapes, with an example
  std::vector<Attribute> attributes;
  std::function<void(Call&)> build;
  bool differentiable = true;  ///< has an operator `name`_backward made by Gradient
  /// Shapes, small, with which the operator can be built: examples for documentation and tests.
  std::vector<std::vector<int64_t>> example;
  /// A row of pointwise.def: each element of the result from one of each operand
  bool pointwise = false;
};

/// By name. Derived gradients are not among them, but found.
const std::vector<LibraryOperator>& Library();
/// The operator's index in Library, and whether its gradient is meant; hyphens and underscores are
/// the same.
struct Found {
  const LibraryOperator* op = nullptr;
  bool backward = false;
};
std::optional<Found> FindInLibrary(std::string_view name);

/// What a gradient takes besides its operator's attributes: the input by which it is wanted, of
/// which there may be more than one.
inline const Attribute kWithRespectTo = {"wrt", std::string("all"),
                                         "the input whose gradient is wanted, or all"};

/// kInvalidInput says what is wrong with shapes or attributes, and shows right ones.
Result<ValidGraph> Build(const Found& found, const Request& request);

// The parts of Library.
void AddPointwise(std::vector<LibraryOperator>& library);
void AddReductions(std::vector<LibraryOperator>& library);
void AddNorms(std::vector<LibraryOperator>& library);
void AddContractions(std::vector<LibraryOperator>& library);
void AddTransformerParts(std::vector<LibraryOperator>& library);
void AddWindows(std::vector<LibraryOperator>& library);
void AddLosses(std::vector<LibraryOperator>& library);
void AddIndexing(std::vector<LibraryOperator>& library);
void AddLayoutOperations(std::vector<LibraryOperator>& library);

}  // namespace atunner::graph
