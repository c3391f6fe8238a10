// The judge's device code, compiled and loaded on one device (source: kernels/judge/judge.cu).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/input_family.h"

namespace atunner {

/// How an output differs from its reference.
struct CompareStats {
  double squared_difference = 0;
  double squared_reference = 0;
  double sum_reference = 0;
  double squared_reference_second_half = 0;
  double fourth_difference = 0;  ///< sum of (y - r)⁴
  double along_reference = 0;    ///< sum of (y - r) · r
  double squared_along = 0;      ///< sum of ((y - r) · r)²
  double worst = 0;              ///< largest |y - r| / (|r| + rms(r))
  uint64_t finite = 0;
  uint64_t unwritten = 0;
  uint64_t lost_nan = 0;
  uint64_t new_nonfinite = 0;
  uint64_t beyond = 0;
  uint64_t unsure = 0;        ///< normal numbers that err by more than a rounding of them
  uint64_t lost = 0;          ///< normal numbers of which not even the first two bits are right
  uint64_t undetermined = 0;  ///< elements that a choice may take beyond the bound
  uint64_t first_bad = ~uint64_t{0};
  uint64_t elements = 0;
  double scale = 0;  ///< what |r| was increased by in an element's error

  /// ‖y - r‖ / ‖r‖ over the finite elements, or, where r is zero, the rms of y over `scale`; 1e300
  /// for what is beyond numbers: squares that overflow, no scale.
  double RelativeNorm() const;
  /// What y is too large by as a whole, g of y ≈ (1 + g) · r: in it errors that are rounding
  /// average out.
  double Gain() const;
  /// What independent errors of these sizes and of either sign add to the gain: their root mean
  /// square.
  double LuckOfGain() const;
  /// How many elements that err alike would make up ‖y - r‖.
  double Erring() const;
  /// The larger error of two runs against the same reference, the other's `times` over.
  void TakeLarger(const CompareStats& other, double times = 1);
};

/// What honest kernels may have in place of the elements of a reference because a choice may go
/// another way: differences from it, so that they do not give it away. Mirrors Choices in judge.cu.
struct ChoiceSlots {
  static constexpr int32_t kRange = 2;   ///< of numbers: the least and the largest
  static constexpr int32_t kPlaces = 8;  ///< of places: each one that was seen
  DeviceAddress address = 0;
  int32_t slots = 0;  ///< float64 values of each element; 0 = nothing depends on a choice
};

struct CompareRequest {
  DeviceAddress data = 0;
  DType dtype = DType::kFloat32;
  DeviceAddress reference = 0;  ///< float64, masked with `key` (0 = plain)
  uint64_t elements = 0;
  uint64_t key = 0;
  double scale = 0;  ///< rms of the reference
  double element_bound = 1e300;
  bool poison_counts = true;
  ChoiceSlots choices;
};

struct MemoryRange {
  DeviceAddress address = 0;
  uint64_t bytes = 0;
};

/// What the judge's and the reference kernels are compiled for: the virtual GPU runs PTX, and to
/// assemble it takes longer than to compile it.
std::string ArchitectureFor(const Device& device);

class JudgeKernels {
 public:
  static Result<std::unique_ptr<JudgeKernels>> Make(Device& device, Compiler& compiler);

  /// Draws one tensor of an instance. `position` is the argument's index in the spec.
  Status FillTensor(DeviceAddress address, const ArgSpec& arg, uint64_t elements, size_t position,
                    const InputInstance& instance);
  /// Moves about three quarters of a float32 or float64 tensor's finite elements, and an eighth of
  /// a 16-bit one's, by one unit in the last place; the same call moves them back.
  Status Nudge(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed);
  /// Moves floats either way: of float32 and float64 by up to two units in the last place, half of
  /// 16-bit ones by one.
  Status Shift(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed);
  /// Notes in `request.choices` what a run whose choices are its own has at `request.data`;
  /// `fixed`: the same run with the plain kernel's choices.
  Status NoteChoices(const CompareRequest& request, DeviceAddress fixed);
  /// Rounds float64 to float32 and float32 to TF32; other types stay.
  Status Narrow(DeviceAddress address, DType dtype, uint64_t elements);
  Result<uint64_t> Fingerprint(DeviceAddress address, uint64_t bytes);
  /// Of several, with one wait for all.
  Result<std::vector<uint64_t>> Fingerprints(std::span<const MemoryRange> ranges);
  /// For each zone of `bytes` bytes the offset of the first that is not `byte`; nullopt where all
  /// are.
  Result<std::vector<std::optional<uint64_t>>> FirstChanges(std::span<const DeviceAddress> zones,
                                                            uint64_t bytes, uint8_t byte);
  /// Puts the fingerprint's kernel into the stream; `slot` receives kFingerprintBlocks partial
  /// sums.
  Status EnqueueFingerprint(TimedDevice& device, DeviceAddress address, uint64_t bytes,
                            DeviceAddress slot);
  Status Mask(DeviceAddress reference, uint64_t elements, uint64_t key);
  Status Widen(DeviceAddress data, DType dtype, uint64_t elements, DeviceAddress wide);
  Result<CompareStats> Compare(const CompareRequest& request);

  static constexpr uint32_t kFingerprintBlocks = 256;

 private:
  JudgeKernels(Device& device) : device_(device) {}
  Status Run(const std::string& entry, uint64_t elements, uint32_t block,
             std::vector<KernelArg> args, uint32_t grid = 0);

  /// Every instance sees the same contents, so they are made once and stay on the device.
  Status CopyHostFill(DeviceAddress address, const ArgSpec& arg, uint64_t elements);

  Device& device_;
  std::unique_ptr<LoadedModule> module_;
  std::unique_ptr<Buffer> scratch_;
  std::map<std::string, std::unique_ptr<Buffer>> host_fills_;
  uint64_t host_fill_bytes_ = 0;
};

}  // namespace atunner
