// Memory of a program as tests see it.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "atunner/capture/recording.h"

namespace atunner::capture {

/// Memory in a map from address to contents.
class MapMemory : public ProgramMemory {
 public:
  std::optional<Allocation> Find(uint64_t address) const override {
    for (const auto& [base, bytes] : buffers) {
      if (address >= base && address < base + bytes.size()) return Allocation{base, bytes.size()};
    }
    return std::nullopt;
  }
  std::pair<uint64_t, uint64_t> Bounds() const override { return {0x1000, 0x9000}; }
  Status Read(uint64_t address, std::span<char> to) const override {
    const auto at = Find(address);
    if (!at) return Invalid("no memory there");
    std::memcpy(to.data(), buffers.at(at->base).data() + (address - at->base), to.size());
    return {};
  }
  Status Write(uint64_t address, std::span<const char> from) override {
    const auto at = Find(address);
    if (!at) return Invalid("no memory there");
    std::memcpy(buffers.at(at->base).data() + (address - at->base), from.data(), from.size());
    written.push_back(address);
    return {};
  }
  bool IsUndefined(uint64_t address, uint64_t) const override { return address == undefined; }

  std::map<uint64_t, std::string> buffers;
  std::vector<uint64_t> written;
  uint64_t undefined = 0;
};

}  // namespace atunner::capture
