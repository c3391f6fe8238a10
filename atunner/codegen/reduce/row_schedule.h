// A schedule of the row kernels, and an estimate of the time it takes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"

namespace atunner {

/// The properties of an operator.
struct RowKernel {
  std::string_view name;
  std::string_view text;
  int64_t tensors;       ///< tensors that are read row by row
  int64_t parameters;    ///< values per column: weight, bias
  int64_t part_bytes;    ///< bytes that a part of a split row leaves for the second kernel
  int64_t instructions;  ///< approximate number per element of a 16-bit row
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
  /// True if a block has work while the blocks of a row wait for each other.
  bool defers() const { return prefetch == 2 && cluster > 1; }
};

/// Kernel, task and device that a schedule is for.
struct RowTask {
  const RowKernel& kernel;
  const DeviceProfile& profile;
  int64_t cols;
  int64_t element;  ///< bytes
  double bytes;     ///< bytes that the whole task must move
  const CostConstants& costs = CostsOf(profile);

  /// SMs on which clusters find room side by side. GPCs are of different sizes: an H200's 132 SMs
  /// hold 66 clusters of 2, 30 of 4, 15 of 8 and 7 of 16 at one block per SM
  /// (cuOccupancyMaxActiveClusters). A persistent grid must not be larger.
  int64_t ClusterSms(int64_t cluster) const {
    if (cluster <= 2) return profile.sms;
    return profile.sms * (cluster <= 8 ? costs.row_cluster8_sms : costs.row_cluster16_sms) /
           costs.row_cluster_all_sms;
  }
  /// Groups of blocks that a persistent grid has, each with rows of its own.
  int64_t ResidentGroups(const RowChoice& choice) const {
    return std::max<int64_t>(1, choice.blocks_per_sm * ClusterSms(choice.cluster) / choice.parts());
  }
  /// Dynamic shared memory that the blocks of an SM may take, beside the static one.
  int64_t SharedForRows() const { return profile.shared_per_block - 8192; }

  /// A rough time in ns: traffic, the waste of bandwidth, and the part of a block's pauses that
  /// other blocks do not fill.
  double Estimate(const RowChoice& choice) const {
    const double per_thread = Real(cols) / Real(choice.threads * choice.parts());
    const double idle = std::ceil(per_thread / Real(choice.vector)) * Real(choice.vector) /
                        per_thread;
    const double work = RowBytes() * (Tensors() + 1) * Real(choice.rows) / Real(choice.parts()) *
                        Real(ClusterSms(choice.cluster)) / profile.dram_gbps;
    return bytes * Passes(choice) / (Tensors() + 1) * Narrow(choice) * (0.5 + 0.5 * idle) *
           Stretch(choice, work) * Lean(choice, per_thread) * Stays(choice) / profile.dram_gbps;
  }

 private:
  double Tensors() const { return Real(kernel.tensors); }
  double RowBytes() const { return Real(cols * element); }

