// How to launch the kernels of a candidate. A candidate has no host code: it is CUDA text, PTX or a
// cubin, and a LaunchPlan.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/result.h"
#include "atunner/model/expr/expr.h"
#include "atunner/model/kernel/tensor_map.h"
#include "atunner/model/value/dtype.h"

namespace atunner {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

enum class Language : uint8_t { kCudaCpp, kPtx, kCubin };
std::string_view Name(Language language);

/// Text for the compiler, with its options.
struct SourceUnit {
  std::string name = "kernel.cu";  ///< the file name that diagnostics show
  std::string text;
  Language language = Language::kCudaCpp;
  std::vector<std::pair<std::string, std::string>> defines;  ///< -Dname=value
  /// E.g. "-use_fast_math", "--maxrregcount=64"
  std::vector<std::string> options;
  std::vector<std::string> include_folders;

  Digest ContentDigest() const;
};

/// A tensor as a tensor map describes it, from the innermost dimension on; see TensorMapSpec.
struct TensorView {
  std::vector<Expr> dims;     ///< in elements
  std::vector<Expr> strides;  ///< in elements, for the second and further dimensions
  std::vector<Expr> box;      ///< in elements
  Expr swizzle_bytes = 0;
};

/// A parameter given byte by byte, e.g. a structure that a program passed: its bytes, in which
/// addresses are put.
struct ParameterBytes {
  /// Eight bytes at `at` receive the address of tensor `name` plus `offset`.
  struct Pointer {
    uint64_t at = 0;
    std::string name;
    uint64_t offset = 0;
  };
  std::string bytes;
  std::vector<Pointer> pointers;
};

/// One kernel parameter.
struct ArgBinding {
  enum class Kind : uint8_t {
    kTensor,     ///< device pointer of the spec's argument `name`
    kWorkspace,  ///< device pointer of the plan's workspace `name`
    kScalar,     ///< `value`, as `dtype`
    /// `const __grid_constant__ CUtensorMap`: `view` of argument `name`, elements of `dtype`
    kTensorMap,
    kWorkspaceMap,  ///< the same for workspace `name`
    /// Handle of a texture with random texels; `name` is its text, see ParseTexture
    kTexture,
    kSurface,  ///< handle of a surface of such a texture
    kBytes,    ///< `raw`
  };
  Kind kind = Kind::kTensor;
  std::string name;
  DType dtype = DType::kInt32;
  Expr value;
  TensorView view = {};
  ParameterBytes raw = {};

  static ArgBinding Tensor(std::string name) {
    return {Kind::kTensor, std::move(name), DType::kInt32, {}};
  }
  static ArgBinding Workspace(std::string name) {
    return {Kind::kWorkspace, std::move(name), DType::kInt32, {}};
  }
  static ArgBinding Scalar(DType dtype, Expr value) {
    return {Kind::kScalar, "", dtype, std::move(value)};
  }
  static ArgBinding Texture(std::string text, bool surface) {
    return {surface ? Kind::kSurface : Kind::kTexture, std::move(text), DType::kInt32, {}};
  }
  static ArgBinding Bytes(ParameterBytes raw) {
    ArgBinding binding{Kind::kBytes, "", DType::kInt32, {}};
    binding.raw = std::move(raw);
    return binding;
  }
  static ArgBinding Map(std::string name, DType dtype, TensorView view) {
    return {Kind::kTensorMap, std::move(name), dtype, {}, std::move(view)};
  }
  static ArgBinding WorkspaceMap(std::string name, DType dtype, TensorView view) {
    return {Kind::kWorkspaceMap, std::move(name), dtype, {}, std::move(view)};
  }
};
/// True if `name` refers to a workspace, false if to an argument of the task.
bool InWorkspace(ArgBinding::Kind kind);
bool IsMap(ArgBinding::Kind kind);
/// True for a texture or a surface.
bool IsTexture(ArgBinding::Kind kind);

/// Expressions may use the problem's dims, its attributes and the candidate's parameters.
struct LaunchStep {
  std::string entry;  ///< kernel name; template kernels as "name<4, float>" (a name expression)
  std::array<Expr, 3> grid;
  std::array<Expr, 3> block;
  std::array<Expr, 3> cluster;  ///< all 1 = no cluster launch
  Expr shared_bytes = 0;        ///< dynamic shared memory
  /// Cooperative launch: all blocks are resident at once, so that they may wait for each other.
  bool cooperative = false;
  /// Programmatic dependent launch: blocks may start before the previous step has ended. The kernel
  /// waits for that with griddepcontrol.wait before it touches memory.
  bool programmatic = false;
  std::vector<ArgBinding> args;
};

/// Scratch memory that the launcher allocates; contents are undefined at the first step.
struct Workspace {
  std::string name;
  Expr bytes;
};

/// `__constant__` or `__device__` symbol that receives a copy of a tensor before the first launch.
struct SymbolCopy {
  std::string symbol;
  std::string tensor;
};

/// Steps run in order on one stream.
struct LaunchPlan {
  std::vector<Workspace> workspaces;
  std::vector<SymbolCopy> symbols;
  std::vector<LaunchStep> steps;
  /// Parameter values the expressions refer to (filled by the template that rendered the
  /// candidate).
  std::vector<std::string> parameter_names;
  std::vector<Value> parameter_values;
};

/// The names of the kernels that a plan launches, each once, in order: the compiler must keep them.
std::vector<std::string> EntriesOf(const LaunchPlan& plan);

/// A scalar as the kernel receives it.
struct ScalarBytes {
  std::array<std::byte, 8> bytes{};
  uint32_t size = 0;
};
/// Converts `value` to `dtype`; kInvalidInput when an integer does not fit.
Result<ScalarBytes> PackScalar(DType dtype, const Value& value);

struct ConcreteArg {
  ArgBinding::Kind kind = ArgBinding::Kind::kTensor;
  std::string name;
  ScalarBytes scalar;
  TensorMapSpec map = {};  ///< for tensor maps; the address is not known yet
  ParameterBytes raw = {};
};

struct ConcreteStep {
  std::string entry;
  Dim3 grid, block, cluster;
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  bool programmatic = false;
  std::vector<ConcreteArg> args;
};

struct ConcreteWorkspace {
  std::string name;
  uint64_t bytes = 0;
};

/// A plan with all sizes known, ready for a device.
struct ConcretePlan {
  std::vector<ConcreteWorkspace> workspaces;
  std::vector<SymbolCopy> symbols;
  std::vector<ConcreteStep> steps;
};

/// Evaluates every expression. kInvalidInput for sizes < 1 or beyond CUDA's limits (grid x < 2^31,
/// y and z < 65536, block x, y ≤ 1024, z ≤ 64, at most 1024 threads).
Result<ConcretePlan> Resolve(const LaunchPlan& plan, const Dims& dims,
                             const Attributes& attributes);

}  // namespace atunner
