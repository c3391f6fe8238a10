#include "faces/program/fat_binary.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "atunner/base/dylib.h"
#include "atunner/ptx/link.h"

namespace atunner::program {
namespace {

constexpr uint16_t kPtx = 1;
constexpr uint16_t kCubin = 2;
constexpr uint64_t kPackedByLz4 = 0x2000;
constexpr uint64_t kPackedByZstd = 0x8000;
constexpr uint64_t kMostPtx = uint64_t{1} << 30;  // bytes of one unpacked entry

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t bytes;  // size of this header
  uint64_t size;   // size of the entries behind it
};

struct Entry {
  uint16_t kind;
  uint16_t version;
  uint32_t bytes;  // size of this header
  uint64_t size;   // padded size of the payload behind it
  uint32_t packed_bytes;
  uint32_t options;
  uint16_t minor, major;  // version of the payload's format
  uint32_t arch;
  uint32_t name, name_bytes;
  uint64_t flags;
  uint64_t reserved;
  uint64_t unpacked_bytes;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);

Result<std::string> UnpackZstd(const std::string& packed, size_t bytes) {
  constexpr size_t kMostOfBlock = 128 << 10;  // a block takes four bytes at least
  if (bytes > kMostPtx || bytes / kMostOfBlock > packed.size() / 4)
    return Invalid("the program's PTX says that it unpacks to more than it can");
  const std::string name = "libzstd.so.1";
  auto library = DynamicLibrary::Open({&name, 1});
  size_t (*decompress)(void*, size_t, const void*, size_t) = nullptr;
  if (!library || !library->Bind(decompress, "ZSTD_decompress"))
    return Fail(ErrorCode::kUnavailable,
                "the program's PTX is packed by zstd, and libzstd.so.1 is not here", "",
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
  return text;
}

/// An LZ4 length. 15 means that the bytes from `at` on are added to it, up to one below 255.
bool ReadLength(const std::string& packed, size_t& at, size_t& length) {
  if (length != 15) return true;
  for (uint8_t more = 255; more == 255; length += more) {
    if (at >= packed.size()) return false;
    more = static_cast<uint8_t>(packed[at++]);
  }
  return true;
}

/// Calls `read` with each entry and its payload. Returns the length of the image.
template <class Read>
Result<uint64_t> ForEachEntry(std::string_view image, const Read& read) {
  Header header;
  if (image.size() < sizeof header) return Invalid("the program's device code has no header");
  std::memcpy(&header, image.data(), sizeof header);
  if (header.magic != kFatBinaryMagic || header.bytes < sizeof header ||
      header.bytes > image.size())
    return Invalid("the program's device code has no header");
  if (header.size > image.size() - header.bytes)
    return Invalid("the program's device code is cut off");
  std::string_view left = image.substr(header.bytes, header.size);
  while (left.size() >= sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, left.data(), sizeof entry);
    if (entry.bytes < sizeof entry || entry.bytes > left.size() ||
        entry.size > left.size() - entry.bytes || entry.packed_bytes > entry.size)
      return Invalid("the program's device code is damaged");
    ATUNNER_RETURN_IF_ERROR(read(entry, left.data() + entry.bytes));
    left.remove_prefix(entry.bytes + entry.size);
  }
  return header.bytes + header.size;
}

/// Contents of the ELF sections into which nvcc puts the fat binaries of a program: the linked one,
/// and those of the relocatable files that it was linked from.
std::vector<std::string_view> FatBinariesOf(std::string_view program) {
  const auto at = [&]<class T>(uint64_t place, T& value) {
    if (place > program.size() || sizeof value > program.size() - place) return false;
    std::memcpy(&value, program.data() + place, sizeof value);
    return true;
  };
  Elf64_Ehdr header;
  Elf64_Shdr names;
  if (!at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      !at(header.e_shoff + header.e_shstrndx * sizeof names, names))
    return {};
  std::vector<std::string_view> found;
  Elf64_Shdr section;
  for (unsigned i = 0; i < header.e_shnum && at(header.e_shoff + i * sizeof section, section);
       ++i) {
    const uint64_t at_name = names.sh_offset + section.sh_name;
    if (at_name > program.size() || section.sh_offset > program.size()) continue;
    const std::string_view name = program.substr(at_name);
    for (const std::string_view known :
         {std::string_view(".nv_fatbin\0", 11), std::string_view("__nv_relfatbin\0", 15)})
      if (name.starts_with(known))
        found.push_back(program.substr(section.sh_offset, section.sh_size));
  }
  return found;
}

}  // namespace

