// Convolutions as matrix products: what all schedules share. Where tensors do not lie as they are
// multiplied, a first step puts channels last and gathers filters
// (kernels/families/conv/conv_arrange.cu). float32 is multiplied with fused multiply-adds, or,
// where the policy allows it, measured and scaled to float16.
#pragma once

#include <memory>
#include <optional>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/cuda_text/epilogue_text.h"
#include "atunner/graph/match/convolution.h"
#include "atunner/operators/task.h"

namespace atunner {

/// How an axis is arranged. Results whose taps are the same modulo `phases` are rows of filters of
/// their own: result phases · place + phase - crop.
struct ArrangedAxis {
  int64_t taps = 1, phases = 1, crop = 0;  ///< taps of each phase
  int64_t places = 1, padded = 1;          ///< of the result; of x with the zeros that follow
  int64_t low = 0;                         ///< zeros before x
  int64_t split = 1;                       ///< pixels of a place
};

struct TensorConvForm : graph::ConvForm {
  int64_t own_channels = 1, own_filters = 1;  ///< of a group, before small ones were put together
  int64_t padded = 8;                         ///< channels of a group in whole units
  bool scaled = false;                        ///< float32 is multiplied as float16
  DType operands = DType::kFloat32;           ///< what is multiplied
  bool last = false;                          ///< x has its channels last,
  bool in_place = false;                      ///< x needs no first step,
  bool filters_in_place = false;              ///< and filters do not
  bool pixels_first = false;
  std::array<ArrangedAxis, 3> arranged;  ///< as gathered: no phases, no zeros around
  /// Pixels of a place that are multiplied as channels of one
  int64_t merged = 1;
  /// Neighbouring places that are read as they lie; 0: rows are arranged
  int64_t panel = 0;
  bool flat = false;  ///< of all of an image as one row
  int64_t pair = 1;   ///< rows of such an image that are one of places, likewise
  /// Neighbouring taps that are summed apart, of the same panels
  int64_t shifts = 1;
  /// The task's graph after FuseMaps, to which `epilogue` belongs; empty for the operator conv2d
  std::optional<graph::ValidGraph> graph = std::nullopt;

  int64_t Pixels() const;
  int64_t Rounded() const { return pixels_first || Runs() ? Pixels() : CeilDiv(Pixels(), 8) * 8; }
  /// Do images follow each other in the result, as channels of a filter do in its gradient?
  bool Runs() const {
    return images.constant() && y.image == Outputs() && Phases() == 1 && !pixels_first;
  }
  int64_t Channels() const { return groups * padded; }
  /// Elements of 16 bytes.
  int64_t Unit() const { return 16 / BytesOf(operands); }
  /// Of the arranged x and filters.
  int64_t Places() const { return arranged[0].padded * arranged[1].padded * arranged[2].padded; }
  /// From image to image.
  int64_t ImagePlaces() const { return flat ? CeilDiv(Places(), panel) * panel : Places(); }
  /// Pixels of a place; of the arranged x; channels of a group that are multiplied together.
  int64_t Split() const { return arranged[0].split * arranged[1].split * arranged[2].split; }
  int64_t Cells() const { return Places() * Split(); }
  int64_t Depth() const { return padded * merged; }
  int64_t Taps() const { return arranged[0].taps * arranged[1].taps * arranged[2].taps; }
  int64_t RowPhases() const { return arranged[0].phases * arranged[1].phases * arranged[2].phases; }
  int64_t Rows() const { return filters * RowPhases(); }
  /// Elements of the result of one image.
  int64_t Results() const { return groups * filters * Outputs(); }

  /// Arguments, as words (bound_template.h): what is multiplied, how many images there are, the
  /// largest elements, which nobody asks for unless they are scaled.
  std::string MultipliedX() const { return in_place ? x.name : "@arranged_x"; }
  std::string MultipliedW() const { return filters_in_place ? w.name : "@arranged_w"; }
  std::string CountedImages() const { return "i32:" + images.ToString(); }
  std::string Largest() const { return scaled ? "@largest" : MultipliedW(); }
};

/// Small groups become one whose filters have zeros for the others' channels: tensor cores multiply
/// them anyway.
void PutGroupsTogether(TensorConvForm& form);
/// The task as a convolution whose tensors have one type: conv2d, or a graph.
std::optional<graph::ConvForm> ReadConv(const Task& task);
/// Does x lie without gaps, so many elements from pixel to pixel and from channel to channel?
bool Lies(const TensorConvForm& form, int64_t pixel, int64_t channel);
inline bool HasChannelsLast(const TensorConvForm& form) {
  return Lies(form, form.groups * form.channels, 1);
}
inline bool HasChannelsFirst(const TensorConvForm& form) { return Lies(form, 1, form.Inputs()); }
std::optional<TensorConvForm> TensorConvFormOf(const Task& task);
/// What becomes of sums before they are stored: rows are pixels, columns filters.
graph::EpilogueText EpilogueOf(const KernelSpec& spec, const TensorConvForm& form);
/// Elements, 8 at most, that are surely side by side and aligned where rows have so many.
int64_t StepOf(std::initializer_list<int64_t> multiples);

/// Constants of kernels/families/conv/conv_scale.cuh and conv_arrange.cu.
void AddArrangement(ConstantBlock& constants, const TensorConvForm& form);
/// The steps, which fill the workspaces arranged_w and arranged_x, unless the tensors are
/// multiplied in place.
void AddArranging(LaunchPlan& plan, const TensorConvForm& form);
/// ns of the steps.
double ArrangingNs(const KernelSpec& spec, const TensorConvForm& form, const CostConstants& costs);
/// The workspace of an arranged image; the blocks of the step that fills it.
std::string AddArrangedImage(LaunchPlan& plan, const TensorConvForm& form, const char* workspace);
/// Schedules on Hopper whose taps are distances between rows of one stretch in shared memory
/// (kernels/families/conv/conv_implicit_gemm.cu): nullptr where dilated steps of more than one
/// leave rows out, or stretches are too long.
std::unique_ptr<ScheduleTemplate> MakeHaloConv(const KernelSpec& spec, const DeviceProfile& profile,
                                               TensorConvForm form);
/// Gradients by the filter of those (kernels/families/conv/conv_wgrad.cu); nullptr for other tasks
/// and for small groups.
std::unique_ptr<ScheduleTemplate> MakeFilterGradient(const KernelSpec& spec,
                                                     const DeviceProfile& profile,
                                                     const TensorConvForm& form);

/// Sizes to check at: few images, and so many as affordable up to `several`; none where images are
/// summed, or one is too large.
std::vector<Dims> CheckImages(const KernelSpec& spec, const TensorConvForm& form, int64_t several);
/// Any number of images that can be counted; none where they are summed.
SizeFreedom FreeImages(const TensorConvForm& form);
}  // namespace atunner
