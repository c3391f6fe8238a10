#include "atunner/capture/capture_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

namespace atunner::capture {
namespace {

/// Removes the files of an earlier capture, and nothing else.
Status RemoveEarlier(const Path& folder) {
  if (!Exists(folder)) return {};
  std::error_code failed;
  const bool empty = IsFolder(folder) && std::filesystem::is_empty(folder, failed);
  if (!Exists(RecordsOf(folder)) && !empty)
    return Invalid("this is no capture, so that it is not replaced", folder.string(),
                   "name another folder by --out");
  std::filesystem::remove_all(BlobsOf(folder), failed);
  if (!failed) std::filesystem::remove(RecordsOf(folder), failed);
  if (failed)
    return Fail(ErrorCode::kUnavailable, "the earlier capture cannot be removed", folder.string(),
                failed.message());
  return {};
}

}  // namespace

Path RecordsOf(const Path& folder) { return folder / "records.jsonl"; }
Path BlobsOf(const Path& folder) { return folder / "blobs"; }

Status BeginCapture(const Path& folder, const CaptureHead& head) {
  ATUNNER_RETURN_IF_ERROR(RemoveEarlier(folder));
  return WriteFileAtomic(RecordsOf(folder), DumpJson(ToJson(Record(head))) + "\n");
}

Status CaptureWriter::Append(const Record& record) {
  const Path file = RecordsOf(folder_);
  const auto failed = [&] {
    return Fail(ErrorCode::kUnavailable, std::strerror(errno), file.string());
  };
  const int out = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (out < 0) return failed();
  const std::string line = DumpJson(ToJson(record)) + "\n";
  const ssize_t written = write(out, line.data(), line.size());
  const bool whole = written == static_cast<ssize_t>(line.size());
  if (written >= 0 && !whole) errno = ENOSPC;
  Status status;
  if (!whole) status = failed();
  close(out);
  return status;
}

}  // namespace atunner::capture
