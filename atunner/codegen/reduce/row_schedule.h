// A schedule of the row kernels, and an estimate of the time it takes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "atunner/codegen/template/bound_template.h"

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
  Chosen at;
  int64_t threads = at["threads_per_row"], rows = at["rows_per_block"], vector = at["vector"];
  std::string storage = at.Word("storage");
  int64_t blocks_per_sm = at["blocks_per_sm"], cluster = at["cluster"], split = at["split"];
  int64_t prefetch = at["prefetch"];
  bool keep = at["keep"] != 0, fused = at["fused"] != 0;

  int64_t block() const { return threads * rows; }
  int64_t parts() const { return cluster * split; }
  /// Is there something to do while the blocks of a row wait for each other?
  bool defers() const { return prefetch == 2 && cluster > 1; }
};

/// Kernel, task and device that a schedule is for.
struct RowTask {
  const RowKernel& kernel;
  const DeviceProfile& profile;
  int64_t cols;
  int64_t element;  ///< bytes
  double bytes;     ///< that the whole task must move

  /// SMs on which clusters find room side by side. GPCs are of different sizes: an H200's 132 SMs
  /// hold 66 clusters of 2, 30 of 4, 15 of 8 and 7 of 16 at one block per SM
  /// (cuOccupancyMaxActiveClusters). A persistent grid must not be larger.
  int64_t ClusterSms(int64_t cluster) const {
    return cluster <= 2 ? profile.sms : profile.sms * (cluster <= 8 ? 120 : 112) / 132;
  }
  /// Groups of blocks that a persistent grid has, each with rows of its own.
  int64_t ResidentGroups(const RowChoice& choice) const {
    return std::max<int64_t>(1, choice.blocks_per_sm * ClusterSms(choice.cluster) / choice.parts());
  }
  /// Dynamic shared memory that the blocks of an SM may take, beside the static one.
  int64_t SharedForRows() const { return profile.shared_per_block - 8192; }

  /// A rough time in ns: traffic, what wastes bandwidth, and how much of a block's pauses other
  /// blocks fill.
  double Estimate(const RowChoice& choice) const {
    const double tensors = Real(kernel.tensors);
    double passes = tensors + 1;
    // What is read again comes from L2 where the rows in flight fit, at a price.
    const double row_bytes = Real(cols * element);
    const double in_flight = row_bytes * tensors * profile.sms * Resident(choice) *
                             Real(choice.rows) / Real(choice.parts());
    const bool cached = choice.split == 1 && in_flight < 0.7 * Real(profile.l2_bytes);
    if (choice.storage == "reload") passes += tensors * (cached ? 0.7 : 1.0);
    if (kernel.gradients && !choice.fused) passes += tensors;
    // Each group's share of the column sums is written, and read by who adds them up.
    const double rows = bytes / (tensors + 1) / row_bytes, groups = Real(ResidentGroups(choice));
    if (choice.fused) passes += 16 / Real(element) * std::min(groups / rows, 1 / Real(choice.rows));
    // Parameters that every row reads again come from L2 where shared memory leaves L1 little room.
    const double again = row_bytes > 65536 ? 1.0 : kernel.gradients ? 0.25 : 0.0;
    if (!choice.keep) passes += again * (kernel.gradients ? 1.0 : 0.5) * Real(kernel.parameters);
    const double width = Real(choice.vector * element);
    // column sums leave few registers for wide vectors
    const double half = kernel.gradients ? 0.97 : 1.02;
    const double narrow = width >= 16 ? 1.0 : width >= 8 ? half : width >= 4 ? 1.1 : 1.6;
    const double per_thread = Real(cols) / Real(choice.threads * choice.parts());
    const double idle = std::ceil(per_thread / Real(choice.vector)) * Real(choice.vector) /
                        per_thread;
    const double work = row_bytes * (tensors + 1) * Real(choice.rows) / Real(choice.parts()) *
                        Real(ClusterSms(choice.cluster)) / profile.dram_gbps;
    // About 128 bytes per thread, shared among the tensors, measured best on an H200 from 4k to 64k
    // columns; 256 for column sums of short elements in clusters of four and eight.
    const double best = kernel.gradients && element == 2 && choice.cluster >= 4 ? 256.0 : 128.0;
    const double off = std::fabs(std::log2(per_thread * Real(element) * tensors / best));
    const double lean = 1 + 0.03 * off + 0.01 * std::log2(Real(choice.cluster)) +
                        (choice.storage != "shared" ? 0.0
                         : Parks(choice)
                             ? 0.08 * std::fabs(std::log2(per_thread * Real(element) / 64)) -
                                   (row_bytes > 16384 ? 0.02 : 0.05)
                         : choice.prefetch > 0 ? 0.02
                                               : 0.2);
    // Single blocks that end with their rows were 3 to 13 % faster on an H200 than ones that stay,
    // up to 16 384 columns; less where a cluster's wait for each other is filled by writing the
    // rows before. One tensor's rows of up to 64 KB in registers were 11 % faster without a
    // cluster.
    const bool ends = Ends(choice) && (cols <= 16384 || Parks(choice));
    const bool alone = choice.cluster == 1 && kernel.tensors == 1 && cols > 16384 &&
                       row_bytes <= 65536 && choice.storage == "registers";
    const double stays = ends || choice.fused ? 1.0 : alone ? 1.09 : choice.defers() ? 1.12 : 1.17;
    return bytes * passes / (tensors + 1) * narrow * (0.5 + 0.5 * idle) * Stretch(choice, work) *
           lean * stays / profile.dram_gbps;
  }

