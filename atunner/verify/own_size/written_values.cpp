#include "atunner/verify/own_size/written_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "atunner/verify/budget/error_budget.h"

namespace atunner {
namespace {

/// Room for a larger error of sums than at the check sizes.
constexpr double kRoom = 4;

/// Calls f(first index in the tensor, first index in the values, count) for each range.
template <class F>
void ForRanges(const WrittenValues& values, F&& f) {
  uint64_t at = 0;
  for (const ElementRange& range : values.elements) {
    f(range.begin, at, range.size());
    at += range.size();
  }
}

double RmsOfNumbers(const WrittenValues& values) {
  double squares = 0;
  uint64_t numbers = 0;
  const uint64_t count = SizeOf(values.elements);
  for (uint64_t i = 0; i < count; ++i) {
    const double value = LoadElement(values.dtype, values.values.data(), i);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++numbers;
  }
  return numbers ? std::sqrt(squares / static_cast<double>(numbers)) : 0.0;
}

/// Adds one float to a comparison; false if it is wrong. An error of 0 / 0 is none.
bool FloatIsRight(double y, double r, double scale, double bound, double& worst) {
  if (std::isnan(r)) return std::isnan(y);
  if (std::isinf(r)) return y == r;
  if (!std::isfinite(y)) return false;
  if (y == r) return true;
  const double error = std::abs(y - r) / (std::abs(r) + scale);
  worst = std::max(worst, error);
  return error <= bound;
}

}  // namespace

uint64_t SizeOf(std::span<const ElementRange> ranges) {
  uint64_t total = 0;
  for (const ElementRange& range : ranges) total += range.size();
  return total;
}

std::vector<ElementRange> WrittenElements(const TaskBuffers::Tensor& tensor,
                                          std::span<const AddressRange> written) {
  const uint64_t size = SizeOf(tensor.spec->dtype);
  const DeviceAddress end = tensor.address + static_cast<uint64_t>(tensor.shape.bytes);
  std::vector<ElementRange> elements;
  for (const AddressRange& range : written) {
    const DeviceAddress from = std::max(range.begin, tensor.address);
    const DeviceAddress to = std::min(range.end, end);
    if (from >= to) continue;
    const ElementRange whole{(from - tensor.address + size - 1) / size,
                             (to - tensor.address) / size};
    if (whole.begin < whole.end) elements.push_back(whole);
  }
  return elements;
}

std::vector<ElementRange> Common(std::span<const ElementRange> a, std::span<const ElementRange> b) {
  std::vector<ElementRange> common;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const ElementRange both{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
    if (both.begin < both.end) common.push_back(both);
    a[i].end < b[k].end ? ++i : ++k;
  }
  return common;
}

std::vector<ElementRange> Without(std::span<const ElementRange> all,
                                  std::span<const ElementRange> some) {
  std::vector<ElementRange> rest;
  size_t k = 0;
  for (ElementRange range : all) {
    while (k < some.size() && some[k].end <= range.begin) ++k;
    for (size_t j = k; j < some.size() && some[j].begin < range.end; ++j) {
      if (some[j].begin > range.begin) rest.push_back({range.begin, some[j].begin});
      range.begin = std::min(range.end, std::max(range.begin, some[j].end));
    }
    if (range.begin < range.end) rest.push_back(range);
  }
  return rest;
}

Result<WrittenValues> WrittenValues::Read(Device& device, const TaskBuffers::Tensor& tensor,
                                          std::vector<ElementRange> elements) {
  const uint64_t size = SizeOf(tensor.spec->dtype);
  WrittenValues read{tensor.spec->dtype, std::move(elements), {}};
  read.values.resize(atunner::SizeOf(read.elements) * size);
  uint64_t at = 0;
  for (const ElementRange& range : read.elements) {
    const std::span<std::byte> to(read.values.data() + at, range.size() * size);
    ATUNNER_RETURN_IF_ERROR(device.CopyOut(to, tensor.address + range.begin * size));
    at += to.size();
  }
  return read;
}

WrittenValues WrittenValues::Part(std::span<const ElementRange> some) const {
  const uint64_t size = SizeOf(dtype);
  WrittenValues part{dtype, {some.begin(), some.end()}, {}};
  part.values.reserve(atunner::SizeOf(some) * size);
  size_t next = 0;
  ForRanges(*this, [&](uint64_t begin, uint64_t at, uint64_t count) {
    for (; next < some.size() && some[next].begin < begin + count; ++next) {
      const std::byte* from = values.data() + (at + some[next].begin - begin) * size;
      part.values.insert(part.values.end(), from, from + some[next].size() * size);
    }
  });
  return part;
}

ElementComparison CompareElements(const WrittenValues& result, const WrittenValues& reference,
                                  const Tolerance& tolerance, double element_bound) {
  ElementComparison found;
  const bool stated = tolerance.relative || tolerance.absolute;
  const double rms = RmsOfNumbers(reference);
  const double scale = ElementScale(tolerance, rms);
  const double least = DefaultBudget(reference.dtype, tolerance, rms).element;
  found.bound = stated || !IsFloat(reference.dtype) ? least
                                                    : std::max(element_bound, kRoom * least);
  const uint64_t size = SizeOf(reference.dtype);
  ForRanges(reference, [&](uint64_t begin, uint64_t at, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const bool right = IsFloat(reference.dtype)
                             ? FloatIsRight(
                                   LoadElement(reference.dtype, result.values.data(), at + i),
                                   LoadElement(reference.dtype, reference.values.data(), at + i),
                                   scale, found.bound, found.worst)
                             : std::memcmp(&result.values[(at + i) * size],
                                           &reference.values[(at + i) * size], size) == 0;
      if (!right && found.wrong++ == 0) found.first_wrong = begin + i;
    }
    found.compared += count;
  });
  return found;
}

}  // namespace atunner
