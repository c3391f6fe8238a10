// A certificate for tests of TLS.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <functional>

#include "atunner/base/files.h"

namespace atunner::http {

inline void WritePem(const Path& file, const std::function<void(BIO*)>& write) {
  BIO* const to = BIO_new_file(file.c_str(), "w");
  write(to);
  BIO_free(to);
}

/// PEM files of a certificate for 127.0.0.1 that signs itself, valid for a day, and of its key.
inline void WriteSelfSigned(const Path& certificate, const Path& key) {
  EVP_PKEY* const pair = EVP_EC_gen("P-256");
  X509* const x509 = X509_new();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 24L * 3600);
  X509_set_pubkey(x509, pair);
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  X509_EXTENSION* const names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                                                    "IP:127.0.0.1");
  X509_add_ext(x509, names, -1);
  X509_sign(x509, pair, EVP_sha256());
  WritePem(certificate, [&](BIO* to) { PEM_write_bio_X509(to, x509); });
  WritePem(key, [&](BIO* to) {
    PEM_write_bio_PrivateKey(to, pair, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_EXTENSION_free(names);
  X509_free(x509);
  EVP_PKEY_free(pair);
}

}  // namespace atunner::http
