#include "atunner/platform/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "atunner/platform/job_files.h"

namespace atunner::platform {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kLongestPath = 100;

using Header = std::array<char, kBlock>;

void Put(Header& header, size_t at, const std::string& text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The offsets are those of the format's `struct posix_header`.
Header HeaderOf(const std::string& path, size_t bytes) {
  Header header{};
  Put(header, 0, path);
  Put(header, 100, "0000644");
  Put(header, 108, "0000000");
  Put(header, 116, "0000000");
  Put(header, 124, fmt::format("{:011o}", bytes));
  Put(header, 136, "00000000000");
  Put(header, 148, "        ");  // the checksum counts as spaces
  Put(header, 156, "0");
  Put(header, 257, "ustar");
  Put(header, 263, "00");
  const int sum = std::accumulate(header.begin(), header.end(), 0, [](int total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  Put(header, 148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

}  // namespace

Result<std::string> TarOf(const Path& folder, const std::string& prefix) {
  std::string archive;
  for (const StoredFile& file : FilesBelow(folder)) {
    const std::string path = prefix + "/" + file.path;
    if (path.size() > kLongestPath) return Invalid("the path is too long for an archive", path);
    ATUNNER_TRY(const std::string bytes, ReadFile(folder / file.path));
    const Header header = HeaderOf(path, bytes.size());
    archive.append(header.data(), header.size());
    archive += bytes;
    archive.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  }
  archive.append(2 * kBlock, '\0');
  return archive;
}

}  // namespace atunner::platform
