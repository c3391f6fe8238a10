// An execution plan: how a whole model runs. Steps launch the kernels of artifacts, copy, or call
// an operator of the framework; every intermediate has a place in one workspace. The folder's
// format is described in docs/formats/plan.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/value/dtype.h"

namespace atunner {

/// The newest format this program reads and the one it writes.
constexpr int kPlanFormat = 1;
/// Places in the workspace and in the file of weights are multiples of this, as addresses of
/// cuMemAlloc are.
constexpr uint64_t kPlanAlignment = 256;
/// Rounded up to kPlanAlignment.
constexpr uint64_t PlanAligned(uint64_t bytes) {
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}
/// The files of a plan's folder, beside the folders of its artifacts.
constexpr std::string_view kPlanFile = "plan.json";
constexpr std::string_view kWeightsFile = "weights.bin";

/// A dense row-major tensor.
struct PlanBuffer {
  enum class Kind : uint8_t {
    kInput,         ///< the caller gives it at every run
    kWeight,        ///< in the file of weights, in memory from loading on
    kIntermediate,  ///< in the workspace, from its first writer to its last user
    kOutput,        ///< the caller gives memory for it at every run
  };
  std::string name;  ///< unique in the plan
  Kind kind = Kind::kIntermediate;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> extents;
  /// The name of a parameter or buffer in the model, "layers.0.weight". An input has one if it is a
  /// weight whose values the model's file lacked.
  std::string qualified_name = {};
  uint64_t offset = 0;  ///< of weights in their file, of intermediates in the workspace

  uint64_t Bytes() const;
};
std::string_view Name(PlanBuffer::Kind kind);

/// A tensor that a step reads or writes.
struct PlanTensor {
  std::string argument;  ///< of the artifact's task or the operator; empty for copies
  size_t buffer = 0;     ///< index into ExecutionPlan::buffers
};

struct PlanStep {
  enum class Kind : uint8_t {
    kLaunch,  ///< the kernel of an artifact, at the size it was tuned for
    kCopy,    ///< the only buffer read to the only one written, which have equal bytes
    kExtern,  ///< an operator that the framework runs
  };
  Kind kind = Kind::kLaunch;
  std::vector<PlanTensor> reads;
  std::vector<PlanTensor> writes;
  size_t kernel = 0;              ///< launches: index into ExecutionPlan::kernels
  std::vector<size_t> scratch{};  ///< launches: at most one intermediate, for the kernel's own use
  std::string target = {};        ///< externs: "aten.cumsum.default"
  /// Externs: a JSON list of {"name", "arg"}, as programs have them (docs/formats/model-json.md).
  /// Tensors in it are named like the arguments in `reads`.
  std::string arguments = "[]";
};
std::string_view Name(PlanStep::Kind kind);

struct ExecutionPlan {
  std::string name;                  ///< of the model
  std::string device;                ///< the GPU that it was made for: "NVIDIA H200"
  std::vector<std::string> kernels;  ///< folders of artifacts, from the plan's folder
  std::vector<PlanBuffer> buffers;   ///< inputs and outputs in the order of the caller's lists
  std::vector<PlanStep> steps;       ///< in the order in which they run, on one stream
  uint64_t workspace_bytes = 0;
  uint64_t weight_bytes = 0;  ///< of the file of weights; 0: there is no file
  Digest weight_digest;       ///< of that file; it detects damage and is no signature
  std::string created;
  std::string atunner_version;

  /// Indices of the buffers of a kind, in order.
  std::vector<size_t> BuffersOf(PlanBuffer::Kind kind) const;
};

/// Gives every intermediate a place and sets workspace_bytes. An intermediate that no step uses
/// has no lifetime: kInvalidInput.
Status PlaceIntermediates(ExecutionPlan& plan);

/// Every rule that a plan must keep before anything is launched by it: indices and names exist;
/// nothing is read before it is written; no extern writes inputs and weights; all outputs are
/// written; places are aligned, inside their block, and intermediates that live at the same
/// time do not overlap.
Status CheckPlan(const ExecutionPlan& plan);

/// plan.json's text and back; the text of a plan that fails CheckPlan is refused.
std::string PlanText(const ExecutionPlan& plan);
Result<ExecutionPlan> ParsePlan(std::string_view text, std::string_view where);

/// True if the folder holds a plan.
bool IsPlan(const Path& folder);
/// kNotFound if the folder holds no plan, kUnsupported when a newer atunner wrote it. The file of
/// weights and the artifacts are not read.
Result<ExecutionPlan> LoadPlan(const Path& folder);

}  // namespace atunner
