// The part of the CUDA driver's C interface that atunner uses, declared here so that building needs
// no CUDA headers. Values and layouts: cuda.h of CUDA 12 and 13 (stable ABI).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace atunner::cuda {

using Result = int;
using Device = int;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using DevicePointer = unsigned long long;

constexpr Result kSuccess = 0;
constexpr Result kInvalidValue = 1;
constexpr Result kOutOfMemory = 2;
constexpr Result kInvalidContext = 201;
constexpr Result kNoBinaryForGpu = 209;
constexpr Result kInvalidPtx = 218;
constexpr Result kInvalidHandle = 400;
constexpr Result kNotFound = 500;
constexpr Result kIllegalAddress = 700;
constexpr Result kNotSupported = 801;

// CUdevice_attribute
constexpr int kMaxSharedPerBlockOptin = 97;
constexpr int kMultiprocessorCount = 16;
constexpr int kClockRateKhz = 13;
constexpr int kL2CacheSize = 38;
constexpr int kMaxSharedPerMultiprocessor = 81;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kReservedSharedPerBlock = 111;

constexpr int kFuncMaxDynamicShared = 8;     // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kFuncNonPortableCluster = 14;  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
constexpr int kLaunchAttributeCooperative = 2;
constexpr int kLaunchAttributeClusterDimension = 4;
// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
constexpr int kLaunchAttributeProgrammatic = 6;

// CUtensorMapInterleave, CUtensorMapL2promotion
constexpr int kTensorMapNoInterleave = 0;
constexpr int kTensorMapPromoteTo128Bytes = 2;

/// cuTensorMapEncodeTiled: map, data type, rank, address, dims, strides in bytes, box, element
/// strides, interleave, swizzle, L2 promotion, fill.
using EncodeTiled = Result (*)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                               const uint32_t*, const uint32_t*, int, int, int, int);
/// cuTensorMapEncodeIm2col: as cuTensorMapEncodeTiled, with lower and upper corner, channels and
/// pixels instead of the box.
using EncodeIm2col = Result (*)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                                const int*, const int*, uint32_t, uint32_t, const uint32_t*, int,
                                int, int, int);

// CUjit_option
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferBytes = 6;

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int enabled;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

/// Launch attributes.
struct LaunchAttributes {
  std::array<LaunchAttribute, 3> list{};
  unsigned count = 0;

  LaunchAttributes(bool cooperative, bool programmatic) {
    if (cooperative) Enable(kLaunchAttributeCooperative);
    if (programmatic) Enable(kLaunchAttributeProgrammatic);
  }
  void Enable(int id) {
    list[count].id = id;
    list[count++].value.enabled = 1;
  }
  void SetCluster(unsigned x, unsigned y, unsigned z) {
    list[count].id = kLaunchAttributeClusterDimension;
    list[count++].value.cluster = {x, y, z};
  }
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Arrays of textures: CUarray_format (signed integers are kFormatSigned + 1, 2, 3, unsigned ones 1,
// 2, 3), CUDA_ARRAY3D_*, CU_TRSF_*, CUmemorytype.
constexpr int kFormatSigned = 0x07;
constexpr int kFormatHalf = 0x10;
constexpr int kFormatFloat = 0x20;
constexpr unsigned kArrayLayered = 1;
constexpr unsigned kArraySurface = 2;
constexpr unsigned kArrayCube = 4;
constexpr unsigned kReadAsInteger = 1;
constexpr unsigned kUnitCoordinates = 2;
constexpr int kMemoryHost = 1;
constexpr int kMemoryArray = 3;

struct ArrayDescriptor {  // CUDA_ARRAY3D_DESCRIPTOR_v2
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

struct ArrayCopy {  // CUDA_MEMCPY3D_v2
  struct Side {
    size_t x_bytes, y, z, level;
    int memory;
    void* host;
    DevicePointer device;
    void* array;
    void* reserved;
    size_t pitch, height;
  };
  Side from, to;
  size_t width_bytes, height, depth;
};
static_assert(sizeof(ArrayCopy) == 200);

constexpr int kResourceLinear = 2;
struct ResourceDescriptor {  // CUDA_RESOURCE_DESC_v1
  struct Linear {
    DevicePointer address;
    int format;
    unsigned channels;
    size_t bytes;
  };
  int type;
  union {
    void* array;
    Linear linear;
    char all[128];
  };
  unsigned flags;
};
static_assert(sizeof(ResourceDescriptor) == 144);

struct TextureDescriptor {  // CUDA_TEXTURE_DESC_v1
  int wrap[3];
  int filter;
  unsigned flags, anisotropy;
  int level_filter;
  float level_bias, least_level, most_level;
  float border[4];
  int reserved[12];
};
static_assert(sizeof(TextureDescriptor) == 104);

}  // namespace atunner::cuda
