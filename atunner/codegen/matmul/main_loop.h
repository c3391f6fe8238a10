// How a block multiplies its tiles: one class per instruction. Products and convolutions are
// written once and take any of them (product_template.h).
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/wgmma_text.h"

namespace atunner {

class MainLoop {
 public:
  virtual ~MainLoop() = default;
  /// True if tensor cores multiply 16 or 8 bits; else float32 is multiplied by FMA.
  virtual bool OnTensorCores() const { return true; }
  /// True if blocks may go on from tile to tile (persistent blocks). Such loops leave registers for
  /// as many blocks as an SM may hold.
  virtual bool Persists() const { return false; }
  /// tile_m, tile_n, tile_k first; then the loop's own parameters; `stages`, the number of buffers,
  /// is last.
  virtual std::vector<Parameter> Parameters() const = 0;
  /// The constraints of this loop on any device.
  virtual std::vector<Constraint> Constraints() const = 0;
  /// Configurations worth starting from: values of Parameters().
  virtual std::vector<std::vector<int64_t>> Starts() const = 0;
  /// Expressions over the parameters: warps of a block; registers of a thread; bytes of shared
  /// memory.
  virtual std::string Warps() const = 0;
  virtual std::string Registers() const = 0;
  /// Registers of a block, in units of 128: each quarter of an SM has a quarter of the registers
  /// and of the warps.
  virtual std::string RegistersOfBlock() const;
  virtual std::string SharedBytes() const = 0;
  /// The share of the dense peak that `resident` blocks per SM reach when L2 and DRAM do not limit.
  virtual double Efficiency(const Chosen& chosen, int64_t resident,
                            const DeviceProfile& profile) const = 0;
  /// ns from one tile's last product to the next one's first in a persistent block.
  virtual double TurnNs(const Chosen&, const CostConstants& costs) const {
    return costs.gemm_persistent_turn_ns;
  }
  /// The source, and the constants that it expects besides the tile's.
  virtual void AddConstants(const Chosen& chosen, ConstantBlock& constants) const = 0;
  virtual std::string Text(const Chosen& chosen) const = 0;
};

/// Fused multiply-adds of float32 (kernels/families/matmul/simt_tile.cuh); `b_transposed`: b is
/// stored as [n][k].
const MainLoop& SimtLoop(bool b_transposed);
/// mma.sync, from Ampere on (kernels/families/matmul/mma_loop.cuh).
const MainLoop& MmaLoop();
/// wgmma, on Hopper, where every thread copies (kernels/families/matmul/wgmma_loop.cuh).
const MainLoop& WgmmaLoop();
/// wgmma, on Hopper, where tensor maps copy (kernels/families/matmul/maps_loop.cuh): operands of
/// 16-byte aligned rows.
const MainLoop& MapsLoop(Operands operands = Operands::k16Bits);
/// The fastest loop of the device for 16 bits where every thread copies.
const MainLoop& CopyingLoop(const DeviceProfile& profile);

}  // namespace atunner
