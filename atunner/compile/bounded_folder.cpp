#include "atunner/compile/bounded_folder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

namespace atunner {
namespace {

using Clock = std::filesystem::file_time_type::clock;

constexpr const char* kStamp = ".looked";
constexpr std::chrono::hours kBetweenLooks{1};
constexpr uint64_t kBlock = 4096;  // a file takes a multiple of this on disk

struct File {
  Path path;
  std::filesystem::file_time_type written;
  uint64_t bytes = 0;
};

/// The folder's files; leaves out those that another process removes meanwhile.
std::vector<File> FilesIn(const Path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != end(at); at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || at->path().filename() == kStamp) continue;
    File file{at->path(), at->last_write_time(gone), 0};
    if (gone) continue;
    const uint64_t size = at->file_size(gone);
    if (gone) continue;
    file.bytes = (size + kBlock - 1) / kBlock * kBlock;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

void KeepBelow(const Path& folder, uint64_t most_bytes) {
  std::vector<File> files = FilesIn(folder);
  uint64_t total = 0;
  for (const File& file : files) total += file.bytes;
  if (total <= most_bytes) return;
  std::ranges::sort(files, {}, &File::written);
  for (const File& file : files) {
    if (total <= most_bytes / 5 * 4) return;
    std::error_code ignored;
    std::filesystem::remove(file.path, ignored);
    total -= file.bytes;
  }
}

void KeepBelowNowAndThen(const Path& folder, uint64_t most_bytes) {
  const Path stamp = folder / kStamp;
  std::error_code none;
  const auto looked = std::filesystem::last_write_time(stamp, none);
  if (!none && Clock::now() - looked < kBetweenLooks) return;
  // Marked before counting, so that processes that begin together do not all count.
  (void)WriteFileAtomic(stamp, "");
  KeepBelow(folder, most_bytes);
}

void Renew(const Path& file) {
  std::error_code ignored;
  std::filesystem::last_write_time(file, Clock::now(), ignored);
}

uint64_t CacheLimitBytes() {
  constexpr double kUsual = 2;
  const char* text = std::getenv("ATUNNER_CACHE_GB");
  char* end = nullptr;
  const double given = text == nullptr ? kUsual : std::strtod(text, &end);
  const bool number = text == nullptr || (end != text && *end == '\0' && given >= 0 && given < 1e6);
  return static_cast<uint64_t>((number ? given : kUsual) * 1e9);
}

}  // namespace atunner
