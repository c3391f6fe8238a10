// Results of operations that can fail. No exception leaves a room.
#pragma once

#include <cstdlib>
#include <expected>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace atunner {

/// The class of a failure; faces turn it into an exit code.
enum class ErrorCode {
  /// The user can mend it: wrong argument, malformed file, impossible request (exit 2)
  kInvalidInput,
  kNotFound,     ///< a file, device, library or entry does not exist (exit 2)
  kUnavailable,  ///< something the machine lacks: a driver, NVRTC, memory, disk space (exit 3)
  kUnsupported,  ///< understood, but outside what this version covers (exit 3)
  kTimeout,      ///< a limit ran out (exit 4)
  kCancelled,    ///< the user asked to stop (exit 130)
  kInternal,     ///< our bug or a broken invariant of the outside world (exit 70)
};

std::string_view Name(ErrorCode code);
int ExitCode(ErrorCode code);

/// One clear message: what happened, where, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;   ///< "unknown operator 'sofmax'"
  std::string where;  ///< "kernel.toml:12" or "" when the place is obvious
  std::string hint;   ///< "did you mean 'softmax'?" or ""

  /// "where: what. hint", the one rendering every face uses.
  std::string ToString() const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

std::unexpected<Error> Fail(ErrorCode code, std::string what, std::string where = {},
                            std::string hint = {});
inline std::unexpected<Error> Invalid(std::string what, std::string where = {},
                                      std::string hint = {}) {
  return Fail(ErrorCode::kInvalidInput, std::move(what), std::move(where), std::move(hint));
}

[[noreturn]] void CheckFailed(const char* condition, std::source_location at);

}  // namespace atunner

/// Our bug, not the user's: prints the condition and aborts.
#define ATUNNER_CHECK(condition)                                                           \
  do {                                                                                     \
    if (!(condition)) ::atunner::CheckFailed(#condition, std::source_location::current()); \
  } while (false)

#define ATUNNER_CONCAT_(a, b) a##b
#define ATUNNER_CONCAT(a, b) ATUNNER_CONCAT_(a, b)

/// `ATUNNER_TRY(auto text, ReadFile(path));` unwraps or returns the error to the caller.
#define ATUNNER_TRY(declaration, expression) \
  ATUNNER_TRY_(ATUNNER_CONCAT(atunner_try_, __LINE__), declaration, expression)
#define ATUNNER_TRY_(temporary, declaration, expression)                            \
  auto temporary = (expression);                                                    \
  if (!temporary.has_value()) return std::unexpected(std::move(temporary).error()); \
  declaration = std::move(temporary).value()

/// `ATUNNER_RETURN_IF_ERROR(WriteFile(...));` for results without a value.
#define ATUNNER_RETURN_IF_ERROR(expression)                              \
  do {                                                                   \
    if (auto atunner_status = (expression); !atunner_status.has_value()) \
      return std::unexpected(std::move(atunner_status).error());         \
  } while (false)
