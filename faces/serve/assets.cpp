#include "faces/serve/assets.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace atunner::serve {

const Asset* FindAsset(std::string_view path) {
  const auto all = Assets();
  const auto found = std::ranges::find(all, path, &Asset::path);
  return found == all.end() ? nullptr : &*found;
}

std::optional<std::string> Unpacked(std::string_view gzip) {
  constexpr int kGzip = 15 + 16;  // zlib's largest window, with gzip's header
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::string text;
  std::array<char, 65536> chunk{};
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = inflate(&stream, Z_NO_FLUSH);
    text.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END) return std::nullopt;
  return text;
}

}  // namespace atunner::serve
