// Contents by their digest, in a folder of compressed files. Equal contents are stored once,
// however many launches saw them.
#pragma once

#include <set>
#include <span>
#include <string>

#include "atunner/base/files.h"
#include "atunner/capture/capture.h"

namespace atunner::capture {

class BlobStore {
 public:
  explicit BlobStore(Path folder) : folder_(std::move(folder)) {}

  /// Writes the contents unless they are there. Other processes may do so at the same time.
  /// kUnavailable when the disk is full or the folder cannot be written.
  Result<BlobId> Put(std::string_view bytes);
  /// kInvalidInput for an id that is none, kNotFound for unknown contents, and kInvalidInput for
  /// contents that do not have this digest.
  Result<std::string> Get(const BlobId& id) const;
  Path FileOf(const BlobId& id) const;

 private:
  Path folder_;
  std::set<BlobId> known_;  ///< written by this object
};

/// True for 32 lower-case hexadecimal digits.
bool IsBlobId(std::string_view text);

}  // namespace atunner::capture
