// The functions of the real driver that the recorder calls itself. The ones that it puts itself in
// front of are in calls.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "atunner/base/cuda_abi.h"

namespace atunner::recorder {

using cuda::ArrayCopy;
using cuda::Context;
using cuda::DevicePointer;
using cuda::Event;
using cuda::Function;
using cuda::LaunchConfig;
using cuda::Module;
using cuda::Stream;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;  ///< the driver also takes one where it takes a Function
using Graph = struct GraphTag*;
using GraphNode = struct GraphNodeTag*;
using GraphExec = struct GraphExecTag*;

constexpr int kComputeCapabilityMajor = cuda::kComputeCapabilityMajor;
constexpr int kComputeCapabilityMinor = cuda::kComputeCapabilityMinor;
using HostFunction = void (*)(void*);

/// CUgraphNodeType
enum class NodeType : int {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kHost = 3,
  kGraph = 4,
  kEmpty = 5,
  kWaitEvent = 6,
  kRecordEvent = 7,
};

struct KernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
  Kernel kernel;
  Context context;
};
static_assert(sizeof(KernelNodeParams) == 72);

struct MemsetNodeParams {  // CUDA_MEMSET_NODE_PARAMS_v1
  DevicePointer to;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;  ///< elements, rows
};
static_assert(sizeof(MemsetNodeParams) == 40);

struct HostNodeParams {  // CUDA_HOST_NODE_PARAMS_v1
  HostFunction function;
  void* argument;
};

/// A pointer is null if the driver does not have the function.
struct Driver {
#define ATUNNER_DRIVER(name, parameters) int(*name) parameters = nullptr;
#include "faces/recorder/driver.def"
#undef ATUNNER_DRIVER
};

}  // namespace atunner::recorder
