// Device memory for shadow kernels: the cells that hold the twins of values in memory.
//
// How a judge runs a shadow of a task:
//
//     ATUNNER_TRY(auto shadow, shadow::MakeShadow(compiled.ptx));
//     CompiledModule module = compiled;        // same entries and parameters
//     module.ptx = shadow.ptx;
//     module.cubin.clear();                    // the device assembles the PTX
//     ATUNNER_TRY(auto loaded, device.Load(module));
//     // All tensors and workspaces that the kernels use, in one allocation (the arena), each at a
//     // multiple of 256 bytes; inputs are copied into it with Device::CopyWithin.
//     ATUNNER_TRY(auto arena, device.Allocate(bytes));
//     ATUNNER_TRY(auto space, shadow::ShadowSpace::Make(
//         device, {.arena = arena->address(), .arena_bytes = bytes,
//                  .blocks = most blocks of a launch,
//                  .shared_bytes = most static + dynamic shared bytes of a block}));
//     ATUNNER_RETURN_IF_ERROR(space.Attach(*loaded));
//     // Launch every step of the plan in order, with LaunchOptions::check_hazards = false.
//     // Afterwards the arena holds the user's own results, and
//     ATUNNER_TRY(std::vector<double> truth, space.Read(address, DType::kFloat32, count));
//
// A cell of 16 bytes belongs to each 2 bytes of the arena: the cell of address a lies at
// cells() + 8 * (a - arena). It counts only while its `bits` are those in memory, so that values
// written by anyone else (host copies, fills) are exact, and one space serves the steps of a plan.
// Clear the space before the arena is filled anew: the same bits may have been there before.
// A float32 at a uses the cell of a alone. Memory outside the arena has no cells: values read from
// it are exact, and twins stored to it are lost. Memory: 8 bytes for each byte of the arena, and
// 8 * (shared_bytes + 1024) for each block of the largest launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/device/device.h"
#include "atunner/model/value/dtype.h"

namespace atunner::shadow {

/// The twin of a value in memory.
struct Cell {
  double value = 0;
  /// What memory must hold for the cell to count: 4 bytes, or the 2 bytes that were stored. For
  /// memory that float atomics add to: kAtomicFloat32 and so on, which counts always.
  uint32_t bits = 0;
  /// `value` rounded to its type once; or the result of integer instructions on such bits, then
  /// `value` does not round to it and does not count.
  uint32_t rounded = 0;
};
static_assert(sizeof(Cell) == 16);

class ShadowSpace {
 public:
  struct Extent {
    DeviceAddress arena = 0;
    uint64_t arena_bytes = 0;
    uint64_t blocks = 0;        ///< of the largest launch
    uint64_t shared_bytes = 0;  ///< static and dynamic, of the largest block; 0 = none is used
  };
  /// Bytes that Make allocates.
  static uint64_t BytesFor(const Extent& extent);
  /// Allocates the cells and clears them. kUnavailable when there is not enough memory. `device`
  /// must outlive the space.
  static Result<ShadowSpace> Make(Device& device, const Extent& extent);

  /// Tells a module made by MakeShadow where the cells are; once after each Load.
  Status Attach(LoadedModule& module) const;
  /// Forgets all twins: before memory of the arena is filled anew.
  Status Clear();
  /// `count` elements of the arena at `from` as the shadow has them: the twin where there is one,
  /// else the value in memory. For integers: the value in memory.
  Result<std::vector<double>> Read(DeviceAddress from, DType type, uint64_t count) const;
  DeviceAddress cells() const { return cells_->address(); }

 private:
  ShadowSpace(Device& device, const Extent& extent) : device_(&device), extent_(extent) {}

  Device* device_;
  Extent extent_;
  std::unique_ptr<Buffer> cells_, shared_;
};

}  // namespace atunner::shadow
