// The task: what has to be computed, apart from how. Tolerance, shapes and baseline come from here
// and never from a proposer of candidates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/result.h"
#include "atunner/model/expr/expr.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/value/dtype.h"
#include "atunner/model/value/value.h"

namespace atunner {

enum class Role : uint8_t { kInput, kOutput, kInOut, kScalar };
std::string_view Name(Role role);

/// How the judge fills an input.
struct Fill {
  enum class Kind : uint8_t {
    /// Floats: the input families of evaluation (normal, uniform, heavy tail, …); the default
    kFamilies,
    kZeros,
    kConstant,   ///< `low`
    kIota,       ///< 0, 1, 2, …
    kUniform,    ///< uniform in [low, high); integers: inclusive of low, exclusive of high
    kFile,       ///< raw little-endian elements from the file `path`
    kGenerator,  ///< the value of the expression `path` at each index i
    /// Integers from `low` on; the expression `path` over the problem's sizes gives their number.
    kIndices,
    /// Ascending offsets from `low` on, within a range of `path` numbers: segment i begins at
    /// element
    /// i.
    kOffsets,
    kBlob,  ///< contents `digest` of the captured blobs in folder `path` (atunner/capture)
  };
  Kind kind = Kind::kFamilies;
  double low = 0;
  double high = 1;
  std::string path;
  std::string digest;  ///< kFile, kBlob: hash of the contents, so that other data is another task
};

/// One argument of the task: a dense row-major tensor, or a scalar.
struct ArgSpec {
  std::string name;
  Role role = Role::kInput;
  DType dtype = DType::kFloat32;
  std::vector<Expr> shape;    ///< over dims; empty for scalars
  std::optional<Expr> value;  ///< scalars only; over dims and attributes
  Fill fill;                  ///< inputs and in-outs
};

/// When two results count as equal, if the task says so itself. Otherwise the judge derives a
/// budget from the error of a reference-precision baseline, an algorithm in the same precision (see
/// docs/verification.md).
struct Tolerance {
  std::optional<double> relative;  ///< bound on |y - r| / max(|r|, rms(r))
  /// With it, |y - r| <= absolute + relative * |r| for every element
  std::optional<double> absolute;
  double budget_factor = 4.0;  ///< k: times the baseline's error
  /// True for floating-point atomics: repeated runs need not be bit-equal.
  bool allow_nondeterminism = false;
};

/// A kernel as text with its launch: a reference, a baseline.
struct RenderedKernel {
  SourceUnit source;
  LaunchPlan plan;

  /// Hash of the source unit and of the plan as JSON.
  Digest ContentDigest() const;
};

/// The source of the right result.
struct Oracle {
  enum class Kind : uint8_t {
    kOperator,  ///< the float64 reference of `operator_name`
    kKernel,    ///< `kernel`: the user's own in its default configuration
    kGraph,     ///< the evaluation of `graph` in float64
  };
  Kind kind = Kind::kOperator;
  std::string operator_name;
  std::optional<RenderedKernel> kernel;
  std::string graph;  ///< in text form (docs/graph.md); its symbols are the spec's dims
};

struct KernelSpec {
  std::string name;
  Dims dims;              ///< problem size: "rows" -> 8192
  Attributes attributes;  ///< operator settings: "eps" -> 1e-5, "causal" -> true
  std::vector<ArgSpec> args;
  Oracle oracle;
  Tolerance tolerance;
  Expr flops = 0;  ///< floating-point operations of the problem, over dims
  /// Fewest bytes through DRAM; default: inputs read once, outputs written once
  std::optional<Expr> bytes;
  DType compute_dtype = DType::kFloat32;  ///< the rate that bounds `flops`
  /// True if the physical floor may assume tensor-core rates for compute_dtype.
  bool tensor_cores = false;

  const ArgSpec* FindArg(std::string_view name) const;
  /// Identity of the task: everything above. Equal digests share trials.
  Digest ContentDigest() const;
};

/// A spec's tensor with its sizes known.
struct TensorShape {
  std::vector<int64_t> extents;
  int64_t elements = 1;
  int64_t bytes = 0;
};

/// Evaluates an argument's shape for given dims. kInvalidInput for an extent < 1 or more than 2^40
/// elements.
Result<TensorShape> ShapeOf(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims);
/// Value of a scalar argument.
Result<Value> ScalarOf(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims);
/// spec.bytes, or every input read once and every output written once (in-out: both).
Result<double> MinimumBytes(const KernelSpec& spec, const Dims& dims);
Result<double> FlopCount(const KernelSpec& spec, const Dims& dims);

}  // namespace atunner
