// Convolutions as matrix products: shared by all schedules. If tensors are not in the layout that
// is multiplied, a first step puts channels last and gathers filters
// (kernels/families/conv/conv_arrange.cu). float32 is multiplied with FMA or, if the accuracy
// policy allows it, scaled to float16. Where it pays, float32 is split into two float16 parts, and
// three products of parts are added: high · high, low · high and high · low. Two products leave the
// low parts of the image out.
#pragma once

#include <memory>
#include <optional>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/cuda_text/epilogue_text.h"
#include "atunner/graph/match/convolution.h"
#include "atunner/operators/task.h"

namespace atunner {

/// How an axis is arranged. A position is an index along the padded axis. Results with equal
/// remainders modulo `phases` (sub-pixel phases of a transposed convolution) have rows of filters
/// of their own: result = phases · position + phase - crop.
struct ArrangedAxis {
  int64_t taps = 1, phases = 1, crop = 0;  ///< taps of each phase
  int64_t positions = 1, padded = 1;       ///< positions of the result; of x with its zeros
  int64_t low = 0;                         ///< zeros in front of x
  int64_t split = 1;                       ///< pixels of a position (space-to-depth)
};

struct TensorConvForm : graph::ConvForm {
  int64_t own_channels = 1, own_filters = 1;  ///< of a group, before small groups were merged
  int64_t padded = 8;   ///< channels of a group, rounded up to units of 16 bytes
  bool scaled = false;  ///< float32 is multiplied as scaled float16
  /// Products of parts of an element: 2 or 3 if float32 is split, each with channels of its own.
  int64_t parts = 1;
  DType operands = DType::kFloat32;      ///< type of the operands
  bool last = false;                     ///< x is stored with its channels last
  bool in_place = false;                 ///< x is multiplied in its native layout
  bool filters_in_place = false;         ///< filters are multiplied in their native layout
  bool pixels_first = false;             ///< filters are neighbours in the result (channels last)
  std::array<ArrangedAxis, 3> arranged;  ///< for gathering: no phases, no padding
  /// Pixels of a position whose channels are multiplied as channels of one pixel
  int64_t merged = 1;
  /// Neighbouring pixels that one copy reads in the native layout; 0: rows are arranged
  int64_t panel = 0;
  bool flat = false;  ///< an image is one row of pixels
  int64_t pair = 1;   ///< rows of an image that are merged into one row of positions
  /// Neighbouring taps with sums of their own over the same pixels
  int64_t shifts = 1;
  /// The task's graph after FuseMaps, to which `epilogue` belongs; empty for the operator conv2d
  std::optional<graph::ValidGraph> graph = std::nullopt;

  int64_t Pixels() const;
  int64_t Rounded() const { return pixels_first || Runs() ? Pixels() : CeilDiv(Pixels(), 8) * 8; }
  /// True if the pixels of consecutive images follow each other in the result, as channels of a
  /// filter do in its gradient.
  bool Runs() const {
    return images.constant() && y.image == Outputs() && Phases() == 1 && !pixels_first;
  }
  /// Channels of a group of an arranged pixel. The last of several products takes the first part
  /// once more; it is not stored twice where the copies of channels (64 at a time) do not meet its
  /// end.
  int64_t Stored() const {
    const int64_t once = (parts - 1) * channels;
    return parts > 1 && merged == 1 && once % 64 == 0 ? once : padded;
  }
  int64_t Channels() const { return groups * Stored(); }
  /// Elements in 16 bytes.
  int64_t Unit() const { return 16 / BytesOf(operands); }
  /// Positions of an image of the arranged x.
  int64_t Positions() const { return arranged[0].padded * arranged[1].padded * arranged[2].padded; }
  /// Positions from one image to the next.
  int64_t ImagePositions() const {
    return flat ? CeilDiv(Positions(), panel) * panel : Positions();
  }
  /// Pixels of a position; of the arranged x; channels of a group that are multiplied together.
  int64_t Split() const { return arranged[0].split * arranged[1].split * arranged[2].split; }
  int64_t Cells() const { return Positions() * Split(); }
  int64_t Depth() const { return padded * merged; }
  int64_t Taps() const { return arranged[0].taps * arranged[1].taps * arranged[2].taps; }
  int64_t RowPhases() const { return arranged[0].phases * arranged[1].phases * arranged[2].phases; }
  int64_t Rows() const { return filters * RowPhases(); }
  /// Elements of one image's result.
  int64_t Results() const { return groups * filters * Outputs(); }

