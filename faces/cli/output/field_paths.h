// Field paths of requests, as the library's errors name them, in the words of the command line.
#pragma once

#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner::cli {

/// `text` with each field path replaced by the flag that sets the field: "request.shapes[1] of
/// softmax" becomes "--input-shape of softmax", "request.attributes.eps" becomes "--attr eps".
std::string WithFlags(std::string_view text);

/// `error` with the flags' names in its three texts.
Error WithFlags(Error error);

}  // namespace atunner::cli
