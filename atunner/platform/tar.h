// Archives for downloads.
#pragma once

#include <string>

#include "atunner/base/files.h"

namespace atunner::platform {

/// All files below `folder` in the format ustar (POSIX.1-1988), under `prefix`. The archive of
/// equal files is equal. kInvalidInput for paths of more than 100 bytes.
Result<std::string> TarOf(const Path& folder, const std::string& prefix);

}  // namespace atunner::platform
