// How a block multiplies its tiles on tensor cores: one class per instruction. Products and convolutions are written
// once and take any of them (tensor_template.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/codegen/product_template.h"

namespace atunner {

/// A configuration whose values are asked for by name.
struct Chosen {
  const ParameterSpace& space;
  const Configuration& configuration;
  int64_t operator[](const char* name) const { return GetInt(space, configuration, name); }
};

class MainLoop {
 public:
  virtual ~MainLoop() = default;
  /// tile_m, tile_n, tile_k first; then what is the loop's own; `stages`, the number of buffers, is last.
  virtual std::vector<Parameter> Parameters() const = 0;
  /// What this loop rules out on any device.
  virtual std::vector<Constraint> Constraints() const = 0;
  /// Schedules worth starting from: values of Parameters().
  virtual std::vector<std::vector<int64_t>> Starts() const = 0;
  /// Expressions over the parameters: warps of a block; registers of a thread; columns that one warp holds.
  virtual std::string Warps() const = 0;
  virtual std::string Registers() const = 0;
  virtual std::string WarpColumns() const = 0;
  /// Share of the dense tensor-core peak that `resident` blocks per SM reach when L2 and DRAM do not limit.
  virtual double Efficiency(const Chosen& chosen, int64_t resident, const DeviceProfile& profile) const = 0;
  /// Blocks per SM that the compiler must leave registers for.
  virtual int64_t LaunchBound(const Chosen& chosen, int64_t resident) const = 0;
  /// The source, and the constants that it expects besides the tile's.
  virtual void AddConstants(const Chosen& chosen, ConstantBlock& constants) const = 0;
  virtual std::string Text(const Chosen& chosen) const = 0;
};

/// mma.sync, from Ampere on (kernels/families/mma_loop.cuh).
const MainLoop& MmaLoop();
/// wgmma, on Hopper (kernels/families/wgmma_loop.cuh).
const MainLoop& WgmmaLoop();
/// The fastest that the device has.
const MainLoop& MainLoopFor(const DeviceProfile& profile);

}  // namespace atunner
