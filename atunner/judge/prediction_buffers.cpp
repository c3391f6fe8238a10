#include "atunner/judge/prediction_buffers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/verify/inputs/host_fill.h"

namespace atunner {
namespace {

constexpr uint64_t kFilledBytes = uint64_t{512} << 20;
/// Elements are drawn one by one up to this size; what lies behind consists of pieces of it.
constexpr uint64_t kDrawnBytes = uint64_t{64} << 20;
/// Poison is cheaper to notice and needed for every candidate, so that less of it is drawn.
constexpr uint64_t kDrawnPoisonBytes = uint64_t{4} << 20;
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

Status FillPoison(PredictingDevice& device, DeviceAddress address, DType dtype, uint64_t bytes) {
  const Poison poison = Poison::Fresh();
  const size_t size = SizeOf(dtype);
  const uint64_t filled = std::min(bytes, kFilledBytes) / size * size;
  const auto drawn = Draw(std::min(filled, kDrawnPoisonBytes), size,
                          [&](std::span<std::byte> chunk, uint64_t first, uint64_t) {
                            WritePoison(poison, dtype, first, chunk);
                          });
  // Predictions check nothing; so pieces need no records of what was written.
  device.MarkContents(address, bytes, true);
  return filled == 0 ? Status{} : CopyPieces(device, address, filled, drawn, size);
}

}  // namespace

Result<TaskBuffers> MakePredictionBuffers(PredictingDevice& device, const KernelSpec& spec) {
  ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(device, spec, spec.dims, 0));
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    device.MarkContents(tensor.address, static_cast<uint64_t>(tensor.shape.bytes), true);
    if (tensor.is_input()) ATUNNER_RETURN_IF_ERROR(FillInput(device, tensor));
  }
  ATUNNER_RETURN_IF_ERROR(buffers.PutAddresses());
  return buffers;
}

Status PoisonForPrediction(PredictingDevice& device, const TaskBuffers& buffers,
                           const BoundPlan& plan) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_poisoned()) continue;
    ATUNNER_RETURN_IF_ERROR(FillPoison(device, tensor.address, tensor.spec->dtype,
                                       static_cast<uint64_t>(tensor.shape.bytes)));
  }
  for (const auto& memory : plan.workspaces)
    ATUNNER_RETURN_IF_ERROR(
        FillPoison(device, memory->address(), DType::kFloat32, memory->bytes()));
  return {};
}

}  // namespace atunner