  /// Passes of one tensor over DRAM: each tensor once, the result, and the rows, parameters and
  /// column sums that are read or written again.
  double Passes(const RowChoice& choice) const {
    const double tensors = Tensors();
    double passes = tensors + 1;
    // Rows that are read again come from L2 where the rows in flight fit, at a price.
    const double in_flight = RowBytes() * tensors * profile.sms * Resident(choice) *
                             Real(choice.rows) / Real(choice.parts());
    const bool cached = choice.split == 1 &&
                        in_flight < costs.row_l2_share * Real(profile.l2_bytes);
    if (choice.storage == "reload") passes += tensors * (cached ? costs.row_l2_pass : 1.0);
    if (kernel.gradients && !choice.fused) passes += tensors;
    // Each group writes a partial column sum, which the last step reads.
    const double rows = bytes / (tensors + 1) / RowBytes(), groups = Real(ResidentGroups(choice));
    if (choice.fused) passes += 16 / Real(element) * std::min(groups / rows, 1 / Real(choice.rows));
    // Parameters that every row reads again come from L2 where shared memory leaves L1 little room.
    const double again = RowBytes() > costs.row_long_bytes ? 1.0
                         : kernel.gradients                ? costs.row_parameters_gradient
                                                           : 0.0;
    if (!choice.keep)
      passes += again * (kernel.gradients ? 1.0 : costs.row_parameters_forward) *
                Real(kernel.parameters);
    return passes;
  }
  /// The factor of narrow accesses.
  double Narrow(const RowChoice& choice) const {
    const double width = Real(choice.vector * element);
    const double half = kernel.gradients ? costs.row_vector8_gradient : costs.row_vector8;
    return width >= 16  ? 1.0
           : width >= 8 ? half
           : width >= 4 ? costs.row_vector4
                        : costs.row_vector2;
  }
  /// The factor of a thread's share of a row, of clusters and of rows in shared memory.
  double Lean(const RowChoice& choice, double per_thread) const {
    const double best = kernel.gradients && element == 2 && choice.cluster >= 4
                            ? costs.row_thread_bytes_gradient
                            : costs.row_thread_bytes;
    const double off = std::fabs(std::log2(per_thread * Real(element) * Tensors() / best));
    return 1 + costs.row_thread_bytes_off * off +
           costs.row_cluster_step * std::log2(Real(choice.cluster)) +
           (choice.storage != "shared" ? 0.0
            : Parks(choice)            ? Parked(per_thread)
            : choice.prefetch > 0      ? costs.row_shared_prefetch
                                       : costs.row_shared);
  }
  /// Parks() says where this may be negative, a gain.
  double Parked(double per_thread) const {
    return costs.row_parked_off *
               std::fabs(std::log2(per_thread * Real(element) / costs.row_parked_thread_bytes)) -
           (RowBytes() > costs.row_parked_short_bytes ? costs.row_parked_long
                                                      : costs.row_parked_short);
  }
  /// The factor of persistent blocks. Single blocks that end with their rows were 3 to 13 % faster
  /// on an H200, up to 16 384 columns; less where a cluster waits while it writes the rows before.
  /// One tensor's rows of up to 64 KB in registers were 11 % faster without a cluster.
  double Stays(const RowChoice& choice) const {
    const bool ends = Ends(choice) && (cols <= costs.row_end_columns || Parks(choice));
    if (ends || choice.fused) return 1.0;
    const bool alone = choice.cluster == 1 && kernel.tensors == 1 && cols > costs.row_end_columns &&
                       RowBytes() <= costs.row_register_bytes && choice.storage == "registers";
    return alone             ? costs.row_persist_alone
           : choice.defers() ? costs.row_persist_deferred
                             : costs.row_persist;
  }
  /// True if a single block ends with its rows (no persistent grid).
  static bool Ends(const RowChoice& choice) {
    return choice.blocks_per_sm == 0 && choice.cluster == 1;
  }
  /// True for rows that a block keeps in shared memory ("parked") where registers would leave room
  /// for fewer threads: long rows of 16 bits, and shorter ones of layernorm. With 64 bytes of a
  /// tensor per thread they are 2 to 4 % faster on an H200.
  bool Parks(const RowChoice& choice) const {
    const int64_t row_bytes = cols * element;
    const bool parked = kernel.parameters == 2 && cols >= costs.row_park_columns &&
                        row_bytes <= costs.row_park_bytes;
    const bool longer = element == 2 && row_bytes >= costs.row_park_16bit_bytes &&
                        row_bytes * kernel.tensors <= costs.row_park_16bit_all_bytes;
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

  /// The factor by which a group takes longer than `work`, the ns of its traffic at the SM's share
  /// of bandwidth. An SM has the traffic and the instructions of all its blocks; a block's own
  /// steps follow each other, except for prefetched and deferred ones; while other blocks pause,
  /// the traffic of a block that ends with its rows takes a third. The constants fit rows of 16
  /// 384, 65 536 and 262 144 elements on an H200.
  double Stretch(const RowChoice& choice, double work) const {
    const double blocks = Resident(choice);
    const double lanes_per_ns = costs.row_lanes_busy * 128.0 * profile.clock_ghz;
    const double instructions = Real(cols * choice.rows * kernel.instructions) /
                                Real(choice.parts()) / lanes_per_ns;
    const double sums = choice.fused ? costs.row_sums_fused_ns +
                                           costs.row_sums_fused_thread_ns * Real(choice.block())
                                     : costs.row_sums_ns +
                                           costs.row_sums_step_ns * std::log2(Real(choice.block()));
    const double chain = sums + (choice.cluster > 1 ? costs.row_cluster_ns : 0);
    const double alone = instructions + (choice.defers() ? costs.row_deferred_share : 1.0) * chain +
                         (choice.prefetch == 0
                              ? costs.row_first_load_ns +
                                    (Ends(choice) ? costs.row_ending_traffic : 1.0) * work
                              : 0);
    const double longest = std::max({work * blocks, instructions * blocks, alone});
    const auto share = [&](double part) { return std::pow(part / longest, costs.row_overlap); };
    return longest *
           std::pow(share(work * blocks) + share(instructions * blocks) + share(alone),
                    1.0 / costs.row_overlap) /
           (work * blocks);
  }
};

}  // namespace atunner
