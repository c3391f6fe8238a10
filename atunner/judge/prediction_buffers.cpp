#include "atunner/judge/prediction_buffers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/verify/inputs/host_fill.h"
#include "atunner/verify/launch/poison.h"

namespace atunner {
namespace {

constexpr uint64_t kFilledBytes = uint64_t{512} << 20;
/// Elements are drawn one by one up to this size; what lies behind consists of pieces of it.
constexpr uint64_t kDrawnBytes = uint64_t{8} << 20;
/// Poison is drawn once. The tile of each candidate consists of pieces of it.
constexpr uint64_t kDrawnPoisonBytes = uint64_t{4} << 20;
constexpr uint64_t kPoisonPieceBytes = uint64_t{16} << 10;
constexpr uint64_t kPageBytes = 4096;
/// Pages of a tile of poison: 1 to 2 MiB, an odd number, which is drawn.
constexpr uint64_t kLeastTilePages = 257;
constexpr uint64_t kMoreTilePages = 256;
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
constexpr uint64_t kLeastPieceBytes = uint64_t{256} << 10;

/// Writes the elements of a chunk; `seed` is the chunk's own.
using DrawChunk = std::function<void(std::span<std::byte> chunk, uint64_t first, uint64_t seed)>;

/// Draws `bytes` bytes of elements, chunk by chunk, on all cores.
std::vector<std::byte> Draw(uint64_t bytes, size_t element_bytes, const DrawChunk& draw) {
  std::vector<std::byte> drawn(bytes);
  const uint64_t secret = SecretBits();
  const uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  const uint64_t workers = std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, chunks);
  const auto work = [&](uint64_t worker) {
    for (uint64_t chunk = worker; chunk < chunks; chunk += workers) {
      const uint64_t at = chunk * kChunkBytes;
      draw(std::span(drawn).subspan(at, std::min(kChunkBytes, bytes - at)), at / element_bytes,
           Mix64(secret + chunk));
    }
  };
  std::vector<std::jthread> threads;
  for (uint64_t worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
  work(0);
  return drawn;
}

/// Copies `drawn` to `address`, and then pieces of it of random begins and lengths, so that nothing
/// repeats at a distance that a kernel could know.
Status CopyPieces(PredictingDevice& device, DeviceAddress address, uint64_t bytes,
                  std::span<const std::byte> drawn, uint64_t element_bytes) {
  Random random(SecretBits());
  std::span<const std::byte> piece = drawn.first(std::min<uint64_t>(bytes, drawn.size()));
  for (uint64_t at = 0; at < bytes;) {
    piece = piece.first(std::min<uint64_t>(piece.size(), bytes - at));
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(address + at, piece));
    at += piece.size();
    const uint64_t most = drawn.size() / element_bytes;
    const uint64_t least = std::min(kLeastPieceBytes / element_bytes, most);
    const uint64_t length = least + random.Below(most - least + 1);
    piece = drawn.subspan(random.Below(most - length + 1) * element_bytes, length * element_bytes);
  }
  return {};
}

double DrawElement(const ArgSpec& arg, uint64_t index, Random& random) {
  const Fill& fill = arg.fill;
  const bool is_float = IsFloat(arg.dtype);
  switch (fill.kind) {
    case Fill::Kind::kUniform: {
      const double value = random.Uniform(fill.low, fill.high);
      return is_float ? value : std::floor(value);
    }
    case Fill::Kind::kConstant:
      return fill.low;
    case Fill::Kind::kIota:
      return static_cast<double>(index);
    case Fill::Kind::kFamilies: {
      if (is_float) return static_cast<double>(static_cast<float>(random.Normal()));
      // as JudgeKernels::FillTensor draws integers without a stated range
      const bool is_signed = KindOf(arg.dtype) == DTypeKind::kSigned;
      return std::floor(random.Uniform(is_signed ? -8 : 0, arg.dtype == DType::kBool ? 2 : 9));
    }
    default:
      return 0;
  }
}

Status FillInput(PredictingDevice& device, const TaskBuffers::Tensor& tensor) {
  const ArgSpec& arg = *tensor.spec;
  if (FillsFromHost(arg.fill)) {
    ATUNNER_TRY(const auto data, HostFill(arg, tensor.elements()));
    return device.CopyIn(tensor.address, data);
  }
  const size_t size = SizeOf(arg.dtype);
  const auto bytes = std::min(static_cast<uint64_t>(tensor.shape.bytes), kFilledBytes);
  // An iota has no pieces that could stand elsewhere.
  const uint64_t most = arg.fill.kind == Fill::Kind::kIota ? kFilledBytes : kDrawnBytes;
  const auto drawn = Draw(
      std::min(bytes, most), size, [&](std::span<std::byte> chunk, uint64_t first, uint64_t seed) {
        Random random(seed);
        for (size_t i = 0; i < chunk.size() / size; ++i)
          StoreElement(arg.dtype, chunk.data(), i, DrawElement(arg, first + i, random));
      });
  return CopyPieces(device, tensor.address, bytes, drawn, size);
}

/// A tile for `bytes` bytes of memory: pieces of `drawn` from random elements on.
std::vector<std::byte> TileOf(std::span<const std::byte> drawn, uint64_t bytes) {
  Random random(SecretBits());
  const uint64_t pages = (kLeastTilePages + random.Below(kMoreTilePages)) | 1;
  std::vector<std::byte> tile(std::min(pages * kPageBytes, bytes));
  for (uint64_t at = 0; at < tile.size(); at += kPoisonPieceBytes) {
    const uint64_t piece = std::min(kPoisonPieceBytes, tile.size() - at);
    const uint64_t from = random.Below((drawn.size() - piece) / sizeof(double) + 1);
    std::memcpy(tile.data() + at, drawn.data() + from * sizeof(double), piece);
  }
  return tile;
}

}  // namespace

