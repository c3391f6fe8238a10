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
#include "atunner/vgpu/analysis/work_slice.h"
#include "atunner/vgpu/memory/memory.h"
#include "atunner/vgpu/state/system_facts.h"
#include "atunner/vgpu/timing/counts.h"
#include "atunner/vgpu/timing/op_cost.h"

namespace atunner::vgpu {

/// What each block of a launch did; blocks that did not run did nothing.
struct WorkLog {
  std::vector<uint64_t> amount;  ///< executions of operations by warps, times their weights
  std::vector<uint64_t> kind;    ///< equal for blocks that executed each operation equally often
};

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
  unsigned threads = 0;                           ///< 0 = all cores
  /// Linear indices; empty = the whole grid. Counted ones wait for no others
  std::vector<uint64_t> blocks;
  /// Seed of a random order of blocks (LaunchOptions::block_order); 0 = ascending
  uint64_t block_order = 0;
  Latencies latencies;     ///< for the timelines of blocks
  uint32_t registers = 0;  ///< registers of a thread; 0 = no limit
  /// Machine code of the kernel for the timelines; nullptr = they assume an order of instructions
  const MachineCode* machine_code = nullptr;
  /// Blocks of the launch that run at once. Blocks that poll memory for each other need it.
  uint64_t resident_blocks = 4096;
  uint64_t l1_sectors = ~uint64_t{0};  ///< sectors of 32 bytes that L1 holds per resident block
  /// Per operation of the kernel, for `work_limit` and ExecResult::work; nullptr = no work is
  /// counted
  const std::vector<uint32_t>* weights = nullptr;
  uint64_t work_limit = ~uint64_t{0};  ///< blocks that run side by side end when they did so much
  SystemFacts system;                  ///< what special registers tell
};

struct ExecResult {
  LaunchOutcome outcome;
  Counts counts;
  LineCounts lines;
  uint64_t work = 0;  ///< of all blocks, by ExecOptions::weights
  /// From the begin of the launch to the end of its last block, by the clocks that kernels can read
  uint64_t elapsed_ns = 0;
};

struct WorkOptions {
  std::vector<uint64_t> blocks;  ///< linear indices; empty = the whole grid
  unsigned threads = 0;          ///< 0 = all cores; 1 = blocks run in the order of their indices
  /// All blocks run side by side, as far as warps of a GPU do, so that they share a queue.
  bool side_by_side = false;
  uint64_t budget = uint64_t{1} << 25;  ///< warp instructions of the launch
  double deadline_seconds = 60;
};

/// The part of a kernel that decides how much work its blocks do, ready to run.
class WorkProbe {
 public:
  virtual ~WorkProbe() = default;
  virtual const WorkSlice& slice() const = 0;
  /// Weights of the kernel's own operations, for ExecOptions: its work is that of the slice.
  virtual const std::vector<uint32_t>& weights() const = 0;
  /// Runs the slice, which writes what it must to global memory. kTimeout when the budget is used
  /// up.
  virtual LaunchOutcome Run(const LaunchShape& shape, std::span<const std::byte> params,
                            const WorkOptions& options, WorkLog& log) const = 0;
};

/// A module decoded for execution with its globals in `memory`.
class Program {
 public:
  virtual ~Program() = default;
  /// `params` are packed as the kernel's parameter list is.
  virtual ExecResult Run(const std::string& entry, const LaunchShape& shape,
                         std::span<const std::byte> params, const ExecOptions& options) const = 0;
  /// The slice of a launch with these parameters. kUnsupported when it cannot be decoded.
  virtual Result<std::unique_ptr<WorkProbe>> Probe(const std::string& entry,
                                                   std::span<const std::byte> params,
                                                   KeptBranches branches) const = 0;
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
