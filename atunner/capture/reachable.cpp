#include "atunner/capture/reachable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace atunner::capture {

void Reachable::AddRange(uint64_t address, uint64_t bytes) {
  buffers_.push_back({address, bytes, Element::kUnknown});
}

void Reachable::AddPointers(std::string_view bytes, std::optional<Element> declared) {
  const auto [low, high] = memory_.Bounds();
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word < low || word >= high) continue;
    const auto found = memory_.Find(word);
    if (!found) continue;
    const auto known = std::ranges::find(buffers_, found->base, &Buffer::base);
    if (known == buffers_.end())
      buffers_.push_back({found->base, found->bytes, declared.value_or(Element::kUnknown)});
    else if (declared && known->element != *declared)
      known->element = Element::kUnknown;
  }
}

void Reachable::AddParameter(const std::string& bytes, Element element) {
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    memory_.Discover(word);
  }
  AddPointers(bytes, bytes.size() == sizeof(uint64_t) ? element : Element::kUnknown);
}

Status Reachable::Take(uint64_t limit) {
  uint64_t total = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    total += buffers_[i].bytes;
    if (total > limit)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("the launch may reach more than the {:.1f} GB that are compared",
                              static_cast<double>(limit) / 1e9));
    std::string& contents = before_.emplace_back(buffers_[i].bytes, '\0');
    ATUNNER_RETURN_IF_ERROR(memory_.Read(buffers_[i].base, contents));
    AddPointers(contents, std::nullopt);
  }
  return {};
}

Result<std::vector<std::string>> Reachable::Contents() const {
  std::vector<std::string> all;
  for (const Buffer& buffer : buffers_) {
    std::string& contents = all.emplace_back(buffer.bytes, '\0');
    ATUNNER_RETURN_IF_ERROR(memory_.Read(buffer.base, contents));
  }
  return all;
}

Status Reachable::Put(const std::vector<std::string>& contents,
                      const std::vector<std::string>& present) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (contents[i] != present[i])
      ATUNNER_RETURN_IF_ERROR(memory_.Write(buffers_[i].base, contents[i]));
  }
  return {};
}

Comparison CompareAll(const Reachable& memory, const std::vector<std::string>& original,
                      const std::vector<std::string>& tuned, double tolerance) {
  Comparison worst;
  for (size_t i = 0; i < original.size(); ++i) {
    const Comparison one = Compare({memory.before()[i], original[i], tuned[i]}, memory.element(i),
                                   tolerance);
    worst.equal = worst.equal && one.equal;
    if (worst.accepted && !one.accepted) worst.at = one.at;
    worst.accepted = worst.accepted && one.accepted;
    worst.error = std::max(worst.error, one.error);
  }
  return worst;
}

}  // namespace atunner::capture