std::vector<int> PtxArchitectures(std::string_view program) {
  std::vector<int> found;
  for (std::string_view images : FatBinariesOf(program)) {
    while (!images.empty()) {
      const auto bytes = ForEachEntry(images, [&](const Entry& entry, const char*) -> Result<void> {
        if (entry.kind == kPtx) found.push_back(static_cast<int>(entry.arch));
        return {};
      });
      constexpr uint64_t kAligned = 8;  // alignment of each fat binary
      const uint64_t passed = bytes ? (*bytes + kAligned - 1) / kAligned * kAligned : kAligned;
      images.remove_prefix(std::min<uint64_t>(passed, images.size()));
    }
  }
  return found;
}

Result<std::string> UnpackLz4(const std::string& packed, size_t bytes) {
  const auto damaged = [] { return Invalid("the program's PTX cannot be unpacked"); };
  if (bytes / 256 > packed.size()) return damaged();  // more than the format can pack
  std::string text;
  text.reserve(bytes);
  for (size_t at = 0; at < packed.size();) {
    const auto token = static_cast<uint8_t>(packed[at++]);
    size_t literals = token >> 4;
    if (!ReadLength(packed, at, literals) || literals > packed.size() - at ||
        literals > bytes - text.size())
      return damaged();
    text.append(packed, at, literals);
    at += literals;
    if (at == packed.size()) break;  // the last sequence is literals alone
    if (packed.size() - at < 2) return damaged();
    const size_t back = static_cast<uint8_t>(packed[at]) |
                        static_cast<size_t>(static_cast<uint8_t>(packed[at + 1])) << 8;
    at += 2;
    size_t match = token & 15;
    if (!ReadLength(packed, at, match)) return damaged();
    match += 4;
    if (back == 0 || back > text.size() || match > bytes - text.size()) return damaged();
    // may overlap what it writes
    for (size_t from = text.size() - back; match > 0; --match) text += text[from++];
  }
  if (text.size() != bytes) return damaged();
  return text;
}

Result<FatBinary> ReadFatBinary(const char* image) {
  Header header;
  std::memcpy(&header, image, sizeof header);
  return ReadFatBinary(std::string_view(image, header.bytes + header.size));
}

Result<FatBinary> ReadFatBinary(std::string_view image) {
  FatBinary binary;
  const auto read = ForEachEntry(
      image, [&](const Entry& entry, const char* payload) -> Result<void> {
        if (entry.kind != kPtx) {
          binary.machine_code.push_back(static_cast<int>(entry.arch));
          return {};
        }
        ATUNNER_TRY(std::string text, Unpack(entry, payload));
        text.resize(std::strlen(text.c_str()));  // zeros pad it
        binary.ptx.push_back({static_cast<int>(entry.arch), std::move(text)});
        return {};
      });
  if (!read) return std::unexpected(read.error());
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
  const std::string gpu = binary.ptx.empty()
                              ? ""
                              : ", or ask for a GPU that it is built for (--target-gpu)";
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("the program has no PTX for compute capability {}.{} ({})", arch / 10, arch % 10,
                  there.empty() ? "it has no device code" : "it has " + there),
      "",
      fmt::format("build it with nvcc -gencode arch=compute_{0},code=compute_{0}{1}", arch, gpu));
}

Result<std::string> ChooseCubin(const char* image, int arch) {
  Header header;
  std::memcpy(&header, image, sizeof header);
  std::optional<std::pair<Entry, const char*>> best;
  const auto read = ForEachEntry(std::string_view(image, header.bytes + header.size),
                                 [&](const Entry& entry, const char* payload) -> Result<void> {
                                   const auto code = static_cast<int>(entry.arch);
                                   if (entry.kind == kCubin && code / 10 == arch / 10 &&
                                       code <= arch && (!best || entry.arch > best->first.arch))
                                     best = {entry, payload};
                                   return {};
                                 });
  if (!read) return std::unexpected(read.error());
  return best ? Unpack(best->first, best->second) : std::string();
}

/// Links the PTX of the fat binaries that relocatable code was linked from. Those without PTX
/// belong to the CUDA toolkit and are left out.
Result<std::string> LinkedPtx(const char* const* images, int arch) {
  std::vector<std::string> texts;
  for (; *images != nullptr; ++images) {
    const auto binary = ReadFatBinary(*images);
    if (!binary) return std::unexpected(binary.error());
    if (auto ptx = ChoosePtx(*binary, arch)) texts.push_back(*std::move(ptx));
  }
  if (texts.empty())
    return Fail(ErrorCode::kUnsupported, "the program was linked from machine code alone");
  return ptx::Link(texts);
}

}  // namespace atunner::program