  /// Arguments as words (bound_template.h): the operands, the number of images, and the largest
  /// elements, which kernels only read if operands are scaled.
  std::string MultipliedX() const { return in_place ? x.name : "@arranged_x"; }
  std::string MultipliedW() const { return filters_in_place ? w.name : "@arranged_w"; }
  std::string CountedImages() const { return "i32:" + images.ToString(); }
  std::string Largest() const { return scaled ? "@largest" : MultipliedW(); }
};

/// Merges small groups into one whose filters have zeros for the other groups' channels: tensor
/// cores multiply them anyway.
void MergeGroups(TensorConvForm& form);
/// The task as a convolution whose tensors have one type: conv2d, or a graph; nullopt for other
/// tasks.
std::optional<graph::ConvForm> ReadConv(const Task& task);
/// True if x is stored without gaps, with these distances from pixel to pixel and from channel to
/// channel.
bool HasLayout(const TensorConvForm& form, int64_t pixel, int64_t channel);
inline bool HasChannelsLast(const TensorConvForm& form) {
  return HasLayout(form, form.groups * form.channels, 1);
}
inline bool HasChannelsFirst(const TensorConvForm& form) {
  return HasLayout(form, 1, form.Inputs());
}
std::optional<TensorConvForm> TensorConvFormOf(const Task& task);
/// True for float32 convolutions that cuDNN multiplies in TF32 where that is allowed: measured with
/// the convolutions of KernelBench's levels 1 and 2 on an H200 (cuDNN 9). Those with groups, with
/// fewer than 16 channels unless they are transposed, and transposed ones with strides and filters
/// of five or more taps along an axis, it computes with fused multiply-adds.
bool IsInTf32ByCudnn(const graph::ConvForm& form);
/// The same convolution with float32 in this number of products of float16 parts; nullopt for other
/// types and for groups.
std::optional<TensorConvForm> SplitFloatForm(const TensorConvForm& form, int64_t parts);
/// The epilogue of the sums: rows are pixels and columns filters where `pixels_first`, else the
/// other way round.
graph::EpilogueText EpilogueOf(const KernelSpec& spec, const TensorConvForm& form);
/// The largest number of elements, up to 8, that are contiguous and aligned if rows have multiples
/// of all of these.
int64_t StepOf(std::initializer_list<int64_t> multiples);

/// Constants of kernels/families/conv/conv_scale.cuh and conv_arrange.cu.
void AddArrangement(ConstantBlock& constants, const TensorConvForm& form);
/// Adds the steps that fill the workspaces arranged_w and arranged_x, unless both tensors are
/// multiplied in their native layout.
void AddArranging(LaunchPlan& plan, const TensorConvForm& form);
/// ns that these steps take.
double ArrangingNs(const KernelSpec& spec, const TensorConvForm& form, const CostConstants& costs);
/// Adds the workspace of an arranged image; returns the number of blocks of the step that fills it.
std::string AddArrangedImage(LaunchPlan& plan, const TensorConvForm& form, const char* workspace);
/// Implicit GEMM on Hopper, where taps are offsets into row segments in shared memory
/// (kernels/families/conv/conv_implicit_gemm.cu explains it): nullptr where stride and dilation of
/// an axis have a common divisor, or segments are too long.
std::unique_ptr<ScheduleTemplate> MakeImplicitGemmConv(const KernelSpec& spec,
                                                       const DeviceProfile& profile,
                                                       TensorConvForm form);
/// Wgrad of those convolutions (kernels/families/conv/conv_wgrad.cu); nullptr for other tasks and
/// for small groups.
std::unique_ptr<ScheduleTemplate> MakeWgrad(const KernelSpec& spec, const DeviceProfile& profile,
                                            const TensorConvForm& form);

/// Sizes to check: few images, and as many as a check can afford, up to `several`; empty if images
/// are summed, or one image is too large.
std::vector<Dims> CheckImages(const KernelSpec& spec, const TensorConvForm& form, int64_t several);
/// Any number of images that 32 bits can count; no freedom if images are summed.
ValidSizes FreeImages(const TensorConvForm& form);
}  // namespace atunner
