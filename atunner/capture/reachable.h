// The memory that a launch may reach, copied to the host: the allocations that its parameters point
// to, those that these point to, and so on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/capture/comparison.h"
#include "atunner/capture/recording.h"

namespace atunner::capture {

class Reachable {
 public:
  explicit Reachable(ProgramMemory& memory) : memory_(memory) {}

  /// Adds what a parameter points to; `element`: what it is declared to point to.
  void AddParameter(const std::string& bytes, Element element);
  void AddRange(uint64_t address, uint64_t bytes);
  /// Copies the memory, and adds what it points to. kUnavailable if it has more than `limit` bytes.
  Status Take(uint64_t limit);

  /// Contents at this time, in the same order.
  Result<std::vector<std::string>> Contents() const;
  /// Writes contents where they differ from the present ones.
  Status Put(const std::vector<std::string>& contents, const std::vector<std::string>& present);
  const std::vector<std::string>& before() const { return before_; }
  Element element(size_t buffer) const { return buffers_[buffer].element; }

 private:
  struct Buffer {
    uint64_t base = 0, bytes = 0;
    Element element = Element::kUnknown;
  };
  /// `declared`: the type that the bytes are declared to point to; nullopt = nothing is known.
  void AddPointers(std::string_view bytes, std::optional<Element> declared);

  ProgramMemory& memory_;
  std::vector<Buffer> buffers_;
  std::vector<std::string> before_;
};

/// The worst of the comparisons of all buffers.
Comparison CompareAll(const Reachable& memory, const std::vector<std::string>& original,
                      const std::vector<std::string>& tuned, double tolerance);

}  // namespace atunner::capture
