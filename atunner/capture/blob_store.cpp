#include "atunner/capture/blob_store.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "atunner/base/digest.h"

namespace atunner::capture {
namespace {

constexpr size_t kLargestBlob = size_t{64} << 30;
constexpr size_t kPiece = size_t{1} << 20;

/// The contents' size in eight bytes, then a zlib stream.
std::string Packed(std::string_view bytes) {
  std::string packed(sizeof(uint64_t), '\0');
  const uint64_t size = bytes.size();
  std::memcpy(packed.data(), &size, sizeof size);
  z_stream stream{};
  deflateInit(&stream, Z_BEST_SPEED);
  std::string piece(kPiece, '\0');
  for (size_t at = 0; at == 0 || at < bytes.size(); at += kPiece) {
    const std::string_view part = bytes.substr(at, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream.avail_in = static_cast<uInt>(part.size());
    const int flush = at + kPiece >= bytes.size() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      deflate(&stream, flush);
      packed.append(piece, 0, piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return packed;
}

Result<std::string> Unpacked(std::string_view packed, const std::string& where) {
  uint64_t size = 0;
  if (packed.size() < sizeof size) return Invalid("this is no blob of a capture", where);
  std::memcpy(&size, packed.data(), sizeof size);
  packed.remove_prefix(sizeof size);
  // zlib packs a run of equal bytes to about a thousandth.
  if (size > kLargestBlob || size / 1100 > packed.size())
    return Invalid("the stated size cannot be right", where);
  std::string bytes(size, '\0');
  z_stream stream{};
  inflateInit(&stream);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  size_t left_in = packed.size(), left_out = size;
  char* out = bytes.data();
  int state = Z_OK;
  while (state == Z_OK) {
    const auto in = static_cast<uInt>(std::min(left_in, kPiece));
    const auto room = static_cast<uInt>(std::min(left_out, kPiece));
    stream.avail_in = in;
    stream.next_out = reinterpret_cast<Bytef*>(out);
    stream.avail_out = room;
    state = inflate(&stream, Z_NO_FLUSH);
    left_in -= in - stream.avail_in;
    left_out -= room - stream.avail_out;
    out += room - stream.avail_out;
    if (in == stream.avail_in && room == stream.avail_out && state == Z_OK) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || left_out != 0) return Invalid("the blob is damaged", where);
  return bytes;
}

}  // namespace

bool IsBlobId(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Path BlobStore::FileOf(const BlobId& id) const { return folder_ / id.substr(0, 2) / id; }

Result<BlobId> BlobStore::Put(std::string_view bytes) {
  BlobId id = DigestOf(bytes).ToHex();
  if (known_.contains(id)) return id;
  if (!Exists(FileOf(id))) {
    if (const Status written = WriteFileAtomic(FileOf(id), Packed(bytes)); !written)
      return std::unexpected(written.error());
  }
  known_.insert(id);
  return id;
}

Result<std::string> BlobStore::Get(const BlobId& id) const {
  if (!IsBlobId(id)) return Invalid("'" + id + "' is no name of a blob", folder_.string());
  ATUNNER_TRY(const std::string packed, ReadFile(FileOf(id), kLargestBlob));
  ATUNNER_TRY(std::string bytes, Unpacked(packed, FileOf(id).string()));
  if (DigestOf(bytes).ToHex() != id)
    return Invalid("the contents do not belong to this name", FileOf(id).string(),
                   "record the capture again");
  return bytes;
}

}  // namespace atunner::capture
