// Certificates: whom clients trust, and what a server shows. For the room's own sources.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::http {

/// Servers are verified against the system's authorities, those in $SSL_CERT_FILE and, if it is not
/// empty, those in `file`. kInvalidInput at "--ca" for a file without certificates.
Status TrustAuthorities(boost::asio::ssl::context& context, const Path& file = {});

/// TLS 1.2 or later with a certificate chain and its key, both as PEM. kInvalidInput at
/// "--tls-cert" or "--tls-key" for a file that cannot be read, or a key of another certificate.
Status ShowCertificate(boost::asio::ssl::context& context, const Path& certificate,
                       const Path& key);

}  // namespace atunner::http
