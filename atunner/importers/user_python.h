// The user's own Python: it has PyTorch, which writes models and training steps for us to read.
#pragma once

#include <string>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::importers {

/// A Python file and what is meant of it: "train.py:make_step".
struct PythonName {
  Path file;
  std::string part;  ///< a class or a function; empty if none is named
};

PythonName PythonNameOf(const std::string& text);

/// True for FILE.py and FILE.py:PART.
bool IsPythonFile(const std::string& text);

/// The program that ATUNNER_PYTHON names, else python3 of PATH. kUnavailable if there is none;
/// `purpose` begins the message, e.g. "a Python model is exported by Python".
Result<Path> FindPython(const std::string& purpose);

/// The last 1500 bytes of what a Python program wrote: the reason of a failure stands there.
std::string EndOfLog(const Path& log);

}  // namespace atunner::importers
