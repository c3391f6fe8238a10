// Writes a capture while the program runs. Every record is appended at once, so that a program that
// dies leaves a capture that can be read up to there.
#pragma once

#include "atunner/base/files.h"
#include "atunner/capture/blob_store.h"
#include "atunner/capture/records.h"

namespace atunner::capture {

/// The files of a capture in its folder.
Path RecordsOf(const Path& folder);
Path BlobsOf(const Path& folder);

/// Makes an empty capture with its head. A folder that holds an earlier capture is replaced;
/// kInvalidInput for a folder that holds anything else.
Status BeginCapture(const Path& folder, const CaptureHead& head);

class CaptureWriter {
 public:
  /// Continues the capture that BeginCapture made.
  explicit CaptureWriter(Path folder) : folder_(std::move(folder)), blobs_(BlobsOf(folder_)) {}

  Result<BlobId> Put(std::string_view bytes) { return blobs_.Put(bytes); }
  /// Appends a line. kUnavailable when the disk is full or the file cannot be written; then half a
  /// line may stay, which a reader ignores.
  Status Append(const Record& record);

 private:
  Path folder_;
  BlobStore blobs_;
};

}  // namespace atunner::capture
