// Executes PTX. A Program is decoded once and shared; a launch runs its blocks on all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/machine_code.h"
#include "atunner/ptx/module.h"
#include "atunner/vgpu/memory/memory.h"
#include "atunner/vgpu/timing/counts.h"
#include "atunner/vgpu/timing/op_cost.h"

namespace atunner::vgpu {

struct ExecOptions {
  /// Shared-memory races, initialisation, barriers; bounds are checked always
  bool check_hazards = true;
  /// Also races in global memory, unwritten local memory and registers
  bool check_global = false;
  uint8_t groups = kAllHazards;  ///< HazardGroups to report; memory always
  /// Collect the hazards of all blocks: one per kind and operation, counted
  bool keep_going = false;
  bool count = false;            ///< fill Counts beyond instruction numbers (sectors, conflicts)
  bool count_lines = false;      ///< fill ExecResult::lines; needs `count`
  bool timeline = false;         ///< fill Counts::path; needs `count`
  double deadline_seconds = 60;  ///< wall clock time of the launch
  uint64_t max_warp_instructions_per_block = uint64_t{1} << 33;
  uint64_t max_warp_instructions = ~uint64_t{0};  ///< of all blocks together
  bool log_writes = false;                        ///< fill LaunchOutcome::written
  unsigned threads = 0;  ///< 0 = all cores
  /// Linear indices; empty = the whole grid. Counted ones wait for no others
  std::vector<uint64_t> blocks;
  Latencies latencies;     ///< for the timelines of blocks
  uint32_t registers = 0;  ///< registers of a thread; 0 = no limit
  /// Machine code of the kernel for the timelines; nullptr = they assume an order of instructions
  const MachineCode* machine_code = nullptr;
  /// Blocks of the launch that run at once. Blocks that poll memory for each other need it.
  uint64_t resident_blocks = 4096;
  uint64_t l1_sectors = ~uint64_t{0};  ///< sectors of 32 bytes that L1 holds per resident block
};

struct ExecResult {
  LaunchOutcome outcome;
  Counts counts;
  LineCounts lines;
};

/// A module decoded for execution with its globals in `memory`.
class Program {
 public:
  virtual ~Program() = default;
  /// `params` are packed as the kernel's parameter list is.
  virtual ExecResult Run(const std::string& entry, const LaunchShape& shape,
                         std::span<const std::byte> params, const ExecOptions& options) const = 0;
  /// Byte offset and size of each parameter; empty optional when there is no such kernel.
  virtual const ptx::Function* FindEntry(const std::string& entry) const = 0;
  virtual Result<std::pair<uint64_t, uint64_t>> FindSymbol(const std::string& name) const = 0;
  /// Allocations of kernels that were not freed, as hazards of kind kLeak.
  virtual std::vector<Hazard> Leaks() const = 0;
  /// A digest of the contents of all `.global` variables.
  virtual uint64_t StateFingerprint() const = 0;
};

/// kUnsupported names the first opcode or form that the engine lacks, with its PTX line. `memory`
/// must outlive the program.
Result<std::unique_ptr<Program>> LoadProgram(ptx::ValidModule module, Memory& memory);

/// Opcodes of the table, for documentation and `doctor`.
std::vector<std::string> SupportedOpcodes();

}  // namespace atunner::vgpu
