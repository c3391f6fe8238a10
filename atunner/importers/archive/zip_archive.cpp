#include "atunner/importers/archive/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace atunner::importers {
namespace {

// Signatures and sizes of records, by the format's public description (APPNOTE 6.3).
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kDirectoryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kLongestComment = 65535;
constexpr uint16_t kZip64Field = 1;
constexpr uint32_t kIn64 = 0xffffffff;  ///< the number is in the field of zip64 instead
constexpr uint64_t kMostEntries = 1'000'000;

/// Little-endian numbers at checked places. A number outside of the bytes is 0 and sets `failed`.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }

  uint64_t At(uint64_t offset, size_t width) {
    if (offset > bytes_.size() || bytes_.size() - offset < width) {
      failed_ = true;
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes_[offset + i])} << (8 * i);
    return value;
  }
  std::string_view Text(uint64_t offset, uint64_t size) {
    if (offset > bytes_.size() || bytes_.size() - offset < size) {
      failed_ = true;
      return {};
    }
    return bytes_.substr(offset, size);
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

uint32_t Checksum(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t sum = 0xffffffff;
  for (const char c : bytes) sum = table[(sum ^ static_cast<unsigned char>(c)) & 255] ^ (sum >> 8);
  return ~sum;
}

/// Where the directory is, and how many entries it has.
struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t entries = 0;
};

/// The record at the archive's end, which a comment of any text may follow.
std::optional<uint64_t> FindEnd(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const uint64_t last = bytes.size() - kEndBytes;
  const uint64_t first = last > kLongestComment ? last - kLongestComment : 0;
  Numbers numbers(bytes);
  for (uint64_t at = last + 1; at-- > first;) {
    if (numbers.At(at, 4) == kEnd && numbers.At(at + 20, 2) == bytes.size() - at - kEndBytes)
      return at;
  }
  return std::nullopt;
}

std::optional<Directory> FindDirectory(std::string_view bytes) {
  const auto end = FindEnd(bytes);
  if (!end) return std::nullopt;
  Numbers numbers(bytes);
  Directory found{numbers.At(*end + 16, 4), numbers.At(*end + 12, 4), numbers.At(*end + 10, 2)};
  const bool locator = *end >= kLocatorBytes &&
                       numbers.At(*end - kLocatorBytes, 4) == kEnd64Locator;
  if (locator) {
    const uint64_t at = numbers.At(*end - kLocatorBytes + 8, 8);
    if (numbers.At(at, 4) != kEnd64 || bytes.size() - at < kEnd64Bytes) return std::nullopt;
    found = {numbers.At(at + 48, 8), numbers.At(at + 40, 8), numbers.At(at + 32, 8)};
  }
  if (numbers.failed()) return std::nullopt;
  return found;
}

/// Sizes and offset of an entry that do not fit into 32 bits stand in its field of zip64.
void ReadZip64(std::string_view extra, uint64_t& size, uint64_t& stored, uint64_t& offset) {
  Numbers numbers(extra);
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t kind = numbers.At(at, 2);
    const uint64_t length = numbers.At(at + 2, 2);
    uint64_t value = at + 4;
    if (kind == kZip64Field) {
      for (uint64_t* wanted : {&size, &stored, &offset}) {
        if (*wanted != kIn64 || value + 8 > at + 4 + length) continue;
        *wanted = numbers.At(value, 8);
        value += 8;
      }
    }
    at += 4 + length;
  }
}

/// Names that could be written outside of a folder, or that messages could not show.
bool Escapes(std::string_view name) {
  if (name.empty() || name[0] == '/' || name.contains('\\') || name.contains(':')) return true;
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' '; })) return true;
  for (size_t at = 0; at <= name.size();) {
    const size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") return true;
    at = slash + 1;
  }
  return false;
}

}  // namespace

bool IsZip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
}

Result<ZipArchive> ZipArchive::Open(std::string_view bytes, std::string where) {
  ZipArchive archive(bytes, std::move(where));
  ATUNNER_RETURN_IF_ERROR(archive.ReadDirectory());
  ATUNNER_RETURN_IF_ERROR(archive.CheckOverlaps());
  return archive;
}

