#include "atunner/codegen/row_schedule.h"

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"

namespace atunner {
namespace {

constexpr int64_t kMostRing = 12;

}  // namespace

int64_t RowTask::ResidentGroups(const RowChoice& choice) const {
  return std::max<int64_t>(1, choice.blocks_per_sm * ClusterSms(choice.cluster) / choice.parts());
}

int64_t RowTask::RowBytesOfBlock(const RowChoice& choice) const {
  const int64_t vectors = CeilDiv(CeilDiv(cols, choice.vector), choice.parts());
  return CeilDiv(vectors, choice.threads) * choice.threads * choice.vector * element;
}

int64_t RowTask::Ring(const RowChoice& choice) const {
  const int64_t batch = choice.batch * kernel.tensors * RowBytesOfBlock(choice);
  return std::min(kMostRing, SharedForRows() / choice.blocks_per_sm / batch);
}

/// Blocks that an SM holds, from registers, shared memory and threads.
double RowTask::Resident(const RowChoice& choice) const {
  const int64_t per_thread = CeilDiv(cols, choice.threads * choice.parts());
  const int64_t tensor_bytes = per_thread * element * kernel.tensors;
  const int64_t sum_bytes = choice.owners > 1 ? 16 : 8;  // owners keep what they settled apart
  const int64_t sums =
      choice.fused ? sum_bytes * std::max<int64_t>(0, per_thread - choice.shared_sums * choice.vector) : 0;
  const int64_t held = choice.storage == "registers" ? per_thread * HeldBytes() : 0;
  const int64_t affine = choice.keep ? kernel.parameters * per_thread * element : 0;
  const int64_t registers = (held + sums + affine) / 4 + kOtherRegisters;
  const int64_t copies =
      choice.owners > 1 ? choice.batch * kLeastRing : (choice.storage == "shared" ? 1 : 0) + choice.prefetch;
  const int64_t shared = choice.block() * (copies * tensor_bytes + 8 * choice.shared_sums * choice.vector) + 2048;
  const int64_t most = std::min(
      {int64_t{65536} / (registers * choice.block()), profile.shared_per_sm / shared, int64_t{2048} / choice.block()});
  return Real(std::max<int64_t>(1, choice.blocks_per_sm > 0 ? std::min(most, choice.blocks_per_sm) : most));
}

/// How much longer than `work`, the ns that a group's traffic takes at the SM's share of bandwidth, a group takes. An
/// SM has the traffic and the instructions of all its blocks; a block goes through its turn in sequence, but for what
/// it prefetches and defers. The constants fit rows of 65 536 and 262 144 elements on an H200.
double RowTask::Stretch(const RowChoice& choice, double work) const {
  const double blocks = Resident(choice);
  if (choice.owners > 1) return StretchOfOwners(choice, work, blocks);
  const double lanes_per_ns = 0.75 * 128.0 * profile.clock_ghz;
  const double instructions = Real(cols * choice.rows * kernel.instructions) / Real(choice.parts()) / lanes_per_ns;
  const double chain = 300 + 100 * std::log2(Real(choice.block())) + (choice.cluster > 1 ? 900 : 0);
  const bool deferred = choice.prefetch == 2 && choice.cluster > 1;
  const double alone = instructions + (deferred ? 0.2 : 1.0) * chain + (choice.prefetch == 0 ? 800 + work : 0);
  const double longest = std::max({work * blocks, instructions * blocks, alone});
  const auto share = [&](double part) { return std::pow(part / longest, 4); };
  return longest * std::pow(share(work * blocks) + share(instructions * blocks) + share(alone), 0.25) / (work * blocks);
}

/// The same where blocks own columns: on an H200, rows of 262 144 elements, a batch took 0.46 us, each row of 16 KB in
/// it 0.6 us, every further thread of an SM 0.25 ns; memory gave four fifths of its peak, and two blocks' sums took
/// another kernel.
double RowTask::StretchOfOwners(const RowChoice& choice, double work, double blocks) const {
  const double together = 464 / Real(choice.batch) + 0.0371 * Real(kernel.tensors * RowBytesOfBlock(choice));
  const double threads = std::max(0.0, Real(choice.block()) * blocks - 256);
  const double sums = blocks > 1 ? 1.02 : 1.0;
  return sums * (std::max(1.25 * work * blocks, together) + 0.25 * threads * blocks) / (work * blocks);
}

double RowTask::Estimate(const RowChoice& choice) const {
  const double tensors = Real(kernel.tensors);
  double passes = tensors + 1;
  // What is read again comes from L2 where the rows in flight fit, at a price.
  const double row_bytes = Real(cols * element);
  const double in_flight =
      row_bytes * tensors * profile.sms * Resident(choice) * Real(choice.rows) / Real(choice.parts());
  const bool cached = choice.split == 1 && in_flight < 0.7 * Real(profile.l2_bytes);
  if (choice.storage == "reload") passes += tensors * (cached ? 0.7 : 1.0);
  if (kernel.gradients && !choice.fused) passes += tensors;
  // Parameters that every row reads again come from L2 where shared memory leaves L1 little room.
  const double again = row_bytes > 65536 ? 1.0 : kernel.gradients ? 0.25 : 0.0;
  if (!choice.keep) passes += again * (kernel.gradients ? 1.0 : 0.5) * Real(kernel.parameters);
  const double width = Real(choice.vector * element);
  const double half = kernel.gradients ? 0.97 : 1.02;  // column sums leave few registers for wide vectors
  const double narrow = width >= 16 ? 1.0 : width >= 8 ? half : width >= 4 ? 1.1 : 1.6;
  const double per_thread = Real(cols) / Real(choice.threads * choice.parts());
  const double idle = std::ceil(per_thread / Real(choice.vector)) * Real(choice.vector) / per_thread;
  const double work = row_bytes * (tensors + 1) * Real(choice.rows) / Real(choice.parts()) *
                      Real(ClusterSms(choice.cluster)) / profile.dram_gbps;
  // About 128 bytes per thread, shared among the tensors, measured best on an H200 from 4k to 64k columns; 256 for
  // column sums of short elements in clusters of four and eight.
  const double best = kernel.gradients && element == 2 && choice.cluster >= 4 ? 256.0 : 128.0;
  const double off = std::fabs(std::log2(per_thread * Real(element * choice.batch) * tensors / best));
  const double lean = 1 + 0.03 * off + 0.002 * Real(choice.shared_sums) + 0.01 * std::log2(Real(choice.cluster)) +
                      (choice.storage == "shared" ? 0.02 : 0.0);
  return bytes * passes / (tensors + 1) * narrow * (0.5 + 0.5 * idle) * Stretch(choice, work) * lean /
         profile.dram_gbps;
}

}  // namespace atunner
