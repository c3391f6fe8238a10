// The border between C and the classes: results become codes and a message, exceptions stop here.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "atunner/base/result.h"
#include "runtime/include/atunner.h"

namespace atunner::loader {

/// The message of this thread's last call that failed.
std::string& LastError();
atunner_status CodeOf(ErrorCode code);
std::unexpected<Error> NullArgument(const char* name);
/// A structure's size says which version of the header its writer had; there is one version so far.
Status CheckSize(size_t given, size_t known, const char* type);

/// Runs a call's body; nothing that it throws (no memory, above all) passes the border to C.
template <class Body>
atunner_status Guarded(Body&& body) {
  try {
    const Status status = body();
    if (status) return ATUNNER_OK;
    LastError() = status.error().ToString();
    return CodeOf(status.error().code);
  } catch (const std::bad_alloc&) {
    LastError() = "out of memory";
    return ATUNNER_UNAVAILABLE;
  } catch (const std::exception& error) {
    LastError() = std::string("internal error: ") + error.what();
    return ATUNNER_INTERNAL;
  }
}

}  // namespace atunner::loader
