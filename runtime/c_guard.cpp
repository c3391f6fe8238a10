#include "runtime/c_guard.h"

namespace atunner::loader {

std::string& LastError() {
  thread_local std::string text;
  return text;
}

atunner_status CodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return ATUNNER_INVALID;
    case ErrorCode::kNotFound:
      return ATUNNER_NOT_FOUND;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kCancelled:
      return ATUNNER_UNAVAILABLE;
    case ErrorCode::kUnsupported:
      return ATUNNER_UNSUPPORTED;
    case ErrorCode::kInternal:
      return ATUNNER_INTERNAL;
  }
  return ATUNNER_INTERNAL;
}

std::unexpected<Error> NullArgument(const char* name) {
  return Invalid(std::string(name) + " is NULL");
}

Status CheckSize(size_t given, size_t known, const char* type) {
  if (given >= known) return {};
  return Invalid(std::string(type) + ".struct_size is " + std::to_string(given) + ", at least " +
                     std::to_string(known) + " is needed",
                 "", "initialise the structure with its macro");
}

}  // namespace atunner::loader
