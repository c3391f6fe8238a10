// What host code says about one launch of a kernel: the values of its expressions there.
//
// The program is followed from main, as it runs without arguments, up to the first launch of the
// kernel (host_statements.h). Literals are kept as names ("leaves"), because they are problem sizes
// or tunables:
//
//     #define THREADS 256
//     void run(int rows) { int blocks = (rows * 64 + THREADS - 1) / THREADS;
//                          k<<<blocks, THREADS>>>(…); }
//     int main() { run(1000); }
//
// At the launch `blocks` is ((rows * 64 + THREADS - 1) // THREADS) with the leaves rows = 1000
// (from the caller) and THREADS = 256 (of the file).
//
// What is followed: literals, constants, macros, arithmetic, sizeof, dim3, arrays, containers of a
// number of elements, allocations, memset, copies to device variables, conditions, short loops,
// functions and lambdas. What is not: objects of classes, files, and the contents of memory.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/intake/host/host_state.h"

namespace atunner {

class HostReading {
 public:
  /// Without a launch of the kernel only constants of the file are known. The source and `stated`
  /// must outlive the object.
  HostReading(const CudaSyntax& syntax, const KernelDefinition& kernel, const Dims& stated);

  /// The first launch that is reached, else the first one of the source; nullptr if there is none.
  const KernelLaunch* launch() const { return launch_; }

  /// The expression in the language of model/expr; nullopt if its value is unknown.
  std::optional<std::string> Expression(TokenRange range);
  /// The three extents of a dim3 or a number; missing ones are "1".
  std::optional<std::array<std::string, 3>> Extents(TokenRange range);

  struct Buffer {
    const HostBuffer* identity = nullptr;  ///< the same for two pointers to one buffer
    std::string bytes;
    bool zeroed = false;  ///< filled with 0 by cudaMemset
  };
  /// The buffer that a pointer argument points to the start of.
  std::optional<Buffer> BufferOf(TokenRange range);

  /// The element type of a pointer, or the type of a number; "" if its declaration is not found.
  std::string TypeOf(TokenRange range, bool pointer);
  /// The meaning of a type parameter or an alias of the launching function; other names are
  /// returned unchanged.
  std::string TypeNamed(const std::string& name) const;

  /// True if the program copies something to the device variable before the launch.
  bool IsFilled(const std::string& variable) const;
  /// What it copies, element by element; empty if that is unknown.
  std::vector<std::string> ValuesOf(const std::string& variable);

  /// Why the last query had no answer.
  const Missing& missing() const { return missing_; }
  /// All leaves to which answers have referred.
  const Leaves& leaves() const { return leaves_; }

 private:
  void Walk(const KernelDefinition& kernel);
  void Start(const std::vector<const KernelLaunch*>& launches);
  HostValue ValueOf(TokenRange range);
  std::optional<std::string> TextOf(const HostValue& value);

  const CudaSyntax& syntax_;
  const Dims& stated_;
  std::unique_ptr<HostState> state_;
  const KernelLaunch* launch_ = nullptr;
  HostFrame frame_;
  Missing missing_;
  Leaves leaves_;
};

}  // namespace atunner