 private:
  /// Does a single block end with its rows?
  static bool Ends(const RowChoice& choice) {
    return choice.blocks_per_sm == 0 && choice.cluster == 1;
  }
  /// Long rows of 16 bits, and shorter ones of layernorm, that such blocks keep in shared memory,
  /// where registers would leave room for fewer of their threads: with 64 bytes of a tensor per
  /// thread 2 to 4 % faster on an H200.
  bool Parks(const RowChoice& choice) const {
    const int64_t row_bytes = cols * element;
    const bool parked = kernel.parameters == 2 && cols >= 4096 && row_bytes <= 16384;
    const bool longer = element == 2 && row_bytes >= 32768 && row_bytes * kernel.tensors <= 65536;
    return Ends(choice) && choice.storage == "shared" && (parked || longer);
  }
  /// Blocks that an SM holds, from registers, shared memory and threads.
  double Resident(const RowChoice& choice) const {
    const int64_t per_thread = CeilDiv(cols, choice.threads * choice.parts());
    const int64_t tensor_bytes = per_thread * element * kernel.tensors;
    const int64_t sums = choice.fused ? 8 * per_thread : 0;
    const int64_t affine = choice.keep ? kernel.parameters * per_thread * element : 0;
    const int64_t registers = ((choice.storage == "registers" ? tensor_bytes : 0) + sums + affine) /
                                  4 +
                              kOtherRegisters;
    const int64_t copies = (choice.storage == "shared" ? 1 : 0) + choice.prefetch;
    const int64_t shared = choice.block() * copies * tensor_bytes + 2048;
    const int64_t most = std::min({int64_t{65536} / (registers * choice.block()),
                                   profile.shared_per_sm / shared, int64_t{2048} / choice.block()});
    return Real(std::max<int64_t>(
        1, choice.blocks_per_sm > 0 ? std::min(most, choice.blocks_per_sm) : most));
  }

  /// How much longer than `work`, the ns that a group's traffic takes at the SM's share of
  /// bandwidth, a group takes. An SM has the traffic and the instructions of all its blocks; a
  /// block goes through its turn in sequence, but for what it prefetches and defers; while others
  /// pause, the traffic of one that ends with its rows takes a third. The constants fit rows of 16
  /// 384, 65 536 and 262 144 elements on an H200.
  double Stretch(const RowChoice& choice, double work) const {
    const double blocks = Resident(choice);
    const double lanes_per_ns = 0.75 * 128.0 * profile.clock_ghz;
    const double instructions = Real(cols * choice.rows * kernel.instructions) /
                                Real(choice.parts()) / lanes_per_ns;
    const double sums = choice.fused ? 180 + 1.1 * Real(choice.block())
                                     : 300 + 100 * std::log2(Real(choice.block()));
    const double chain = sums + (choice.cluster > 1 ? 900 : 0);
    const double alone = instructions + (choice.defers() ? 0.2 : 1.0) * chain +
                         (choice.prefetch == 0 ? 800 + (Ends(choice) ? 0.3 : 1.0) * work : 0);
    const double longest = std::max({work * blocks, instructions * blocks, alone});
    const auto share = [&](double part) { return std::pow(part / longest, 4); };
    return longest *
           std::pow(share(work * blocks) + share(instructions * blocks) + share(alone), 0.25) /
           (work * blocks);
  }
};

}  // namespace atunner
