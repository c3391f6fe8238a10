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
// payload size follows; the other formats carry 16 bits in place of it
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

/// From sm_90 on a kernel's shared section begins with what the system keeps for itself, and a
/// section of this name says so.
constexpr std::string_view kReservedShared = ".nv.shared.reserved.0";
constexpr uint32_t kReservedSharedBytes = 1024;

}  // namespace

uint32_t MaxThreadsForRegisters(uint32_t registers) {
  constexpr uint32_t kPartitions = 4;
  const uint32_t per_warp = std::max(1u, (registers * 32 + 255) / 256) * 256;
  return std::min(1024u, 65536u / kPartitions / per_warp * kPartitions * 32);
}

Result<std::vector<KernelResources>> ReadCubin(std::string_view bytes) {
  ATUNNER_TRY(const Elf elf, Elf::Open(bytes));
  std::vector<KernelResources> kernels;
  std::map<std::string_view, size_t> index;
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string_view name = elf.NameOf(section);
    if (!name.starts_with(kTextPrefix)) continue;
    KernelResources kernel;
    kernel.entry = kernel.mangled = std::string(name.substr(kTextPrefix.size()));
    index[name.substr(kTextPrefix.size())] = kernels.size();
    kernels.push_back(std::move(kernel));
  }
  const auto find = [&](std::string_view name) -> KernelResources* {
    const auto at = index.find(name);
    return at == index.end() ? nullptr : &kernels[at->second];
  };
  const std::vector<std::string_view> symbols = elf.SymbolNames();
  std::map<std::string_view, uint32_t> bounds;
  const bool reserves = std::ranges::any_of(elf.sections(), [&](const Elf64_Shdr& section) {
    return elf.NameOf(section) == kReservedShared;
  });
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string_view name = elf.NameOf(section);
    const auto after = [&](std::string_view prefix) {
      return name.starts_with(prefix) ? find(name.substr(prefix.size())) : nullptr;
    };
    if (KernelResources* kernel = after(".nv.shared.")) {
      const auto size = static_cast<uint32_t>(section.sh_size);
      kernel->static_shared_bytes = reserves ? size - std::min(size, kReservedSharedBytes) : size;
    }
    if (KernelResources* kernel = after(".nv.constant0."))
      kernel->constant_bytes = static_cast<uint32_t>(section.sh_size);
    if (!name.starts_with(".nv.info")) continue;
    const bool of_kernel = name.starts_with(".nv.info.");
    for (const Attribute& attribute : Attributes(elf.Bytes(section))) {
      if (of_kernel && attribute.id == kAttrMaxThreads && attribute.words.size() >= 3) {
        bounds[name.substr(9)] = attribute.words[0] * attribute.words[1] * attribute.words[2];
      }
      if (attribute.words.size() < 2 || attribute.words[0] >= symbols.size()) continue;
      KernelResources* kernel = find(symbols[attribute.words[0]]);
      if (kernel == nullptr) continue;
      if (attribute.id == kAttrRegCount) kernel->registers = attribute.words[1];
      if (attribute.id == kAttrFrameSize) kernel->local_bytes = attribute.words[1];
    }
  }
  for (KernelResources& kernel : kernels) {
    kernel.max_threads = MaxThreadsForRegisters(kernel.registers);
    if (const auto bound = bounds.find(kernel.mangled); bound != bounds.end())
      kernel.max_threads = std::min(kernel.max_threads, bound->second);
  }
  // Device functions have text sections too, but no parameter bank: they are no kernels.
  std::erase_if(kernels, [](const KernelResources& kernel) { return kernel.constant_bytes == 0; });
  return kernels;
}

void ApplySpills(std::string_view log, std::vector<KernelResources>& kernels) {
  constexpr std::string_view kMark = "Function properties for ";
  for (size_t at = log.find(kMark); at != std::string_view::npos; at = log.find(kMark, at + 1)) {
    const size_t start = at + kMark.size();
    const size_t end = log.find_first_of(" \n", start);
    if (end == std::string_view::npos) return;
    const std::string_view name = log.substr(start, end - start);
    const std::string_view rest = log.substr(end, 200);
    const auto number_before = [&](std::string_view what) -> uint32_t {
      const size_t place = rest.find(what);
      if (place == std::string_view::npos) return 0;
      const size_t digits = rest.find_last_not_of("0123456789", place - 1);
      return static_cast<uint32_t>(std::strtoul(
          std::string(rest.substr(digits + 1, place - digits - 1)).c_str(), nullptr, 10));
    };
    for (KernelResources& kernel : kernels) {
      if (kernel.mangled != name) continue;
      kernel.spill_store_bytes = number_before(" bytes spill stores");
      kernel.spill_load_bytes = number_before(" bytes spill loads");
    }
  }
}

}  // namespace atunner
