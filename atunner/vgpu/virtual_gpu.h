// The virtual GPU as a Device.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "atunner/device/device.h"
#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/timing/estimate.h"

namespace atunner::vgpu {

class VirtualGpu : public PredictingDevice {
 public:
  /// `threads` 0 = all cores.
  explicit VirtualGpu(DeviceProfile profile, unsigned threads = 0);

  const DeviceProfile& profile() const override { return profile_; }
  Evidence evidence() const override { return Evidence::kPredicted; }
  std::string arch() const override { return profile_.Arch(); }
  bool checks_bounds() const override { return true; }

  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override;
  Status CopyIn(DeviceAddress to, std::span<const std::byte> from) override;
  Status CopyOut(std::span<std::byte> to, DeviceAddress from) override;
  Status CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) override;
  Status Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) override;
  Status FillTiled(DeviceAddress to, uint64_t bytes, std::span<const std::byte> tile) override;
  Result<uint64_t> FreeBytes() override { return memory_.free_bytes(); }
  void MarkContents(DeviceAddress address, uint64_t bytes, bool written) override {
    memory_.MarkDefined(address, bytes, written);
  }

  Result<TensorMap> EncodeTensorMap(const TensorMapSpec& spec) override;
  Result<std::unique_ptr<Texture>> CreateTexture(const TextureSpec& spec,
                                                 std::span<const std::byte> texels) override;
  Result<std::unique_ptr<LoadedModule>> Load(const CompiledModule& module) override;
  Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule& module,
                                                        const std::string& symbol) override;
  Result<std::optional<uint64_t>> StateFingerprint(LoadedModule& module) override;
  Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry,
                               const LaunchShape& shape, std::span<const KernelArg> args,
                               const LaunchOptions& options) override;
  /// Enables the check of uninitialised reads (Memory::Track).
  void TrackMemory() { memory_.Track(); }
  /// Enables the check of races in global memory only, at less cost.
  void TrackRaces() { memory_.TrackRaces(); }
  /// Lets kernels use host memory (Memory::Adopt); nullptr when some of it is known already.
  std::unique_ptr<Buffer> Adopt(DeviceAddress address, uint64_t bytes);
  /// Allocations and textures, for those who look at memory without a launch.
  const Memory& memory() const { return memory_; }
  /// The declaration of a kernel, by its mangled name or its name in the module's resources;
  /// nullptr if there is none.
  const ptx::Function* FindEntry(const LoadedModule& module, const std::string& entry) const;
  /// Texels of the texture or surface with this handle; empty if there is none.
  std::span<std::byte> Texels(uint64_t handle);
  /// Sets the name of an allocation in reports.
  void SetName(DeviceAddress address, const std::string& name) { memory_.SetName(address, name); }
  /// Allocations of the module's kernels that were not freed.
  std::vector<Hazard> Leaks(const LoadedModule& module) const;
  /// The same as Launch, with counts in total and per line of the source.
  Result<ExecResult> LaunchCounted(LoadedModule& module, const std::string& entry,
                                   const LaunchShape& shape, std::span<const KernelArg> args,
                                   const LaunchOptions& options);
  Result<Prediction> Predict(LoadedModule& module, const KernelResources& resources,
                             const LaunchShape& shape, std::span<const KernelArg> args,
                             const Predecessors& earlier) override;
  Result<LaunchOutcome> Complete(LoadedModule& module, const std::string& entry,
                                 const LaunchShape& shape, std::span<const KernelArg> args,
                                 std::span<const uint64_t> executed) override;

  /// Sets the constants of the time model, which by default follow from the profile.
  void Calibrate(Calibration calibration) { calibration_ = std::move(calibration); }
  /// Sets a function that gets the input of each estimate.
  void Observe(std::function<void(const EstimateInput&)> observer) {
    observer_ = std::move(observer);
  }

 private:
  /// A launch that was predicted, and of whose blocks only a sample has run.
  struct Unfinished {
    LoadedModule* module = nullptr;
    std::string entry;
    LaunchShape shape;
    std::vector<KernelArg> args;
    std::vector<uint64_t> executed;
    Allocations stored;       ///< allocations that it writes
    double instructions = 0;  ///< of warps, of all blocks
  };
  /// Completes earlier launches whose results decide about the work of this one. False if that
  /// would take too long.
  Result<bool> CompleteWhatDecides(const Program& program, const std::string& mangled,
                                   std::span<const std::byte> params);

  Status CheckRange(DeviceAddress address, uint64_t bytes) const;
  /// Sizes of the allocations that pointers and tensor maps among the arguments refer to, by
  /// address.
  std::map<uint64_t, double> Named(std::span<const KernelArg> args) const;
  Result<LaunchOutcome> Refuse(const LaunchShape& shape, const ptx::Function* entry,
                               const std::string& name, std::span<const KernelArg> args) const;

  /// Options of a launch that predicts, without machine code and sample.
  ExecOptions PredictionOptions(const KernelResources& resources, const LaunchShape& shape,
                                const Occupancy& occupancy) const;

  /// What special registers tell a launch that begins now.
  SystemFacts FactsOf(const ptx::Function& entry, const LaunchShape& shape, uint64_t seed);

  Result<ExecResult> Execute(LoadedModule& module, const std::string& entry,
                             const LaunchShape& shape, std::span<const KernelArg> args,
                             const LaunchOptions& options, bool count);

  /// The parsed text of a module. The judge loads every candidate twice in a row.
  Result<ptx::ValidModule> Parsed(const std::string& text);

  DeviceProfile profile_;
  Calibration calibration_;
  unsigned threads_;
  Memory memory_;
  uint64_t launches_ = 0;
  uint64_t booted_ns_ = 0;  ///< since 1970
  uint64_t now_ns_ = 0;     ///< when the next launch begins: launches take their modelled time
  std::function<void(const EstimateInput&)> observer_;
  std::string last_text_;  ///< of the last module
  ptx::ValidModule last_module_;
  std::vector<Unfinished> unfinished_;  ///< since the last launch without predecessors
};

}  // namespace atunner::vgpu
