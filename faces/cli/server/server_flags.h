// How verbs name a server, and the token that it wants.
#pragma once

#include <string>

#include "atunner/base/files.h"
#include "atunner/http/origin.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

inline constexpr const char* kServerVariable = "ATUNNER_SERVER";
inline constexpr const char* kTokenVariable = "ATUNNER_TOKEN";
inline constexpr const char* kAuthoritiesVariable = "ATUNNER_CA";

/// A token is no flag: other users of the machine see command lines.
struct ServerFlags {
  std::string server;
  std::string token_file;
  std::string authorities;

  void AddTo(CLI::App* verb);
  /// --server, else $ATUNNER_SERVER, else http://127.0.0.1:8080.
  std::string Url() const;
  /// True if --server or $ATUNNER_SERVER names one.
  bool IsGiven() const;
  /// Url() in its parts, with --ca, else $ATUNNER_CA. kInvalidInput at "--server".
  Result<http::Origin> Origin() const;
  /// The contents of --token-file, else $ATUNNER_TOKEN, else "".
  Result<std::string> Token() const;
};

/// The file of runs and trials: --store, else the user's own.
Path StoreFile(const Common& common);

}  // namespace atunner::cli
