// A graph that is named on the command line, and what is known of the model that it is from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/fusion/fusion_plan.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/python_model.h"

namespace atunner::cli {

struct ModelSource {
  graph::ValidGraph graph;
  std::optional<importers::ImportedModel> model;  ///< empty for a graph in text form
};

/// If `file` is a Python model, exports it and puts the archive's name into `file`. The archive
/// lives as long as the result.
Result<std::optional<importers::ExportedModel>> ExportIfPython(std::string& file);

/// model.pt2, model.json, model.onnx, model.py[:CLASS], or a graph in text form. `sizes` are those
/// of the open axes of an ONNX model.
Result<ModelSource> ReadModelSource(const std::string& path, const Dims& sizes = {});

/// Which inputs of the graph are weights; empty where that is not known. In a training step none
/// are: parameters change with every step.
std::vector<fusion::InputFact> InputFacts(const ModelSource& source);

}  // namespace atunner::cli
