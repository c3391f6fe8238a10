#include "atunner/device/device.h"

#include <algorithm>
#include <cstring>

namespace atunner {

std::string_view Name(Hazard::Kind kind) {
  switch (kind) {
    case Hazard::Kind::kOutOfBounds:
      return "out of bounds";
    case Hazard::Kind::kMisaligned:
      return "misaligned address";
    case Hazard::Kind::kUninitialisedShared:
      return "uninitialised shared memory";
    case Hazard::Kind::kUninitialisedGlobal:
      return "uninitialised global memory";
    case Hazard::Kind::kUninitialisedLocal:
      return "uninitialised local memory";
    case Hazard::Kind::kUninitialisedRegister:
      return "uninitialised register";
    case Hazard::Kind::kRace:
      return "race";
    case Hazard::Kind::kDivergentBarrier:
      return "divergent barrier";
    case Hazard::Kind::kDeadlock:
      return "deadlock";
    case Hazard::Kind::kInvalidShuffle:
      return "invalid warp-level operation";
    case Hazard::Kind::kAsyncCopyInFlight:
      return "asynchronous copy in flight";
    case Hazard::Kind::kInstructionBudget:
      return "instruction budget";
    case Hazard::Kind::kTrap:
      return "trap";
    case Hazard::Kind::kLeak:
      return "leak";
  }
  return "hazard";
}

HazardGroup GroupOf(Hazard::Kind kind) {
  switch (kind) {
    case Hazard::Kind::kUninitialisedShared:
    case Hazard::Kind::kUninitialisedGlobal:
    case Hazard::Kind::kUninitialisedLocal:
    case Hazard::Kind::kUninitialisedRegister:
      return HazardGroup::kInit;
    case Hazard::Kind::kRace:
    case Hazard::Kind::kAsyncCopyInFlight:
      return HazardGroup::kRace;
    case Hazard::Kind::kDivergentBarrier:
    case Hazard::Kind::kDeadlock:
    case Hazard::Kind::kInvalidShuffle:
      return HazardGroup::kSync;
    default:
      return HazardGroup::kMemory;
  }
}

KernelArg KernelArg::Address(DeviceAddress address) {
  KernelArg arg;
  std::memcpy(arg.bytes.data(), &address, sizeof address);
  arg.size = sizeof address;
  return arg;
}

KernelArg KernelArg::Scalar(const ScalarBytes& scalar) {
  KernelArg arg;
  std::ranges::copy(scalar.bytes, arg.bytes.begin());
  arg.size = scalar.size;
  return arg;
}

KernelArg KernelArg::Map(const TensorMap& map) { return Value(map.bytes); }

KernelArg KernelArg::Value(std::span<const std::byte> value) {
  KernelArg arg;
  arg.size = static_cast<uint32_t>(value.size());
  if (value.size() <= arg.bytes.size())
    std::ranges::copy(value, arg.bytes.begin());
  else
    arg.large.assign(value.begin(), value.end());
  return arg;
}

std::string Misfit(const std::string& entry, std::span<const size_t> sizes,
                   std::span<const KernelArg> args) {
  if (args.size() != sizes.size()) {
    return "'" + entry + "' takes " + std::to_string(sizes.size()) + " arguments, " +
           std::to_string(args.size()) + " are given";
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (args[i].size == sizes[i]) continue;
    return "argument " + std::to_string(i + 1) + " of '" + entry + "' has " +
           std::to_string(sizes[i]) + " bytes, " + std::to_string(args[i].size) + " are given";
  }
  return "";
}

std::string ImpossibleSizes(const LaunchShape& shape) {
  constexpr uint32_t kMaxGridX = (uint32_t{1} << 31) - 1;
  constexpr uint32_t kMaxGridYZ = 65535;
  constexpr uint64_t kMaxThreads = 1024;
  constexpr uint32_t kMaxBlockZ = 64;
  const auto text = [](const Dim3& d) {
    return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
  };
  const Dim3& grid = shape.grid;
  const Dim3& block = shape.block;
  const std::string blocks = "invalid grid of " + text(grid) + " blocks: ";
  const std::string threads = "invalid block of " + text(block) + " threads: ";
  const std::string zero = "no size may be zero";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return blocks + zero;
  if (block.x == 0 || block.y == 0 || block.z == 0) return threads + zero;
  if (grid.x > kMaxGridX) return blocks + "x is at most 2147483647";
  if (grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) return blocks + "y and z are at most 65535";
  if (block.x > kMaxThreads || block.y > kMaxThreads || block.Count() > kMaxThreads)
    return threads + "a block has at most 1024 threads";
  if (block.z > kMaxBlockZ) return threads + "z is at most 64";
  return "";
}

Result<std::unique_ptr<Texture>> Device::CreateTexture(const TextureSpec&,
                                                       std::span<const std::byte>) {
  return Fail(ErrorCode::kUnsupported, "'" + profile().name + "' has no textures");
}

Status Device::FillTiled(DeviceAddress to, uint64_t bytes, std::span<const std::byte> tile) {
  if (tile.empty()) return Fail(ErrorCode::kInternal, "a fill with an empty tile");
  for (uint64_t at = 0; at < bytes; at += tile.size()) {
    const uint64_t count = std::min<uint64_t>(tile.size(), bytes - at);
    ATUNNER_RETURN_IF_ERROR(CopyIn(to + at, tile.first(count)));
  }
  return {};
}

Result<TensorMap> Device::EncodeTensorMap(const TensorMapSpec&) {
  return Fail(ErrorCode::kUnsupported, "'" + profile().name + "' has no bulk tensor copies",
              "compute capability " + std::to_string(profile().cc_major) + "." +
                  std::to_string(profile().cc_minor));
}

}  // namespace atunner
