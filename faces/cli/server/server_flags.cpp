#include "faces/cli/server/server_flags.h"

#include <cstdlib>

namespace atunner::cli {
namespace {

constexpr size_t kLongestToken = 4096;

}  // namespace

void ServerFlags::AddTo(CLI::App* verb) {
  verb->add_option("--server", server,
                   "http(s)://HOST:PORT; else $ATUNNER_SERVER, else http://127.0.0.1:8080");
  verb->add_option("--token-file", token_file, "file with the token; else $ATUNNER_TOKEN");
  verb->add_option("--ca", authorities,
                   "PEM file with the authority of the server's certificate, beside the system's; "
                   "else $ATUNNER_CA");
}

Result<http::Origin> ServerFlags::Origin() const {
  ATUNNER_TRY(http::Origin origin, http::ParseOrigin(Url(), "--server"));
  const char* const variable = std::getenv(kAuthoritiesVariable);
  origin.authorities = !authorities.empty() || variable == nullptr ? authorities : variable;
  return origin;
}

std::string ServerFlags::Url() const {
  if (!server.empty()) return server;
  const char* const variable = std::getenv(kServerVariable);
  return variable != nullptr && *variable != '\0' ? variable : "http://127.0.0.1:8080";
}

bool ServerFlags::IsGiven() const {
  const char* const variable = std::getenv(kServerVariable);
  return !server.empty() || (variable != nullptr && *variable != '\0');
}

Result<std::string> ServerFlags::Token() const {
  if (token_file.empty()) {
    const char* const variable = std::getenv(kTokenVariable);
    return std::string(variable == nullptr ? "" : variable);
  }
  ATUNNER_TRY(std::string text, ReadFile(token_file, kLongestToken));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty()) return Invalid("the file holds no token", "--token-file");
  return text;
}

Path StoreFile(const Common& common) {
  return std::filesystem::absolute(common.store.empty() ? UserDataDirectory() / "atunner.db"
                                                        : Path(common.store));
}

}  // namespace atunner::cli
