// The library of operators: functions that build graphs. `atunner operators` lists them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The name of the symbol for the number of rows.
inline constexpr const char* kOpenRows = "rows";

/// A request of a user: an operator's type, shapes and attributes.
struct Request {
  DType dtype = DType::kFloat32;
  std::vector<std::vector<int64_t>> shapes;
  Attributes attributes;  ///< those that differ from their fallbacks
  /// The first extent of the first shape becomes the symbol kOpenRows with the range 1 to that
  /// extent, also in other shapes that begin with it. The graph is then valid for fewer rows too.
  bool open_rows = false;
};

struct Attribute {
  std::string name;
  atunner::Value fallback;
  std::string meaning;
};

/// The builder of an operator's graph together with the request.
class Call {
 public:
  Call(std::string name, Request request) : g(std::move(name)), request_(std::move(request)) {}

  GraphBuilder g;

  DType dtype() const { return request_.dtype; }
  size_t shapes() const { return request_.shapes.size(); }
  /// Shape `i`, or the last one if fewer were given.
  Shape shape(size_t i = 0) const;
  /// The shape of tensor i for operators on many independent tensors. Rows are a symbol only if
  /// there is a single tensor.
  Shape own_shape(size_t i) const { return shapes() == 1 ? shape(i) : FixedShape(i); }
  /// The number of shapes that the operator has read, for the check that none is left over.
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
  /// x in float32 if its type is narrower, for sums and norms.
  Value Wide(Value x) { return g.Cast(x, ArithmeticType(g.TypeOf(x).dtype)); }
  /// An output in the request's type.
  void Output(const std::string& name, Value x) { g.Output(name, g.Cast(x, dtype())); }
  /// The attribute `name` as an axis of x, counted from 0. Fails if x has no such axis.
  int64_t Axis(Value x, std::string_view name = "axis");
  Value Fail(std::string what, std::string hint = {});
  /// Fails unless `condition`; returns `condition`.
  bool Check(bool condition, const std::string& what, const std::string& hint = {});

 private:
  Shape FixedShape(size_t i) const;
  Request request_;
  mutable size_t shapes_used_ = 0;
};

/// `body` with each "$name" replaced by the value of that attribute in the request. No attribute's
/// name may be a prefix of another's.
std::string WithAttributes(std::string body, const std::vector<Attribute>& attributes,
                           const Call& call);

struct LibraryOperator {
  std::string name;
  std::string signature;  ///< "rms_norm(x[…, C], weight[C]) → y"
  std::string meaning;
  std::string shape_help;  ///< the shapes it takes, with an example
  std::vector<Attribute> attributes;
  std::function<void(Call&)> build;
  bool differentiable = true;  ///< has an operator `name`_backward made by Gradient
  /// Small shapes with which the operator can be built, for documentation and tests.
  std::vector<std::vector<int64_t>> example;
  /// True for a row of pointwise.def: element-wise
  bool pointwise = false;
};

/// All operators, sorted by name, without the derived gradients.
const std::vector<LibraryOperator>& Library();
/// An operator, or its gradient ("gelu_backward"). Hyphens and underscores in names are equal.
struct Found {
  const LibraryOperator* op = nullptr;
  bool backward = false;
};
std::optional<Found> FindInLibrary(std::string_view name);

/// The attribute of gradients besides those of the operator: the input to differentiate by.
inline const Attribute kWithRespectTo = {"wrt", std::string("all"),
                                         "the input whose gradient is wanted, or all"};

/// The operator's graph. kInvalidInput for wrong shapes or attributes, with an example of right
/// ones.
Result<ValidGraph> Build(const Found& found, const Request& request);

// Each appends one file's operators to the library.
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