Status ZipArchive::ReadDirectory() {
  const auto directory = FindDirectory(bytes_);
  if (!directory)
    return Invalid("the archive has no directory at its end", where_, "is the file truncated?");
  if (directory->entries > kMostEntries)
    return Invalid(fmt::format("the archive has {} entries", directory->entries), where_,
                   fmt::format("at most {} are read", kMostEntries));
  Numbers numbers(bytes_);
  uint64_t at = directory->offset;
  for (uint64_t i = 0; i < directory->entries; ++i) {
    const bool begins = numbers.At(at, 4) == kDirectoryHeader;
    const uint64_t name_bytes = numbers.At(at + 28, 2);
    const uint64_t extra_bytes = numbers.At(at + 30, 2);
    const std::string name(numbers.Text(at + kDirectoryBytes, name_bytes));
    const std::string_view extra = numbers.Text(at + kDirectoryBytes + name_bytes, extra_bytes);
    uint64_t stored = numbers.At(at + 20, 4);
    uint64_t size = numbers.At(at + 24, 4);
    uint64_t header = numbers.At(at + 42, 4);
    ReadZip64(extra, size, stored, header);
    const std::string entry = where_ + ", entry '" + name + "'";
    const bool local = numbers.At(header, 4) == kLocalHeader;
    if (!begins || !local || numbers.failed())
      return Invalid(fmt::format("entry {} of the archive's directory is damaged", i), where_,
                     "is the file truncated?");
    if (Escapes(name)) return Invalid("an entry's name leaves the archive", where_);
    if ((numbers.At(at + 8, 2) & 1) != 0) return Invalid("the entry is encrypted", entry);
    if (numbers.At(at + 10, 2) != 0 || size != stored)
      return Invalid("the entry is compressed", entry,
                     "PyTorch stores entries: pack the archive again with `zip -0`");
    const uint64_t offset = header + kLocalBytes + numbers.At(header + 26, 2) +
                            numbers.At(header + 28, 2);
    if (offset > bytes_.size() || bytes_.size() - offset < size)
      return Invalid("the entry is longer than the archive", entry, "is the file truncated?");
    const ZipEntry made{offset, size, static_cast<uint32_t>(numbers.At(at + 16, 4))};
    if (!entries_.emplace(name, made).second) return Invalid("two entries have this name", entry);
    at += kDirectoryBytes + name_bytes + extra_bytes + numbers.At(at + 32, 2);
  }
  return {};
}

Status ZipArchive::CheckOverlaps() const {
  std::vector<std::pair<ZipEntry, std::string_view>> sorted;
  for (const auto& [name, entry] : entries_) {
    if (entry.size > 0) sorted.emplace_back(entry, name);
  }
  std::ranges::sort(sorted, {}, [](const auto& each) { return each.first.offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const ZipEntry& before = sorted[i - 1].first;
    if (before.offset + before.size > sorted[i].first.offset)
      return Invalid(
          fmt::format("the entries '{}' and '{}' overlap", sorted[i - 1].second, sorted[i].second),
          where_);
  }
  return {};
}

const ZipEntry* ZipArchive::Find(std::string_view name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

Result<std::string_view> ZipArchive::Read(std::string_view name, uint64_t limit) const {
  const ZipEntry* entry = Find(name);
  if (entry == nullptr)
    return Fail(ErrorCode::kNotFound, fmt::format("the archive has no entry '{}'", name), where_);
  if (entry->size > limit)
    return Invalid(fmt::format("the entry '{}' has {} bytes", name, entry->size), where_,
                   fmt::format("at most {} are read", limit));
  const std::string_view bytes = bytes_.substr(entry->offset, entry->size);
  if (Checksum(bytes) != entry->checksum)
    return Invalid(fmt::format("the entry '{}' is damaged: its checksum differs", name), where_);
  return bytes;
}

}  // namespace atunner::importers
