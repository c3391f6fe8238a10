#include "atunner/replay/gunzip.h"

#include <zlib.h>

#include <algorithm>

namespace atunner {
namespace {

/// zlib counts in 32 bits, so the input is given in pieces of at most 1 GiB.
void FeedNext(z_stream& stream, std::string_view bytes, size_t& taken) {
  const size_t more = std::min(bytes.size() - taken, size_t{1} << 30);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
  stream.avail_in = static_cast<uInt>(more);
  taken += more;
}

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> Gunzip(std::string_view bytes, size_t most) {
  z_stream stream{};
  constexpr int kGzipHeader = 16;
  if (inflateInit2(&stream, MAX_WBITS + kGzipHeader) != Z_OK)
    return Fail(ErrorCode::kUnavailable, "no memory to unpack gzip data");
  std::string out;
  std::string piece(size_t{1} << 18, '\0');
  size_t taken = 0;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    if (stream.avail_in == 0) FeedNext(stream, bytes, taken);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > most)
    return Invalid("unpacks to more than " + std::to_string(most >> 20) + " MiB");
  if (state != Z_STREAM_END) return Invalid("the gzip data is damaged or cut off");
  return out;
}

}  // namespace atunner
