#include "atunner/base/result.h"

#include <cstdio>

namespace atunner {

std::string_view Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return "invalid-input";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

int ExitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
    case ErrorCode::kNotFound:
      return 2;
    case ErrorCode::kUnavailable:
    case ErrorCode::kUnsupported:
      return 3;
    case ErrorCode::kTimeout:
      return 4;
    case ErrorCode::kCancelled:
      return 130;
    case ErrorCode::kInternal:
      return 70;
  }
  return 70;
}

std::string Error::ToString() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}

std::unexpected<Error> Fail(ErrorCode code, std::string what, std::string where, std::string hint) {
  return std::unexpected(Error{code, std::move(what), std::move(where), std::move(hint)});
}

void CheckFailed(const char* condition, std::source_location at) {
  std::fprintf(stderr, "atunner: internal check failed: %s (%s:%u). This is a bug in atunner.\n",
               condition, at.file_name(), at.line());
  std::abort();
}

}  // namespace atunner
