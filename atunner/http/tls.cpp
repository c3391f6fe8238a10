#include "atunner/http/tls.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/system/error_code.hpp>
#include <string>

namespace atunner::http {
namespace {

using boost::asio::ssl::context;
using Failure = boost::system::error_code;

/// Where distributions keep the certificates of their authorities.
constexpr std::array kAuthorities = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",              // SUSE
    "/etc/ssl/cert.pem",                   // Alpine
};

}  // namespace

Status TrustAuthorities(context& context, const Path& file) {
  context.set_verify_mode(boost::asio::ssl::verify_peer);
  Failure failure;
  context.set_default_verify_paths(failure);  // also $SSL_CERT_FILE and $SSL_CERT_DIR
  for (const char* each : kAuthorities) {
    if (Exists(each)) context.load_verify_file(each, failure);
  }
  if (file.empty()) return {};
  context.load_verify_file(file.string(), failure);
  if (!failure) return {};
  return Invalid("'" + file.string() + "' holds no certificates: " + failure.message(), "--ca",
                 "name a PEM file with the certificate of the authority that signed the server's");
}

Status ShowCertificate(context& context, const Path& certificate, const Path& key) {
  if (key.empty()) return Invalid("is missing", "--tls-key", "it goes with --tls-cert");
  if (certificate.empty()) return Invalid("is missing", "--tls-cert", "it goes with --tls-key");
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  Failure failure;
  context.use_certificate_chain_file(certificate.string(), failure);
  if (failure)
    return Invalid("'" + certificate.string() + "' is no certificate: " + failure.message(),
                   "--tls-cert", "name a PEM file: the server's certificate, then its chain");
  context.use_private_key_file(key.string(), boost::asio::ssl::context::pem, failure);
  if (failure)
    return Invalid("'" + key.string() + "' is not the key of the certificate: " + failure.message(),
                   "--tls-key", "name the PEM file of the certificate's private key");
  return {};
}

}  // namespace atunner::http
