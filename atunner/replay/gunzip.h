// Unpacks data in the format of gzip.
#pragma once

#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner {

bool IsGzip(std::string_view bytes);
/// kInvalidInput if the bytes are damaged, cut off, or unpack to more than `most` bytes.
Result<std::string> Gunzip(std::string_view bytes, size_t most = size_t{1} << 30);

}  // namespace atunner
