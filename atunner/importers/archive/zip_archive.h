// Reads zip archives whose entries are stored, not compressed: what PyTorch writes. Archives are
// foreign: every offset and size is checked before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner::importers {

/// Where an entry's bytes are in the archive.
struct ZipEntry {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t checksum = 0;  ///< CRC-32 of the bytes
};

class ZipArchive {
 public:
  /// Reads the directory of an archive that stays in memory. `where` is its name in messages.
  /// kInvalidInput for damage, names that leave the archive ("../x", "/x"), entries that overlap,
  /// more than a million entries, and entries that are compressed or encrypted.
  static Result<ZipArchive> Open(std::string_view bytes, std::string where);

  const std::map<std::string, ZipEntry, std::less<>>& entries() const { return entries_; }
  const ZipEntry* Find(std::string_view name) const;
  /// The bytes of an entry after its checksum was compared. kNotFound if there is no such entry;
  /// kInvalidInput if it has more than `limit` bytes or the checksum differs.
  Result<std::string_view> Read(std::string_view name, uint64_t limit) const;
  const std::string& where() const { return where_; }

 private:
  ZipArchive(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}
  Status ReadDirectory();
  Status CheckOverlaps() const;

  std::string_view bytes_;
  std::string where_;
  std::map<std::string, ZipEntry, std::less<>> entries_;
};

/// True if the bytes begin as a zip archive does.
bool IsZip(std::string_view bytes);

}  // namespace atunner::importers
