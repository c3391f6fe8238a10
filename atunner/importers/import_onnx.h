// From an ONNX model to a graph of atunner.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/importers/import_model.h"

namespace atunner::importers {

/// The graph of an ONNX model in memory. Weights are inputs of the graph behind those of the user;
/// small tensors, and tensors of integers, are constants. `folder` holds external data.
///
/// kUnsupported names all unknown operators at once; kInvalidInput names the node that is wrong, or
/// all open axes for which `options` has no size. Nodes that no result needs are ignored.
Result<ImportedModel> ImportOnnx(std::string_view bytes, const std::string& name,
                                 const std::string& folder, const ImportOptions& options = {});

}  // namespace atunner::importers
