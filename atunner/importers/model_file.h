// Containers of exported programs: .pt2 archives of both layouts, and a program's JSON alone.
#pragma once

#include <string>
#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/importers/program/exported_program.h"
#include "atunner/importers/program/weights.h"

namespace atunner::importers {

struct ModelFile {
  ExportedProgram program;
  Weights weights;
  /// False where the container keeps no weights, or keeps them in pickles (up to PyTorch 2.7).
  bool has_weights = false;
};

/// A .pt2 archive, or a .json with the folder `data` beside it, if there are weights
/// (docs/formats/model-json.md).
Result<ModelFile> ReadModelFile(const Path& path);

/// An archive in memory.
Result<ModelFile> ReadModelArchive(std::string_view bytes, const std::string& where);

/// True if the file's name or its first bytes say that it is one of these containers, or an ONNX
/// model.
bool IsModelFile(const Path& path);
bool IsOnnxFile(const Path& path);

}  // namespace atunner::importers
