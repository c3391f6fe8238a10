#include "faces/serve/gzip.h"

#include <zlib.h>

#include <array>

namespace atunner::serve {
namespace {

constexpr int kGzip = 15 + 16;   // zlib's largest window, with gzip's header
constexpr int kMemoryLevel = 8;  // zlib's default

Bytef* BytesOf(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

std::string Packed(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return "";
  stream.next_in = BytesOf(text);
  stream.avail_in = static_cast<uInt>(text.size());
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_out = BytesOf(packed);
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(code == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return packed;
}

std::optional<std::string> Unpacked(std::string_view gzip) {
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
