#include "atunner/mcp/protocol/sealed_state.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cstddef>

#include "atunner/mcp/protocol/offer.h"

namespace atunner::mcp {
namespace {

constexpr size_t kMostRandomBytes = 64;

std::string Hex(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string Signature(std::string_view secret, std::string_view purpose, std::string_view text) {
  // The length keeps ("ab", "c") and ("a", "bc") apart.
  const std::string signed_text = fmt::format("{}:{}{}", purpose.size(), purpose, text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(),
       digest.data(), &size);
  return Hex(digest.data(), size);
}

}  // namespace

std::string RandomId(size_t bytes) {
  std::array<unsigned char, kMostRandomBytes> random{};
  if (bytes > random.size()) return "";
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return "";
  return Hex(random.data(), bytes);
}

std::string Seal(std::string_view secret, std::string_view purpose, std::string_view text) {
  return Signature(secret, purpose, text) + "." + std::string(text);
}

std::optional<std::string> Unseal(std::string_view secret, std::string_view purpose,
                                  std::string_view sealed) {
  const size_t dot = sealed.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view text = sealed.substr(dot + 1);
  const std::string wanted = Signature(secret, purpose, text);
  if (dot != wanted.size() || CRYPTO_memcmp(sealed.data(), wanted.data(), dot) != 0)
    return std::nullopt;
  return std::string(text);
}

}  // namespace atunner::mcp
