// One call of an ATen operator while its graph is built: the arguments by name, and helpers that
// several operators need. An error is kept by the builder, and later calls are ignored, as in the
// library of operators (graph/library/library.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/graph/graph.h"
#include "atunner/importers/aten/graph_call.h"
#include "atunner/importers/program/exported_program.h"
#include "atunner/model/value/value.h"

namespace atunner::importers {

/// An argument of an operator's signature.
struct Parameter {
  std::string name;
  std::optional<Argument> fallback;
};

/// Values by their names in the program.
using Values = std::map<std::string, graph::Value, std::less<>>;

/// Graphs of library operators that were built before, by request. Models repeat their layers.
using LibraryCache = std::map<std::string, graph::ValidGraph>;

class AtenCall : public GraphCall {
 public:
  AtenCall(graph::GraphBuilder& builder, const ProgramNode& node,
           const std::vector<Parameter>& parameters, const Values& values,
           const ExportedProgram& program, LibraryCache& cache);

  /// True if the argument is given, or has a default, and is not None.
  bool Has(std::string_view name) const;
  bool IsTensor(std::string_view name) const;
  bool HoldsText(std::string_view name) const;
  graph::Value Tensor(std::string_view name);
  std::vector<graph::Value> Tensors(std::string_view name);
  /// A list in which None may stand for a tensor.
  std::vector<std::optional<graph::Value>> OptionalTensors(std::string_view name);
  double Real(std::string_view name);
  int64_t Whole(std::string_view name);
  bool Flag(std::string_view name);
  std::string Text(std::string_view name);
  DType Type(std::string_view name);
  /// A list of integers; a single integer is a list of one.
  Integers Wholes(std::string_view name);
  /// The same with one number for each of `n` axes: a list of one is repeated, and an empty list
  /// or None is `fallback` for each.
  Integers PerAxis(std::string_view name, size_t n, int64_t fallback);
  /// The argument as axis of x, counted from 0.
  int64_t Axis(std::string_view name, graph::Value x);
  /// The axes of x that the argument lists; all for None and for an empty list.
  Integers Axes(std::string_view name, graph::Value x);
  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// The type and sizes that the program states for the first result.
  const TensorMeta* Result() const;
  /// The type of the first result, or `fallback` if the program does not state it.
  DType ResultType(DType fallback) const;
  /// PyTorch's common type of these arguments: a tensor decides before a scalar tensor, and that
  /// before a number, unless the later one is of a higher kind (bool, integer, float).
  DType CommonType(const std::vector<std::string_view>& names);

  /// The graph of an operator of the library (its first result), on these operands. The operator is
  /// asked with the shapes of the first `stated` ones, from which it knows those of the others.
  graph::Value Library(std::string_view name, DType dtype,
                       const std::vector<graph::Value>& operands, const Attributes& attributes = {},
                       size_t stated = 3);
  /// Library with all results of the operator; none after an error.
  std::vector<graph::Value> LibraryResults(std::string_view name, DType dtype,
                                           const std::vector<graph::Value>& operands,
                                           const Attributes& attributes = {}, size_t stated = 3);

 private:
  const Argument* Find(std::string_view name) const;
  template <class T>
  const T* Get(std::string_view name, const char* wanted);
  graph::Value Named(const TensorRef& tensor);

  const ProgramNode& node_;
  const std::vector<Parameter>& parameters_;
  const Values& values_;
  const ExportedProgram& program_;
  LibraryCache& cache_;
};

/// The nodes of a graph on these operands in the place of its inputs; one value for each output.
std::vector<graph::Value> Inline(graph::GraphBuilder& builder, const graph::ValidGraph& graph,
                                 const std::vector<graph::Value>& operands);

}  // namespace atunner::importers
