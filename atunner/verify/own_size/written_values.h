// Values of the elements that a launch wrote, and their comparison element by element on the host.
//
// At a task's own size on the virtual GPU an output may have billions of elements of which few are
// computed. Only these are kept: ranges of indices, and their values one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Elements from `begin` to before `end` of a tensor.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

uint64_t SizeOf(std::span<const ElementRange> ranges);

/// The elements of `tensor` all of whose bytes are in `written` (LaunchOutcome::written).
std::vector<ElementRange> WrittenElements(const TaskBuffers::Tensor& tensor,
                                          std::span<const AddressRange> written);

/// Elements that are in both lists, which are in ascending order.
std::vector<ElementRange> Common(std::span<const ElementRange> a, std::span<const ElementRange> b);
/// Elements of `all` that are not in `some`.
std::vector<ElementRange> Without(std::span<const ElementRange> all,
                                  std::span<const ElementRange> some);

/// Values of some elements of one output.
struct WrittenValues {
  DType dtype = DType::kFloat32;
  std::vector<ElementRange> elements;
  std::vector<std::byte> values;  ///< of all ranges one after another

  static Result<WrittenValues> Read(Device& device, const TaskBuffers::Tensor& tensor,
                                    std::vector<ElementRange> elements);
  /// The part of it in `some`, which must be a part of `elements`.
  WrittenValues Part(std::span<const ElementRange> some) const;
};

/// How results differ from those of the kernel as given.
struct ElementComparison {
  uint64_t compared = 0;
  uint64_t wrong = 0;
  uint64_t first_wrong = 0;  ///< index in the tensor; meaningless if none is wrong
  double worst = 0;          ///< largest |y - r| / (|r| + scale) of the numbers
  double bound = 0;          ///< that was allowed; 0 = equality
};

/// Compares values of the same elements. Integers must be equal, NaN and infinities must be where
/// the reference has them, numbers must be within `element_bound` of it, relative to |r| + rms(r),
/// but at least within four times DefaultBudget; the task's own tolerance replaces both.
ElementComparison CompareElements(const WrittenValues& result, const WrittenValues& reference,
                                  const Tolerance& tolerance, double element_bound);

}  // namespace atunner
