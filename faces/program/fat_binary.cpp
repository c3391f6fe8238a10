#include "faces/program/fat_binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "atunner/base/dylib.h"

namespace atunner::program {
namespace {

constexpr uint16_t kPtx = 1;
constexpr uint64_t kPackedByLz4 = 0x2000;
constexpr uint64_t kPackedByZstd = 0x8000;

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t bytes;  // of this header
  uint64_t size;   // of what follows it
};

struct Entry {
  uint16_t kind;
  uint16_t version;
  uint32_t bytes;  // of this header
  uint64_t size;   // of what follows it, padded
  uint32_t packed_bytes;
  uint32_t options;
  uint16_t minor, major;  // of the format inside
  uint32_t arch;
  uint32_t name, name_bytes;
  uint64_t flags;
  uint64_t reserved;
  uint64_t unpacked_bytes;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);

Result<std::string> UnpackZstd(const std::string& packed, size_t bytes) {
  const std::string name = "libzstd.so.1";
  auto library = DynamicLibrary::Open({&name, 1});
  size_t (*decompress)(void*, size_t, const void*, size_t) = nullptr;
  if (!library || !library->Bind(decompress, "ZSTD_decompress"))
    return Fail(ErrorCode::kUnavailable, "the program's PTX is packed by zstd, and libzstd.so.1 is not here", "",
                "build it with nvcc --no-compress");
  std::string text(bytes, '\0');
  if (decompress(text.data(), bytes, packed.data(), packed.size()) != bytes)
    return Invalid("the program's PTX cannot be unpacked");
  return text;
}

Result<std::string> Unpack(const Entry& entry, const char* payload) {
  const bool packed = (entry.flags & (kPackedByLz4 | kPackedByZstd)) != 0;
  std::string text(payload, packed ? entry.packed_bytes : entry.size);
  if (entry.flags & kPackedByZstd) {
    ATUNNER_TRY(text, UnpackZstd(text, entry.unpacked_bytes));
  } else if (packed) {
    ATUNNER_TRY(text, UnpackLz4(text, entry.unpacked_bytes));
  }
  text.resize(std::strlen(text.c_str()));  // zeros pad it
  return text;
}

/// A length that 15 says is continued in the bytes at `at`, each added until one is below 255.
bool ReadLength(const std::string& packed, size_t& at, size_t& length) {
  if (length != 15) return true;
  for (uint8_t more = 255; more == 255; length += more) {
    if (at >= packed.size()) return false;
    more = static_cast<uint8_t>(packed[at++]);
  }
  return true;
}

}  // namespace

Result<std::string> UnpackLz4(const std::string& packed, size_t bytes) {
  const auto damaged = [] { return Invalid("the program's PTX cannot be unpacked"); };
  if (bytes / 256 > packed.size()) return damaged();  // more than the format can pack
  std::string text;
  text.reserve(bytes);
  for (size_t at = 0; at < packed.size();) {
    const auto token = static_cast<uint8_t>(packed[at++]);
    size_t literals = token >> 4;
    if (!ReadLength(packed, at, literals) || literals > packed.size() - at || literals > bytes - text.size())
      return damaged();
    text.append(packed, at, literals);
    at += literals;
    if (at == packed.size()) break;  // the last sequence is literals alone
    if (packed.size() - at < 2) return damaged();
    const size_t back = static_cast<uint8_t>(packed[at]) | static_cast<size_t>(static_cast<uint8_t>(packed[at + 1]))
                                                               << 8;
    at += 2;
    size_t match = token & 15;
    if (!ReadLength(packed, at, match)) return damaged();
    match += 4;
    if (back == 0 || back > text.size() || match > bytes - text.size()) return damaged();
    for (size_t from = text.size() - back; match > 0; --match) text += text[from++];  // may overlap what it writes
  }
  if (text.size() != bytes) return damaged();
  return text;
}

Result<FatBinary> ReadFatBinary(const char* image) {
  Header header;
  std::memcpy(&header, image, sizeof header);
  if (header.magic != kFatBinaryMagic || header.bytes < sizeof header)
    return Invalid("the program's device code has no header");
  FatBinary binary;
  const char* at = image + header.bytes;
  for (const char* end = at + header.size; static_cast<size_t>(end - at) >= sizeof(Entry);) {
    Entry entry;
    std::memcpy(&entry, at, sizeof entry);
    const auto left = static_cast<uint64_t>(end - at);
    if (entry.bytes < sizeof entry || entry.bytes > left || entry.size > left - entry.bytes ||
        entry.packed_bytes > entry.size)
      return Invalid("the program's device code is damaged");
    if (entry.kind == kPtx) {
      ATUNNER_TRY(std::string text, Unpack(entry, at + entry.bytes));
      binary.ptx.push_back({static_cast<int>(entry.arch), std::move(text)});
    } else {
      binary.machine_code.push_back(static_cast<int>(entry.arch));
    }
    at += entry.bytes + entry.size;
  }
  return binary;
}

Result<std::string> ChoosePtx(const FatBinary& binary, int arch) {
  const FatBinary::Ptx* best = nullptr;
  std::string there;
  for (const FatBinary::Ptx& ptx : binary.ptx) {
    there += fmt::format("{}PTX for {}", there.empty() ? "" : ", ", ptx.arch);
    if (ptx.arch <= arch && (best == nullptr || ptx.arch > best->arch)) best = &ptx;
  }
  if (best != nullptr) return best->text;
  for (const int code : binary.machine_code)
    there += fmt::format("{}machine code for {}", there.empty() ? "" : ", ", code);
  const std::string gpu = binary.ptx.empty() ? "" : ", or ask for a GPU that it is built for (--target-gpu)";
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("the program has no PTX for compute capability {}.{} ({})", arch / 10, arch % 10,
                  there.empty() ? "it has no device code" : "it has " + there),
      "",
      fmt::format("build it with nvcc -gencode arch=compute_{0},code=compute_{0} and without -rdc=true{1}", arch, gpu));
}

}  // namespace atunner::program
