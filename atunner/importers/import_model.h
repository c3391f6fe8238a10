// From a PyTorch program or an ONNX model to a graph of atunner.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/graph.h"
#include "atunner/importers/model_file.h"
#include "atunner/model/value/value.h"

namespace atunner::importers {

/// What an input of the graph is in the model.
struct ModelInput {
  std::string name;  ///< in the graph
  InputKind kind = InputKind::kUser;
  std::string qualified_name;        ///< "layers.0.weight"; empty for inputs of users
  std::optional<WeightPlace> place;  ///< empty where the container has no raw weights
};

/// What an output of the graph is in the model.
struct ModelOutput {
  std::string name;  ///< in the graph
  OutputRole role = OutputRole::kResult;
  /// kUpdate, kGradient: the qualified name of the input that it belongs to
  std::string of;
};

struct ImportedModel {
  graph::ValidGraph graph;
  /// Inputs of users, then parameters, buffers and constants, each in the program's order. Weights
  /// are inputs like any other.
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;      ///< one for each output of the graph
  std::map<std::string, int> operators;  ///< how often each operator is called
  std::vector<std::string> notes;        ///< what a user should know about how the file was read

  /// True for a training step: it has gradients of parameters, or their updates.
  bool trains() const;
};

/// The file's name as a graph's name: letters, digits and _.
std::string GraphNameOf(const Path& path);

/// True if the operator, "aten.add.Tensor", can become part of a graph.
bool KnowsOperator(const std::string& target);

/// True for each node of the program whose results an output needs.
std::vector<bool> NeededNodes(const ExportedProgram& program);

/// The graph of a program. kUnsupported names all unknown operators at once; kInvalidInput names
/// the node that is wrong. Nodes that no result needs are ignored.
Result<ImportedModel> ImportProgram(const ModelFile& file, const std::string& name);

/// What a file leaves open.
struct ImportOptions {
  Dims sizes;  ///< of ONNX's open axes, by name
  /// Inputs of an ONNX model that become constants, by name: shapes and axes have to be known.
  std::map<std::string, graph::Tensor> bound;
};

/// The graph of a model file, under the file's name.
Result<ImportedModel> ImportModel(const Path& path, const ImportOptions& options = {});

}  // namespace atunner::importers