Result<PredictionBuffers> PredictionBuffers::Make(PredictingDevice& device,
                                                  const KernelSpec& spec) {
  ATUNNER_TRY(TaskBuffers tensors, TaskBuffers::Allocate(device, spec, spec.dims, 0));
  for (const TaskBuffers::Tensor& tensor : tensors.tensors()) {
    device.MarkContents(tensor.address, static_cast<uint64_t>(tensor.shape.bytes), true);
    if (tensor.is_input()) ATUNNER_RETURN_IF_ERROR(FillInput(device, tensor));
  }
  ATUNNER_RETURN_IF_ERROR(tensors.PutAddresses());
  return PredictionBuffers(device, std::move(tensors));
}

Status PredictionBuffers::FillPoison(DeviceAddress address, DType dtype, uint64_t bytes) {
  std::vector<std::byte>& drawn = drawn_[dtype];
  if (drawn.empty()) {
    const auto poison = atunner::Poison::Fresh();
    drawn = Draw(kDrawnPoisonBytes, SizeOf(dtype),
                 [&](std::span<std::byte> chunk, uint64_t first, uint64_t) {
                   WritePoison(poison, dtype, first, chunk);
                 });
  }
  const uint64_t filled = std::min(bytes, kFilledBytes);
  if (filled != 0)
    ATUNNER_RETURN_IF_ERROR(device_->FillTiled(address, filled, TileOf(drawn, filled)));
  device_->MarkContents(address, bytes, true);  // predictions check nothing
  return {};
}

Status PredictionBuffers::Poison(const BoundPlan& plan) {
  for (const TaskBuffers::Tensor& tensor : tensors_.tensors()) {
    if (!tensor.is_poisoned()) continue;
    ATUNNER_RETURN_IF_ERROR(
        FillPoison(tensor.address, tensor.spec->dtype, static_cast<uint64_t>(tensor.shape.bytes)));
  }
  for (const auto& memory : plan.workspaces)
    ATUNNER_RETURN_IF_ERROR(FillPoison(memory->address(), DType::kFloat32, memory->bytes()));
  return {};
}

}  // namespace atunner
