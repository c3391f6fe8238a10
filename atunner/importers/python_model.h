// Models that are Python files: exported by the user's own Python and PyTorch.
#pragma once

#include <string>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::importers {

/// An archive that is removed with this.
struct ExportedModel {
  TemporaryDirectory folder;
  Path archive;  ///< NAME.pt2, for NAME.py
};

/// Runs the Python that ATUNNER_PYTHON names, else python3 of PATH, on the code of the package
/// `atunner`, which this library carries: nothing has to be installed but PyTorch. The file has a
/// torch.nn.Module (CLASS; else `Model`, else the only one), get_inputs() and, if its constructor
/// takes arguments, get_init_inputs(). It is exported in inference, on those inputs.
/// kUnavailable without Python or PyTorch, kInvalidInput where the file is no model or its code
/// fails.
Result<ExportedModel> ExportPythonModel(const std::string& name);

}  // namespace atunner::importers
