#include "atunner/verify/own_size/own_size_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "atunner/base/random.h"

namespace atunner {
namespace {

constexpr uint64_t kPage = 4096;
/// Elements that the judge's kernels draw; a longer tile repeats pieces of them.
constexpr uint64_t kDrawn = uint64_t{1} << 17;
/// Tensors up to this size have no period.
constexpr uint64_t kSmallBytes = uint64_t{1} << 16;
/// Mappings of one tensor: the system allows a process some 65 thousand.
constexpr uint64_t kMostTiles = 512;

/// True if an element's value does not depend on its index.
bool MayRepeat(const Fill& fill) {
  using enum Fill::Kind;
  return fill.kind == kFamilies || fill.kind == kUniform || fill.kind == kConstant ||
         fill.kind == kZeros;
}

/// Bytes of the tile of a tensor: an odd number of pages that depends on the seed, so that the
/// period is neither a power of two nor known, and whole elements.
uint64_t TileBytes(uint64_t tensor_bytes, uint64_t seed) {
  const uint64_t least = std::max<uint64_t>(67, tensor_bytes / kMostTiles / kPage);
  return kPage * ((least + Mix64(seed) % (least / 4 + 16)) | 1);
}

/// `bytes` bytes made of pieces of `drawn` from random elements on.
std::vector<std::byte> TileOf(const std::vector<std::byte>& drawn, uint64_t element, uint64_t bytes,
                              uint64_t seed) {
  constexpr uint64_t kPiece = 4096;
  std::vector<std::byte> tile(bytes);
  Random random(seed);
  const uint64_t piece = std::min(kPiece * element, drawn.size());
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t from = random.Below((drawn.size() - piece) / element + 1) * element;
    std::memcpy(tile.data() + at, drawn.data() + from, std::min(piece, bytes - at));
  }
  return tile;
}

std::vector<std::byte> RandomBytes(uint64_t bytes, uint64_t seed) {
  std::vector<std::byte> all(bytes);
  Random random(seed);
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = random.Next();
    std::memcpy(all.data() + at, &word, std::min<uint64_t>(8, bytes - at));
  }
  return all;
}

}  // namespace

Result<OwnSizeMemory> OwnSizeMemory::Allocate(Device& device, const KernelSpec& spec) {
  ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(device, spec, spec.dims, 0));
  return OwnSizeMemory(device, spec, std::move(buffers));
}

Status OwnSizeMemory::RenewInput(JudgeKernels& kernels, const TaskBuffers::Tensor& tensor,
                                 const InputInstance& instance) const {
  const auto elements = static_cast<uint64_t>(tensor.shape.elements);
  const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
  if (bytes <= kSmallBytes || !MayRepeat(tensor.spec->fill))
    return kernels.FillTensor(tensor.address, *tensor.spec, elements, tensor.position, instance);
  const uint64_t size = SizeOf(tensor.spec->dtype);
  const uint64_t drawn = std::min(kDrawn, elements);
  ATUNNER_TRY(const auto room, device_->Allocate(drawn * size));
  ATUNNER_RETURN_IF_ERROR(
      kernels.FillTensor(room->address(), *tensor.spec, drawn, tensor.position, instance));
  std::vector<std::byte> values(drawn * size);
  ATUNNER_RETURN_IF_ERROR(device_->CopyOut(values, room->address()));
  const uint64_t seed = Mix64(instance.seed + tensor.position);
  return device_->FillTiled(tensor.address, bytes,
                            TileOf(values, size, TileBytes(bytes, seed), seed));
}

Status OwnSizeMemory::Renew(JudgeKernels& kernels, const InputInstance& instance,
                            uint64_t poison) const {
  for (const TaskBuffers::Tensor& tensor : buffers_.tensors()) {
    if (tensor.is_input()) {
      ATUNNER_RETURN_IF_ERROR(RenewInput(kernels, tensor, instance));
      continue;
    }
    const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
    const uint64_t seed = Mix64(poison + tensor.position);
    ATUNNER_RETURN_IF_ERROR(
        device_->FillTiled(tensor.address, bytes, RandomBytes(TileBytes(bytes, seed), seed)));
  }
  return {};
}

}  // namespace atunner
