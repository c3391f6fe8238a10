// 8×8 matrices of 16-bit elements: ldmatrix, stmatrix, movmatrix.
#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Reads one aligned row of 16 bytes through the ordinary checks: an 8×8 matrix row belongs to one
/// lane's address.
bool MatrixRow(BlockState& x, const Op& op, int lane, const uint32_t*& row) {
  uint64_t address = AddressOf(x, op, lane);
  if ((address & kWindowMask) == kSharedWindow) address &= ~kWindowMask;
  if (address % 16 != 0) {
    Report(x, op, Hazard::Kind::kMisaligned, lane,
           "matrix row address " + std::to_string(address) + " is not a multiple of 16");
    return false;
  }
  if (address + 16 > x.shared.bytes.size()) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "matrix row at shared address " + std::to_string(address) + ", the block has " +
               std::to_string(x.shared.bytes.size()));
    return false;
  }
  row = reinterpret_cast<const uint32_t*>(x.shared.bytes.data() + address);
  if (!x.checks.any) return true;
  for (uint64_t w = address / 4; w < address / 4 + 4; ++w) {
    if (x.shadow.only_read_in[w] == x.shadow.epoch) continue;
    SharedShadow& s = x.shadow.words[w];
    if (s.in_flight & (kThreadCopy | kBulkCopy)) {
      Report(x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
             "matrix load reads bytes of an asynchronous copy that was not waited for");
      return false;
    }
    if (s.initialised != 0xf)
      ReportUnwritten(x, op, lane,
                      "matrix load reads shared memory before anything was written there");
    if ((s.in_flight & kStrongWrite) != 0 && !CheckAgainstStrong(x, op, lane, w, false))
      return false;
    const bool own_warp = s.writer < kProductAccessor && s.writer / kLanes == x.warp->index;
    if (!own_warp && WriteUnordered(x, s, static_cast<uint16_t>(x.ThreadOf(lane)))) {
      const bool bulk = s.writer == kBulkAccessor;
      Report(x, op, bulk ? Hazard::Kind::kAsyncCopyInFlight : Hazard::Kind::kRace, lane,
             "matrix load reads what " +
                 (bulk ? "a bulk copy" : "thread " + std::to_string(s.writer)) + " wrote at line " +
                 std::to_string(s.write_line) + " with no " + (bulk ? "wait" : "barrier") +
                 " between");
      return false;
    }
    NoteReader(x, w, static_cast<uint16_t>(x.ThreadOf(lane)), LineOf(x, op));
  }
  return true;
}

void CountMatrixRows(BlockState& x, const uint32_t* const* rows, int matrices) {
  x.counting.total.shared.requests += 1;
  x.timing.touch = {Touch::Level::kShared, static_cast<uint32_t>(matrices)};
  for (int i = 0; i < matrices; ++i) {
    int banks[32] = {};
    int worst = 1;
    for (int r = 0; r < 8; ++r) {
      const auto word = static_cast<uint64_t>(reinterpret_cast<const std::byte*>(rows[i * 8 + r]) -
                                              x.shared.bytes.data()) /
                        4;
      for (uint64_t k = 0; k < 4; ++k) worst = std::max(worst, ++banks[(word + k) % 32]);
    }
    x.counting.total.shared.wavefronts += static_cast<uint64_t>(worst);
  }
}

void LoadMatrix(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const int matrices = op.list_size;
  const uint32_t* rows[kLanes] = {};
  for (int r = 0; r < matrices * 8; ++r) {
    if (!MatrixRow(x, op, r, rows[r])) return;
  }
  const bool transposed = op.variant & 1;
  for (int i = 0; i < matrices; ++i) {
    uint32_t* d = x.Slot(x.kernel->lists[op.list + static_cast<size_t>(i)]);
    for (int l = 0; l < kLanes; ++l) {
      const int g = l / 4;
      const int t = l % 4;
      if (!transposed) {
        d[l] = rows[i * 8 + g][t];
      } else {  // lane holds column g, rows 2t and 2t + 1
        const auto half = [&](int r) {
          return (rows[i * 8 + r][g / 2] >> (16 * (g % 2))) & 0xffffu;
        };
        d[l] = half(2 * t) | half(2 * t + 1) << 16;
      }
    }
  }
  if (x.counting.enabled) CountMatrixRows(x, rows, matrices);
}

/// Lane l holds row l / 4, columns 2 (l % 4) and the next, of each matrix (column and rows when
/// transposed).
void StoreMatrix(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const bool transposed = op.variant & 1;
  for (int i = 0; i < op.list_size; ++i) {
    const uint32_t* s = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)]);
    uint16_t rows[8][8];
    for (int l = 0; l < kLanes; ++l) {
      for (int h = 0; h < 2; ++h) {
        const auto value = static_cast<uint16_t>(s[l] >> (16 * h));
        (transposed ? rows[l % 4 * 2 + h][l / 4] : rows[l / 4][l % 4 * 2 + h]) = value;
      }
    }
    for (int r = 0; r < 8; ++r) {
      const int lane = i * 8 + r;
      uint64_t address = AddressOf(x, op, lane) & ~kWindowMask;
      if (!CheckAligned(x, op, lane, address, 16)) return;
      std::byte* to = WindowPointer(x, op, lane, Space::kShared, address, 16, "matrix store");
      if (to == nullptr) return;
      if (x.checks.any) ShadowWrite(x, op, lane, address, 16, false, false);
      std::memcpy(to, rows[r], 16);
    }
  }
  if (x.counting.enabled)
    ++x.counting.total.shared.requests, x.counting.total.shared.wavefronts += op.list_size;
}

void TransposeMatrix(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const uint32_t* s = x.Source(op.src[0]);
  uint32_t d[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    d[l] = 0;
    for (int h = 0; h < 2; ++h) {
      const int row = l % 4 * 2 + h;  // of the source: column l / 4
      const uint32_t word = s[row * 4 + l / 8];
      d[l] |= (word >> (16 * (l / 4 % 2)) & 0xffffu) << (16 * h);
    }
  }
  std::memcpy(x.Slot(op.dst), d, sizeof d);
}

}  // namespace

bool WholeWarp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t missing = ~mask;
  if (missing == 0) return true;
  Report(x, op, Hazard::Kind::kInvalidShuffle, std::countr_zero(missing),
         "does not take part in a matrix instruction");
  return false;
}

Handler MatrixHandler(const Form& form, Op& op) {
  if (!form.Has("m8n8") || !form.Has("b16")) return nullptr;
  op.variant = form.Has("trans");
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ldmatrix") return LoadMatrix;
  if (opcode == "stmatrix") return StoreMatrix;
  return form.Has("trans") ? TransposeMatrix : nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
