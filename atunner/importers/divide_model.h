// A program divided around the operators that atunner does not know: graphs that become kernels,
// and between them the calls that the framework runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/graph/graph.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/model_file.h"
#include "atunner/model/value/value.h"

namespace atunner::importers {

/// A tensor of the program at the border of a segment or of the whole.
struct ModelValue {
  std::string name;  ///< in the program
  graph::TensorType type;
};

/// An operator of atunner's library with its request.
struct LibraryCall {
  std::string name;  ///< "attention_gqa_backward"
  std::vector<std::vector<int64_t>> shapes;
  DType dtype = DType::kFloat32;
  Attributes attributes;
};

/// A part of the program as a graph. Inputs and outputs of the graph have, in its order, the names
/// of these values in the program.
struct ModelSegment {
  graph::ValidGraph graph;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  /// What the graph computes, if it is one operator of the library for which families have kernels
  /// of their own. Its tensors are the graph's, in the same order.
  std::optional<LibraryCall> library = std::nullopt;
};

/// A call of an operator that atunner does not know.
struct ExternCall {
  std::string target;  ///< "aten.cumsum.default"
  /// A JSON list of {"name", "arg"} in the program's form, without devices and layouts.
  std::string arguments;
  std::vector<std::string> reads;   ///< names of values, each once
  std::vector<std::string> writes;  ///< names of its results, in their order
};

struct DividedInput {
  ModelValue value;
  InputKind kind = InputKind::kUser;
  std::string qualified_name;
  std::optional<WeightPlace> place;
};

struct DividedModel {
  /// In an order in which they can run.
  std::vector<std::variant<ModelSegment, ExternCall>> steps;
  std::vector<DividedInput> inputs;    ///< users', parameters, buffers, constants
  std::vector<ProgramOutput> outputs;  ///< by the program's names of values
  std::vector<ModelValue> externs;     ///< all results of externs
  std::vector<std::string> notes;
};

/// Divides a program into as few segments as its unknown operators allow: a node is in segment k if
/// the longest chain of unknown operators before it has k members. Without unknown operators there
/// is one segment. Attention that a step keeps whole ("atunner.attention" and its gradient) divides
/// it in the same way, and is a segment of its own. kInvalidInput and kUnsupported as
/// ImportProgram; kUnsupported too for unknown operators that work in place, and where no operator
/// is known.
Result<DividedModel> DivideModel(const ModelFile& file, const std::string& name);

/// The model of a file, divided. An ONNX model is one segment: all of its operators have to be
/// known.
Result<DividedModel> DivideModelFile(const Path& path, const ImportOptions& options = {});

}  // namespace atunner::importers
