// A schedule of the row kernels, and an estimate of the time it takes.
#pragma once

#include <string>
#include <string_view>

#include "atunner/model/device_profile.h"

namespace atunner {

/// What distinguishes the operators.
struct RowKernel {
  std::string_view name;
  std::string_view text;
  int64_t tensors;       ///< that are read row by row
  int64_t parameters;    ///< values per column: weight, bias
  int64_t part_bytes;    ///< what one part of a split row leaves for the second kernel
  int64_t instructions;  ///< per element of a row in 16 bits, about
  bool gradients;        ///< of the parameters: sums over each column
};

/// Registers that addresses, reductions and temporaries take beside the kept elements.
constexpr int64_t kOtherRegisters = 32;

/// Values of a configuration, by the names of their parameters.
struct RowChoice {
  int64_t threads, rows, vector;
  std::string storage;
  int64_t unroll, blocks_per_sm, cluster, owners, split, batch, shared_sums, prefetch;
  bool keep, stream, fused;

  int64_t block() const { return threads * rows; }
  int64_t parts() const { return cluster * owners * split; }
};

/// Kernel, task and device that a schedule is for.
struct RowTask {
  const RowKernel& kernel;
  const DeviceProfile& profile;
  int64_t cols;
  int64_t element;  ///< bytes
  double bytes;     ///< that the whole task must move

  /// Registers of one column's elements, in bytes. Exponentials are held in float32.
  int64_t HeldBytes() const { return kernel.name == "softmax" ? 4 : kernel.tensors * element; }
  /// SMs on which clusters find room side by side. GPCs are of different sizes: an H200's 132 SMs hold 66 clusters of
  /// 2, 30 of 4, 15 of 8 and 7 of 16 at one block per SM (cuOccupancyMaxActiveClusters). A persistent grid must not be
  /// larger.
  int64_t ClusterSms(int64_t cluster) const {
    return cluster <= 2 ? profile.sms : profile.sms * (cluster <= 8 ? 120 : 112) / 132;
  }
  /// Groups of blocks that a persistent grid has, each with rows of its own.
  int64_t ResidentGroups(const RowChoice& choice) const;
  /// Batches that a block which owns columns has under way; the space holds only schedules with room for kLeastRing.
  static constexpr int64_t kLeastRing = 4;
  int64_t Ring(const RowChoice& choice) const;
  /// Of those the ones that are being copied; the others wait for what was found about them, which takes longer.
  int64_t Ahead(const RowChoice& choice) const { return Ring(choice) < 12 ? 2 : 3; }
  /// Rows that blocks which own columns may tell each other of at a time, as layernorm_backward_owners.cuh counts them.
  int64_t ExchangedRows(const RowChoice& choice) const { return (Ring(choice) - Ahead(choice) + 1) * choice.batch; }
  /// Dynamic shared memory that the blocks of an SM may take, beside the static one.
  int64_t SharedForRows() const { return profile.shared_per_block - 8192; }

  /// What a block makes room for, of one row of one tensor: whole vectors of all its threads.
  int64_t RowBytesOfBlock(const RowChoice& choice) const;

  /// A rough time in ns: traffic, what wastes bandwidth, and how much of a block's pauses other blocks fill.
  double Estimate(const RowChoice& choice) const;

 private:
  double Resident(const RowChoice& choice) const;
  double Stretch(const RowChoice& choice, double work) const;
  double StretchOfOwners(const RowChoice& choice, double work, double blocks) const;
};

}  // namespace atunner
