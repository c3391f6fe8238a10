// Reads a capture. It may come from a program that died, or from anywhere else: all indices are
// checked.
#pragma once

#include "atunner/base/files.h"
#include "atunner/capture/blob_store.h"

namespace atunner::capture {

/// True for a folder that has a capture's records.
bool IsCapture(const Path& folder);

/// kNotFound for a folder without records. kInvalidInput names the record and what is wrong with
/// it; half a line at the end is ignored.
Result<Capture> ReadCapture(const Path& folder);
/// The same of the records' text.
Result<Capture> ParseCapture(std::string_view text, const std::string& where);

}  // namespace atunner::capture
