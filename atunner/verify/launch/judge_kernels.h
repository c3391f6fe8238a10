// The judge's device code, compiled and loaded on one device (source: kernels/judge/judge.cu).
#pragma once

#include <cstddef>
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
#include "atunner/verify/inputs/input_family.h"
#include "atunner/verify/launch/poison.h"

namespace judge {
struct Fill;
}

namespace atunner {

/// How an output y differs from its reference r, over all its elements. "Normal" elements are those
/// whose reference is surely a normal number: of the output's type, and of float32 on the way.
struct CompareStats {
  double squared_difference = 0;
  double squared_reference = 0;
  double sum_reference = 0;
  double squared_reference_second_half = 0;
  double fourth_difference = 0;  ///< sum of (y - r)⁴
  double along_reference = 0;    ///< sum of (y - r) · r
  double squared_along = 0;      ///< sum of ((y - r) · r)²
  double worst = 0;              ///< largest |y - r| / (|r| + rms(r))
  uint64_t finite = 0;           ///< elements that were compared numerically
  uint64_t unwritten = 0;        ///< elements that still hold the poison
  uint64_t lost_nan = 0;         ///< elements that are numbers although r is NaN
  uint64_t new_nonfinite = 0;    ///< elements that are NaN or infinite although r is representable
  uint64_t beyond = 0;           ///< elements whose error exceeds CompareRequest::element_bound
  uint64_t inexact = 0;          ///< normal elements that err by more than a rounding of the result
  uint64_t lost_digits = 0;      ///< normal elements that err by more than a quarter of r
  uint64_t undetermined = 0;  ///< elements that a data-dependent decision may move beyond the bound
  uint64_t first_bad = ~uint64_t{0};  ///< smallest index of a wrong element; ~0 if there is none
  uint64_t elements = 0;
  double scale = 0;  ///< the s of an element's error |y - r| / (|r| + s)

  /// ‖y - r‖ / ‖r‖ over the finite elements or, where r is zero, rms(y) / scale. 1e300 where
  /// squares overflow or there is no scale.
  double RelativeNorm() const;
  /// The b of y ≈ (1 + b)·r: Σ (y - r)·r / Σ r². Roundings to nearest average out in it.
  double Bias() const;
  /// Standard deviation of Bias() if the errors are independent and of either sign.
  double BiasSamplingError() const;
  /// (Σd²)² / Σd⁴ of the differences d: how many elements with equal errors would give the same
  /// norm. 1 if a single element errs.
  double ErringElements() const;
  /// Keeps the larger errors of two runs against the same reference; the other's count `times`
  /// over.
  void TakeLarger(const CompareStats& other, double times = 1);
  /// Adds the statistics of another part of the same output.
  void AddPart(const CompareStats& part);
};

/// Values that other correct kernels may have in place of the reference's, because a data-dependent
/// decision (argmax, comparison, rounding to an integer) may go another way. They are stored as
/// differences from the reference, so that they do not reveal it. Mirrors Choices in judge.cu.
struct DecisionSlots {
  static constexpr int32_t kRange = 2;    ///< slots of a number: the smallest and the largest value
  static constexpr int32_t kIndices = 8;  ///< slots of an index: each value that was seen
  DeviceAddress address = 0;
  int32_t slots = 0;  ///< float64 values per element; 0 = no decision in the task
};

struct CompareRequest {
  DeviceAddress data = 0;
  DType dtype = DType::kFloat32;
  DeviceAddress reference = 0;  ///< masked with `key` (0 = plain)
  uint64_t elements = 0;
  uint64_t key = 0;
  double scale = 0;  ///< rms of the reference
  double element_bound = 1e300;
  /// What filled the output before the run; elements that still hold it are unwritten. nullopt:
  /// nothing did
  std::optional<Poison> poison;
  DecisionSlots decisions;
  /// Type of the reference's elements: float64, or the output's own if these are 64-bit integers
  DType reference_dtype = DType::kFloat64;
  uint64_t first = 0;  ///< number of the first element of `data` in the output, if it is a part
  uint64_t total = 0;  ///< elements of the whole output; 0 = `elements`
  /// A NaN in place of an infinity is right: another formula may subtract infinities
  bool nan_for_infinite = false;
};

/// An output of two runs on equal inputs.
struct TwoRuns {
  DeviceAddress first = 0;
  DeviceAddress second = 0;
  DType dtype = DType::kFloat32;
  uint64_t elements = 0;
  /// What filled it before each run; nullopt: nothing did
  std::optional<Poison> first_poison;
  std::optional<Poison> second_poison;
};

/// Elements that differ between two runs, bit by bit.
struct RunDifference {
  uint64_t differing = 0;         ///< without the unwritten ones
  uint64_t first = ~uint64_t{0};  ///< smallest index of a differing element; ~0 if there is none
  uint64_t unwritten = 0;         ///< elements that hold the poison of both runs
};

struct MemoryRange {
  DeviceAddress address = 0;
  uint64_t bytes = 0;
};

/// Target of the judge's and the reference kernels: "compute_90" on the virtual GPU, which runs PTX
/// (assembling it would take longer than compiling), "sm_90" on a real one.
std::string ArchitectureFor(const Device& device);

class JudgeKernels {
 public:
  static Result<std::unique_ptr<JudgeKernels>> Make(Device& device, Compiler& compiler);

