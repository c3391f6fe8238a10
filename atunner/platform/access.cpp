#include "atunner/platform/access.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <sqlite3.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "atunner/base/clock.h"
#include "atunner/base/wall_clock.h"
#include "atunner/store/statement.h"

namespace atunner::platform {
namespace {

constexpr int kBusyMilliseconds = 20000;
constexpr size_t kSecretBytes = 32;
constexpr size_t kLongestName = 100;

constexpr std::pair<std::string_view, Scope> kScopes[] = {
    {"read", kRead}, {"submit", kSubmit}, {"work", kWork}, {"admin", kAdmin}};

constexpr const char* kCreate = R"(
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS tokens (
  id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, scopes INTEGER NOT NULL,
  created TEXT NOT NULL, expires TEXT NOT NULL, last_used TEXT NOT NULL DEFAULT '');
)";

constexpr const char* kSelect = "SELECT id, name, scopes, created, expires, last_used FROM tokens ";

std::string Hex(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

Token ReadToken(const Statement& row) {
  return {row.Column(0), row.Column(1), static_cast<uint8_t>(row.IntegerColumn(2)),
          row.Column(3), row.Column(4), row.Column(5)};
}

}  // namespace

Result<std::string> RandomHex(size_t count) {
  std::array<unsigned char, kSecretBytes> bytes{};
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count))
    return Fail(ErrorCode::kUnavailable, "the system gives no random numbers");
  return Hex(bytes.data(), count);
}

Result<uint8_t> ParseScopes(std::string_view text) {
  unsigned scopes = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto* const found = std::ranges::find(kScopes, name,
                                                [](const auto& s) { return s.first; });
    if (found == std::end(kScopes))
      return Invalid("unknown scope '" + std::string(name) + "'", "scopes",
                     "scopes are read, submit, work and admin");
    scopes |= found->second;
  }
  if (scopes == 0) return Invalid("a token needs a scope", "scopes", "for example submit,read");
  return static_cast<uint8_t>(scopes);
}

std::vector<std::string> ScopeNames(uint8_t scopes) {
  std::vector<std::string> names;
  for (const auto& [name, bit] : kScopes) {
    if ((scopes & bit) != 0) names.emplace_back(name);
  }
  return names;
}

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return Hex(digest.data(), digest.size());
}

std::string UtcInDays(int days) {
  const auto then = static_cast<std::time_t>(NanosecondsSince1970() / 1'000'000'000) +
                    std::time_t{86400} * days;
  std::tm parts{};
  ::gmtime_r(&then, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<std::unique_ptr<Tokens>> Tokens::Open(const Path& file) {
  if (file.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(file.parent_path()));
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Tokens> tokens(new Tokens(handle, file));
  if (code != SQLITE_OK) return tokens->Failure("open the tokens");
  (void)::chmod(file.c_str(), S_IRUSR | S_IWUSR);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  if (sqlite3_exec(handle, kCreate, nullptr, nullptr, nullptr) != SQLITE_OK)
    return tokens->Failure("open the tokens");
  return tokens;
}

Tokens::~Tokens() { sqlite3_close(handle_); }

std::unexpected<Error> Tokens::Failure(std::string_view action) const {
  return Invalid("cannot " + std::string(action) + ": " + sqlite3_errmsg(handle_), file_.string(),
                 "choose another folder with --data");
}

Result<NewToken> Tokens::Create(const std::string& name, uint8_t scopes, std::optional<int> days) {
  if (name.empty() || name.size() > kLongestName)
    return Invalid(fmt::format("a token's name has 1 to {} bytes", kLongestName), "name");
  ATUNNER_TRY(const std::string random, RandomHex(kSecretBytes));
  ATUNNER_TRY(const std::string id, RandomHex(6));
  NewToken made{{"t-" + id, name, scopes, UtcTimestamp(), days ? UtcInDays(*days) : "", ""},
                "atn_" + random};
  const std::scoped_lock lock(mutex_);
  Statement insert(handle_,
                   "INSERT INTO tokens (id, hash, name, scopes, created, expires) "
                   "VALUES (?, ?, ?, ?, ?, ?)");
  insert.Text(1, made.token.id).Text(2, Sha256(made.secret)).Text(3, name).Integer(4, scopes);
  insert.Text(5, made.token.created).Text(6, made.token.expires);
  if (insert.Step() != SQLITE_DONE) return Failure("store the token");
  return made;
}

Result<std::vector<Token>> Tokens::List() {
  const std::scoped_lock lock(mutex_);
  Statement select(handle_, fmt::format("{} ORDER BY created, id", kSelect));
  std::vector<Token> tokens;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) tokens.push_back(ReadToken(select));
  if (code != SQLITE_DONE) return Failure("list the tokens");
  return tokens;
}

Result<int> Tokens::Revoke(const std::string& id_or_name) {
  const std::scoped_lock lock(mutex_);
  Statement remove(handle_, "DELETE FROM tokens WHERE id = ?1 OR name = ?1");
  remove.Text(1, id_or_name);
  if (remove.Step() != SQLITE_DONE) return Failure("revoke the token");
  const int revoked = sqlite3_changes(handle_);
  if (revoked == 0)
    return Fail(ErrorCode::kNotFound, "there is no token '" + id_or_name + "'", "id",
                "`atunner token list` shows them");
  return revoked;
}

Result<std::optional<Token>> Tokens::Check(const std::string& secret) {
  // The secret has 256 random bits: a plain hash cannot be reversed, and looking the hash up tells
  // nothing by its time.
  const std::string hash = Sha256(secret);
  const std::scoped_lock lock(mutex_);
  Statement select(handle_,
                   fmt::format("{} WHERE hash = ?1 AND (expires = '' OR expires > ?2)", kSelect));
  const std::string now = UtcTimestamp();
  select.Text(1, hash).Text(2, now);
  const int code = select.Step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return Failure("look a token up");
  const Token token = ReadToken(select);
  if (token.last_used.substr(0, 16) != now.substr(0, 16)) {  // once a minute is enough
    Statement used(handle_, "UPDATE tokens SET last_used = ? WHERE id = ?");
    used.Text(1, now).Text(2, token.id);
    (void)used.Step();
  }
  return token;
}

}  // namespace atunner::platform
