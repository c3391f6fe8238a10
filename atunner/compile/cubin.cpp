#include "atunner/compile/cubin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "atunner/compile/elf.h"

namespace atunner {
namespace {

// Attribute numbers of .nv.info records, as `cuobjdump --dump-elf` names them.
constexpr uint8_t kAttrMaxThreads = 0x05;  // EIATTR_MAX_THREADS: x, y, z of the launch bounds
constexpr uint8_t kAttrFrameSize = 0x11;   // EIATTR_FRAME_SIZE: symbol, bytes
constexpr uint8_t kAttrRegCount = 0x2f;    // EIATTR_REGCOUNT: symbol, registers
// Format of a record with a payload size; other formats have a 16-bit value instead of it.
constexpr uint8_t kFormatSized = 0x04;

struct Attribute {
  uint8_t id = 0;
  std::vector<uint32_t> words;
};

std::vector<Attribute> Attributes(std::string_view info) {
  std::vector<Attribute> attributes;
  size_t at = 0;
  while (at + 4 <= info.size()) {
    const auto format = static_cast<uint8_t>(info[at]);
    Attribute attribute{static_cast<uint8_t>(info[at + 1]), {}};
    uint16_t size = 0;
    std::memcpy(&size, info.data() + at + 2, 2);
    at += 4;
    if (format == kFormatSized) {
      if (size > info.size() - at) break;
      attribute.words.resize(size / 4);
      if (size >= 4)
        std::memcpy(attribute.words.data(), info.data() + at, attribute.words.size() * 4);
      at += size;
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

constexpr std::string_view kTextPrefix = ".text.";

/// From sm_90 on a kernel's shared section begins with 1024 bytes reserved by the system; a section
/// of this name tells that they are there.
constexpr std::string_view kReservedShared = ".nv.shared.reserved.0";
constexpr uint32_t kReservedSharedBytes = 1024;

}  // namespace

uint32_t MaxThreadsForRegisters(uint32_t registers) {
  constexpr uint32_t kPartitions = 4;
  const uint32_t per_warp = std::max(1u, (registers * 32 + 255) / 256) * 256;
  return std::min(1024u, 65536u / kPartitions / per_warp * kPartitions * 32);
}

namespace {

/// Collects the resources of all kernels of a cubin.
class CubinReader {
 public:
  explicit CubinReader(const Elf& elf) : elf_(elf), symbols_(elf.SymbolNames()) {}

  std::vector<KernelResources> Read() {
    FindKernels();
    for (const Elf64_Shdr& section : elf_.sections()) {
      ReadSizes(section);
      if (elf_.NameOf(section).starts_with(".nv.info")) ReadAttributes(section);
    }
    for (KernelResources& kernel : kernels_) {
      kernel.max_threads = MaxThreadsForRegisters(kernel.registers);
      if (const auto bound = bounds_.find(kernel.mangled); bound != bounds_.end())
        kernel.max_threads = std::min(kernel.max_threads, bound->second);
    }
    // Device functions have text sections too, but no parameter bank: they are not kernels.
    std::erase_if(kernels_,
                  [](const KernelResources& kernel) { return kernel.constant_bytes == 0; });
    return std::move(kernels_);
  }

 private:
  void FindKernels() {
    for (const Elf64_Shdr& section : elf_.sections()) {
      const std::string_view name = elf_.NameOf(section);
      reserves_shared_ |= name == kReservedShared;
      if (!name.starts_with(kTextPrefix)) continue;
      KernelResources kernel;
      kernel.entry = kernel.mangled = std::string(name.substr(kTextPrefix.size()));
      index_[name.substr(kTextPrefix.size())] = kernels_.size();
      kernels_.push_back(std::move(kernel));
    }
  }

  KernelResources* Find(std::string_view name) {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &kernels_[at->second];
  }

  /// Shared and constant bytes are the sizes of sections named after the kernel.
  void ReadSizes(const Elf64_Shdr& section) {
    const std::string_view name = elf_.NameOf(section);
    const auto after = [&](std::string_view prefix) {
      return name.starts_with(prefix) ? Find(name.substr(prefix.size())) : nullptr;
    };
    const auto size = static_cast<uint32_t>(section.sh_size);
    if (KernelResources* kernel = after(".nv.shared."))
      kernel->static_shared_bytes = reserves_shared_ ? size - std::min(size, kReservedSharedBytes)
                                                     : size;
    if (KernelResources* kernel = after(".nv.constant0.")) kernel->constant_bytes = size;
  }

  void ReadAttributes(const Elf64_Shdr& section) {
    constexpr std::string_view kOfKernel = ".nv.info.";
    const std::string_view name = elf_.NameOf(section);
    const bool of_kernel = name.starts_with(kOfKernel);
    for (const Attribute& attribute : Attributes(elf_.Bytes(section))) {
      const std::vector<uint32_t>& words = attribute.words;
      if (of_kernel && attribute.id == kAttrMaxThreads && words.size() >= 3)
        bounds_[name.substr(kOfKernel.size())] = words[0] * words[1] * words[2];
      if (words.size() < 2 || words[0] >= symbols_.size()) continue;
      KernelResources* kernel = Find(symbols_[words[0]]);
      if (kernel == nullptr) continue;
      if (attribute.id == kAttrRegCount) kernel->registers = words[1];
      if (attribute.id == kAttrFrameSize) kernel->local_bytes = words[1];
    }
  }

  const Elf& elf_;
  std::vector<std::string_view> symbols_;
  std::vector<KernelResources> kernels_;
  std::map<std::string_view, size_t> index_;     ///< in kernels_, by mangled name
  std::map<std::string_view, uint32_t> bounds_;  ///< largest block of the launch bounds
  bool reserves_shared_ = false;
};

/// The number before `what` in a line of ptxas, e.g. "16 bytes spill stores"; 0 if it is not there.
uint32_t NumberBefore(std::string_view text, std::string_view what) {
  const size_t place = text.find(what);
  if (place == std::string_view::npos) return 0;
  const size_t digits = text.find_last_not_of("0123456789", place - 1);
  return static_cast<uint32_t>(
      std::strtoul(std::string(text.substr(digits + 1, place - digits - 1)).c_str(), nullptr, 10));
}

}  // namespace

Result<std::vector<KernelResources>> ReadCubin(std::string_view bytes) {
  ATUNNER_TRY(const Elf elf, Elf::Open(bytes));
  return CubinReader(elf).Read();
}

Result<std::map<std::string, std::string_view>> CodeOfCubin(std::string_view bytes) {
  ATUNNER_TRY(const Elf elf, Elf::Open(bytes));
  std::map<std::string, std::string_view> code;
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string_view name = elf.NameOf(section);
    if (name.starts_with(".text") || name.starts_with(".nv.global.init") ||
        name.starts_with(".nv.constant3"))
      code[std::string(name)] = elf.Bytes(section);
  }
  return code;
}

void ApplySpills(std::string_view log, std::vector<KernelResources>& kernels) {
  constexpr std::string_view kMark = "Function properties for ";
  for (size_t at = log.find(kMark); at != std::string_view::npos; at = log.find(kMark, at + 1)) {
    const size_t start = at + kMark.size();
    const size_t end = log.find_first_of(" \n", start);
    if (end == std::string_view::npos) return;
    const std::string_view name = log.substr(start, end - start);
    const std::string_view rest = log.substr(end, 200);
    for (KernelResources& kernel : kernels) {
      if (kernel.mangled != name) continue;
      kernel.spill_store_bytes = NumberBefore(rest, " bytes spill stores");
      kernel.spill_load_bytes = NumberBefore(rest, " bytes spill loads");
    }
  }
}

}  // namespace atunner
