// What a program launched: its device code, its launches, and the memory that chosen launches saw.
//
// A recorder inside the program writes a capture (capture_writer.h); `show`, `optimize` and `apply`
// read it (capture_reader.h). docs/formats/capture.md describes the files.
//
// Example: a program that calls scale<<<40, 256>>>(y, x, 2.0f, n) a thousand times becomes
//
//     module 0    PTX of the program, sm_80
//     kernel 0    _Z5scalePfPKffi in module 0, "scale(float*, float const*, float, int)"
//     launch 0    kernel 0, grid 40, block 256, parameters as bytes:
//                 y -> buffer 0 + 0, x -> buffer 1 + 0, 2.0f, n
//                 buffer 0: 40960 bytes, contents before and after, written [0, 40000)
//                 buffer 1: 40960 bytes, contents before, not written
//     group 0     kernel 0, grid 40, block 256: 1000 launches
//
// Addresses of the program never appear: a pointer is a buffer and an offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/trial/trial.h"

namespace atunner::capture {

/// Names contents in the capture's store of blobs: 32 hexadecimal digits; "" = not recorded.
using BlobId = std::string;

struct CapturedModule {
  BlobId ptx;    ///< "" if the program has machine code only
  BlobId cubin;  ///< a real GPU may have it; "" otherwise
  int arch = 0;  ///< 80 of ".target sm_80"
  bool operator==(const CapturedModule&) const = default;
};

struct CapturedKernel {
  size_t module = 0;
  std::string name;      ///< as the module names it: "_Z5scalePfPKffi"
  std::string readable;  ///< demangled with its parameters; equal to `name` for C names
  bool operator==(const CapturedKernel&) const = default;
};

/// Grid, block and everything else that a launch states besides the parameters.
struct LaunchConfiguration {
  Dim3 grid, block, cluster;
  uint32_t shared_bytes = 0;  ///< dynamic shared memory
  bool cooperative = false;
  bool programmatic = false;
  bool operator==(const LaunchConfiguration&) const = default;
};

/// Eight bytes of a parameter or of a buffer that hold the address of a buffer's byte `offset`. In
/// a parameter they may lie inside a structure.
struct CapturedPointer {
  uint64_t at = 0;    ///< position in the parameter or buffer, bytes
  size_t buffer = 0;  ///< index in CapturedLaunch::buffers
  uint64_t offset = 0;
  bool operator==(const CapturedPointer&) const = default;
};

struct CapturedParameter {
  std::string bytes;  ///< as the kernel received them; zero where a pointer is
  std::vector<CapturedPointer> pointers;
  std::string texture;   ///< of a texture's or surface's handle, see TextureText; else ""
  bool surface = false;  ///< the handle of its surface
  bool operator==(const CapturedParameter&) const = default;
};

/// Half-open range of a buffer's bytes.
struct ByteRange {
  uint64_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// An allocation that a launch may reach.
struct CapturedBuffer {
  uint64_t bytes = 0;
  /// Contents before the launch, zero where a pointer is; "" if all of it was undefined
  BlobId before;
  BlobId after;  ///< contents after it, pointers as they are; "" if the launch changed nothing
  /// Ascending. The virtual GPU knows them exactly; a real GPU gives the range that changed.
  std::vector<ByteRange> written;
  std::vector<CapturedPointer> pointers;  ///< before the launch
  bool operator==(const CapturedBuffer&) const = default;
};

/// A `__device__` or `__constant__` variable of the kernel's module.
struct CapturedSymbol {
  std::string name;  ///< as the module names it
  uint64_t bytes = 0;
  BlobId before;
  BlobId after;                           ///< "" if the launch did not change it
  std::vector<CapturedPointer> pointers;  ///< before the launch; `before` is zero there
  bool operator==(const CapturedSymbol&) const = default;
};

/// A launch whose memory was recorded.
struct CapturedLaunch {
  uint64_t number = 0;  ///< of the program's launches, from 0
  size_t kernel = 0;
  LaunchConfiguration configuration;
  std::vector<CapturedParameter> parameters;
  std::vector<CapturedBuffer> buffers;
  std::vector<CapturedSymbol> symbols;
  double seconds = 0;  ///< of the launch; 0 = unknown
  Evidence evidence = Evidence::kPredicted;
  /// Why the memory is not complete, so that the launch cannot be repeated; "" if it is: "the
  /// launch may reach 5.1 GB, more than --max-snapshot".
  std::string left_out;
  bool operator==(const CapturedLaunch&) const = default;
};

/// Launches of one kernel with the same configuration.
struct LaunchGroup {
  size_t kernel = 0;
  LaunchConfiguration configuration;
  uint64_t launches = 0;
  double seconds = 0;  ///< of all of them; 0 = unknown
  bool operator==(const LaunchGroup&) const = default;
};

struct CaptureHead {
  std::string program;
  std::vector<std::string> arguments;
  std::string gpu;  ///< name of the device profile
  Evidence evidence = Evidence::kPredicted;
  bool operator==(const CaptureHead&) const = default;
};

/// How the program ended.
struct CaptureEnding {
  int exit_code = 0;
  int signal = 0;
  bool operator==(const CaptureEnding&) const = default;
};

struct Capture {
  CaptureHead head;
  std::vector<CapturedModule> modules;
  std::vector<CapturedKernel> kernels;
  std::vector<CapturedLaunch> launches;
  std::vector<LaunchGroup> groups;
  std::vector<std::string> notes;      ///< what was not recorded, and why
  std::vector<CaptureEnding> endings;  ///< empty: the recording itself was cut short
  bool operator==(const Capture&) const = default;

  /// Recorded launches of a kernel that can be repeated, longest group first.
  std::vector<const CapturedLaunch*> RepeatableLaunches(size_t kernel) const;
};

}  // namespace atunner::capture
