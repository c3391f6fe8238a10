// Reads the JSON that PyTorch's profiler exports (Kineto), in one pass and in pieces.
#pragma once

#include <string>

#include "atunner/base/result.h"
#include "atunner/trace/readers/byte_source.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// Takes {"traceEvents": [...]}, a bare array of events, the categories of 2021 and the events
/// without category of PyTorch built without Kineto. Events of unknown kinds are counted in notes.
/// A text that ends early gives what was read, with a note. kInvalidInput if there is no event or
/// the text is no JSON; `where` names the file.
Result<Timeline> ReadKineto(ByteSource& source, const std::string& where);

}  // namespace atunner::trace