  /// Draws the contents of one tensor of an instance. `position` is the argument's index in the
  /// spec. On the virtual GPU small tensors are drawn once and then copied: every candidate gets
  /// the same instances, and drawing takes as long as a candidate's run.
  Status FillTensor(DeviceAddress address, const ArgSpec& arg, uint64_t elements, size_t position,
                    const InputInstance& instance);
  /// Moves about three quarters of a float32 or float64 tensor's finite elements, and an eighth of
  /// a 16-bit one's, by one unit in the last place; the same call moves them back.
  Status Nudge(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed);
  /// Moves floats up or down: float32 and float64 by up to two units in the last place, half of the
  /// 16-bit ones by one unit.
  Status Shift(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed);
  /// Records in `request.decisions` the values of a run that took its own decisions
  /// (`request.data`), where they differ from those of `fixed`, the same run with the baseline's
  /// decisions.
  Status RecordDecisions(const CompareRequest& request, DeviceAddress fixed);
  /// Rounds float64 to float32 and float32 to TF32; other types stay.
  Status Narrow(DeviceAddress address, DType dtype, uint64_t elements);
  Result<uint64_t> Fingerprint(DeviceAddress address, uint64_t bytes);
  /// Fingerprints of several ranges, with one synchronisation for all.
  Result<std::vector<uint64_t>> Fingerprints(std::span<const MemoryRange> ranges);
  /// For each zone of `bytes` bytes the offset of the first byte that is not `byte`; nullopt if the
  /// zone is intact.
  Result<std::vector<std::optional<uint64_t>>> FirstChanges(std::span<const DeviceAddress> zones,
                                                            uint64_t bytes, uint8_t byte);
  /// Enqueues the fingerprint kernel into the stream without waiting; `slot` receives
  /// kFingerprintBlocks partial sums of 8 bytes.
  Status EnqueueFingerprint(TimedDevice& device, DeviceAddress address, uint64_t bytes,
                            DeviceAddress slot);
  /// XORs a float64 reference with `key`; the same call unmasks it.
  Status Mask(DeviceAddress reference, uint64_t elements, uint64_t key);
  /// Fills memory with poison.
  Status FillPoison(DeviceAddress address, DType dtype, uint64_t elements, const Poison& poison);
  /// Makes a reference of an output: float64, but 64-bit integers stay what they are. Elements that
  /// hold the poison are marked as left unwritten. Returns their number: if it is not 0, a second
  /// run and ConfirmUnwritten must tell them from results that are equal to the poison.
  Result<uint64_t> Widen(DeviceAddress data, DType dtype, uint64_t elements, DeviceAddress wide,
                         const std::optional<Poison>& poison = {});
  /// `data` is the output of a second run, filled before it with `poison`, the flipped one of the
  /// first: elements that do not hold it were written after all, and `wide` gets their values.
  Status ConfirmUnwritten(DeviceAddress data, DType dtype, uint64_t elements, DeviceAddress wide,
                          const Poison& poison);
  Result<RunDifference> Difference(const TwoRuns& runs);
  /// Compares an output with its reference, both in device memory.
  Result<CompareStats> Compare(const CompareRequest& request);

  static constexpr uint32_t kFingerprintBlocks = 256;

 private:
  JudgeKernels(Device& device) : device_(device) {}
  Status Run(const std::string& entry, uint64_t elements, uint32_t block,
             std::vector<KernelArg> args, uint32_t grid = 0);

  /// Fingerprints of ranges whose partial sums fit into the scratch memory, appended to `prints`.
  Status FingerprintBatch(std::span<const MemoryRange> ranges, std::vector<uint64_t>& prints);
  /// Puts the mined values that fit the tensor and its range into the fill, in device memory.
  Status AddMined(const MinedValues& values, DType dtype, judge::Fill& fill);
  /// Runs judge_fill, or copies what an equal call drew.
  Status DrawOnce(const judge::Fill& fill, uint64_t bytes);
  /// Copies a fill that the host computes. All instances share its contents, so that they are made
  /// once and kept on the device, in at most a quarter of its free memory.
  Status CopyHostFill(DeviceAddress address, const ArgSpec& arg, uint64_t elements);
  /// The same with other values near them, see Vary().
  Status CopyVariedFill(DeviceAddress address, const ArgSpec& arg, uint64_t elements,
                        uint64_t seed);

  Device& device_;
  std::unique_ptr<LoadedModule> module_;
  std::unique_ptr<Buffer> scratch_;
  std::map<std::string, std::unique_ptr<Buffer>> host_fills_;
  uint64_t host_fill_bytes_ = 0;
  std::map<std::vector<uint64_t>, std::unique_ptr<Buffer>> mined_;
  /// Drawn tensors by the bytes of the fill, which names its table of mined values by its address
  std::map<std::string, std::vector<std::byte>> drawn_;
  uint64_t drawn_bytes_ = 0;
};

}  // namespace atunner
