// Tokens: who may do what. Only hashes are stored, in one SQLite file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"

struct sqlite3;

namespace atunner::platform {

/// Bits of a set.
enum Scope : uint8_t { kRead = 1, kSubmit = 2, kWork = 4, kAdmin = 8 };
inline constexpr uint8_t kAllScopes = kRead | kSubmit | kWork | kAdmin;

/// "submit,read" to bits. kInvalidInput at "scopes" for an unknown or empty list.
Result<uint8_t> ParseScopes(std::string_view text);
std::vector<std::string> ScopeNames(uint8_t scopes);

struct Token {
  std::string id;  ///< public: names the token in lists and logs
  std::string name;
  uint8_t scopes = 0;
  std::string created;    ///< UTC
  std::string expires;    ///< UTC; "" = never
  std::string last_used;  ///< UTC; "" = never
  /// True if the token has `scope`; admin has all.
  bool May(Scope scope) const { return ((scopes & scope) | (scopes & kAdmin)) != 0; }
};

struct NewToken {
  Token token;
  std::string secret;  ///< shown once: "atn_…", 256 random bits
};

/// Safe to use from several threads.
class Tokens {
 public:
  /// Opens or makes the file, readable by its owner only.
  static Result<std::unique_ptr<Tokens>> Open(const Path& file);
  ~Tokens();

  /// kInvalidInput at "name" for an empty or long name. `days`: until it expires.
  Result<NewToken> Create(const std::string& name, uint8_t scopes, std::optional<int> days);
  Result<std::vector<Token>> List();
  /// By id or name. kNotFound if there is none. Returns how many were revoked.
  Result<int> Revoke(const std::string& id_or_name);
  /// nullopt for an unknown, revoked or expired secret.
  Result<std::optional<Token>> Check(const std::string& secret);

 private:
  Tokens(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  std::unexpected<Error> Failure(std::string_view action) const;

  sqlite3* handle_;
  Path file_;
  std::mutex mutex_;
};

/// `bytes` random bytes of the system, at most 32, as hexadecimal digits.
Result<std::string> RandomHex(size_t bytes);

/// SHA-256 as 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

/// "2026-12-27T22:55:12Z", `days` from now.
std::string UtcInDays(int days);

}  // namespace atunner::platform
