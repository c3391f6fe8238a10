// The part of CUDA's runtime interface that programs see: structures of driver_types.h of CUDA 13,
// declared here so that building needs no CUDA headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atunner::program::abi {

struct Dim3 {
  unsigned x, y, z;
};
struct Extent {
  size_t width, height, depth;
};
struct Position {
  size_t x, y, z;
};
struct PitchedPointer {
  void* at;
  size_t pitch, width, height;
};

/// The fat binary that nvcc registers for each source file.
struct FatBinaryWrapper {
  int magic, version;
  const char* image;
  /// Version 2, of relocatable code: the images of all files, a null pointer behind them
  void* linked;
};

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    Dim3 cluster;
    int enabled;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
constexpr int kCooperative = 2;
constexpr int kClusterDimension = 4;
constexpr int kProgrammatic = 6;

struct LaunchConfig {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

struct FunctionAttributes {
  size_t shared_bytes, constant_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared_bytes,
      carveout;
  int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy,
      non_portable_cluster;
  int reserved[16];
};
static_assert(sizeof(FunctionAttributes) == 144);

struct PointerAttributes {
  int type;  ///< 0: not CUDA's, 1: the host's, 2: the device's
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};
static_assert(sizeof(PointerAttributes) == 88);

struct ChannelFormat {
  int x, y, z, w;  ///< bits
  int kind;        ///< 0 signed, 1 unsigned, 2 float
};

constexpr int kResourceArray = 0, kResourceLinear = 2, kResourcePitched = 3;
struct ResourceDescriptor {
  struct Array {
    void* array;
  };
  struct Linear {
    void* at;
    ChannelFormat format;
    size_t bytes;
  };
  struct Pitched {
    void* at;
    ChannelFormat format;
    size_t width, height, pitch;
  };
  int kind;
  union {
    Array array;
    Linear linear;
    Pitched pitched;
    int reserved[32];
  };
  unsigned flags;
};
static_assert(sizeof(ResourceDescriptor) == 144);

struct TextureDescriptor {
  int wrap[3];  ///< repeat, clamp, mirror, border
  int linear;
  int unit_values;
  int srgb;
  float border[4];
  int unit_coordinates;
  unsigned anisotropy;
  int level_filter;
  float level_bias, least_level, most_level;
  int no_trilinear_optimisation, seamless_cube;
};
static_assert(sizeof(TextureDescriptor) == 72);

struct Copy3D {
  void* from_array;
  Position from_at;
  PitchedPointer from;
  void* to_array;
  Position to_at;
  PitchedPointer to;
  Extent extent;
  int direction;
};
static_assert(sizeof(Copy3D) == 160);

struct KernelNode {
  void* function;
  Dim3 grid, block;
  unsigned shared_bytes;
  void** params;
  void** extra;
};
struct FillNode {
  void* at;
  size_t pitch;
  unsigned value, value_bytes;
  size_t width, height;
};
struct AllocationNode {
  char pool[88];
  const void* access;
  size_t access_count, bytes;
  void* at;  ///< is set
};
static_assert(sizeof(AllocationNode) == 120);
struct HostNode {
  void (*function)(void*);
  void* argument;
};

/// cudaDeviceProp of CUDA 13, as far as it is answered; the rest is zero.
struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  size_t memory_bytes, shared_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int max_threads, max_block[3], max_grid[3];
  size_t constant_bytes;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int sms, integrated, maps_host_memory;
  int texture_1d, texture_1d_mipmap, texture_2d[2], texture_2d_mipmap[2], texture_2d_linear[3],
      texture_2d_gather[2], texture_3d[3], texture_3d_other[3], cube, layers_1d[2], layers_2d[3],
      layers_cube[2];
  int surface_1d, surface_2d[2], surface_3d[3], surface_layers_1d[2], surface_layers_2d[3],
      surface_cube, surface_layers_cube[2];
  size_t surface_alignment;
  int concurrent_kernels, ecc, bus, device, domain, tcc, copy_engines, unified_addressing, bus_bits,
      l2_bytes, persisting_l2_bytes, threads_per_sm, priorities, global_l1, local_l1;
  size_t shared_per_sm;
  int registers_per_sm, managed_memory, multi_gpu_board, board_group, host_atomics, pageable_access,
      concurrent_managed_access, preemption, host_pointers, cooperative;
  size_t shared_per_block_optin;
  int host_page_tables, direct_managed_access, blocks_per_sm, persisting_window;
  size_t reserved_shared_per_block;
  int flags[11];
  int clusters;
  char rest[256];
};
static_assert(sizeof(DeviceProperties) == 1008);
static_assert(offsetof(DeviceProperties, sms) == 384 &&
              offsetof(DeviceProperties, texture_2d_linear) == 420);
static_assert(offsetof(DeviceProperties, concurrent_kernels) == 560 &&
              offsetof(DeviceProperties, shared_per_sm) == 624);
static_assert(offsetof(DeviceProperties, cooperative) == 668 &&
              offsetof(DeviceProperties, clusters) == 748);

}  // namespace atunner::program::abi
