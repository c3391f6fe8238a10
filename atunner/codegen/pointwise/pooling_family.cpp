// Pooling: sums, means and extremes of windows over the last one to three axes, with element-wise
// maps before and after; and depthwise convolutions, which are sums of weighted elements.
// Neighbouring windows share the elements that they read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/match/pooling.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::ConvAxis;
using graph::ConvForm;
using graph::PoolingForm;

/// Elements from the first to the last of so many neighbouring windows.
int64_t Span(const ConvAxis& axis, int64_t windows) {
  return (windows - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
}

constexpr int64_t kMostThreads = int64_t{1} << 31;
/// Elements of one depth: a thread has all of them at hand.
constexpr int64_t kLargestWindow = 128;

std::optional<PoolingForm> FormOf(const Task& task) {
  auto form = task.fused() ? graph::PoolingFormOf(*task.fused()) : std::nullopt;
  if (!form) return std::nullopt;
  const graph::Shape& out = form->graph.node(form->reduce).type.shape;
  if (Span(form->axes[1], 1) * Span(form->axes[2], 1) > kLargestWindow) return std::nullopt;
  const bool numbered = graph::ElementCount(out).Bound(task.spec().dims).factor() < kMostThreads &&
                        form->axes[0].in * form->axes[1].in * form->axes[2].in < kMostThreads;
  return numbered ? form : std::nullopt;
}

class PoolingTemplate : public GraphTemplate {
 public:
  PoolingTemplate(const KernelSpec& spec, const DeviceProfile& profile, PoolingForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Int("PIECE", Piece(at["vector"]), "neighbouring elements that are read at once");
    AddWindows(constants);
    AddFilter(constants);
    const std::string blocks = fmt::format("ceil_div(({}) * {}, block)", form_.images.ToString(),
                                           ThreadsOfImage(at["vector"], at["below"]));
    return RenderedKernel{
        Source(at, "pooling", constants,
               {embed::kVectorCuh, embed::kCombineCuh, Helpers(), embed::kPoolingCuh, Kernel()}),
        Plan(at, {Launch("kernel", blocks, "block")})};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t elements = form_.axes[0].in * form_.axes[1].in * form_.axes[2].in;  // of an image
    return CheckSizes({form_.images * graph::Extent(elements)},
                      at["block"] * elements / ThreadsOfImage(at["vector"], at["below"]));
  }

  ValidSizes FreeSizes(const Configuration&) const override {
    return OpenSize("threads are numbered by 32 bits");
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double below = Real(at["below"]);
    const CostConstants& costs = CostsOf(profile);
    const auto narrow = [&](int64_t bytes) {
      return 1 + costs.pooling_narrow * std::max(0.0, std::log2(16 / Real(bytes)));
    };
    const int64_t written = at["vector"] * BytesOf(spec_.args.back().dtype);
    const double access = costs.pooling_read * narrow(Piece(at["vector"]) * ElementBytes()) +
                          costs.pooling_written * narrow(written);
    // Where windows do not overlap, threads that write 16 bytes read every other piece of a row at
    // once: max_pool 16 x 32 x 64 x 64 x 64 in float32 150 us with four results side by side, 145.5
    // with two, on an H200.
    const double skipped = form_.axes[2].taps <= form_.axes[2].stride && written >= 16
                               ? costs.pooling_skipped
                               : 1.0;
    // Rows that several threads read come from L1 but once.
    const ConvAxis& height = form_.axes[1];
    const double again = Real(Span(height, at["below"])) / (below * Real(height.stride));
    const double held = Real(Registers(at["vector"], at["below"]));
    const double idle = std::ceil(Real(height.out) / below) * below / Real(height.out);
    const double moved = MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps * access *
                         (1 + costs.pooling_reread * again) *
                         (1 + std::max(0.0, held - costs.pooling_registers) /
                                  costs.pooling_register_slope) *
                         (0.5 + 0.5 * idle) *
                         (1 + costs.pooling_block * std::fabs(std::log2(Real(at["block"]) / 256))) *
                         skipped;
    return form_.conv ? std::max(moved, WeightingNs(at["vector"], at["below"], profile)) : moved;
  }

 private:
  /// The windows along each axis, the types, and the divisor of means.
  void AddWindows(ConstantBlock& constants) const {
    for (size_t i = 0; i < form_.axes.size(); ++i) {
      const ConvAxis& axis = form_.axes[i];
      constants.Line(fmt::format(
          "constexpr int IN_{0} = {1}, OUT_{0} = {2}, SIZE_{0} = {3}, STRIDE_{0} = {4}, PAD_{0} = "
          "{5}, "
          "DILATION_{0} = {6};",
          "DHW"[i], axis.in, axis.out, axis.taps, axis.stride, -axis.shift, axis.dilation));
    }
    constants
        .Int("COUNT", form_.op == Combine::kMean ? WindowElements() : 1, "divisor of the results")
        .Line(fmt::format("typedef {} From;", CudaName(spec_.args[0].dtype)))
        .Line(fmt::format("typedef {} To;", CudaName(spec_.args.back().dtype)))
        .Line(fmt::format("typedef {} Acc;", Accumulator()));
  }
  /// The combining operation, its neutral element, and the maps before and after it.
  std::string Helpers() const {
    const DType dtype = graph_.node(form_.reduce).type.dtype;
    return fmt::format(
        "typedef {} Op;\n#define NEUTRAL ((Acc){})\n{}{}", CombinerName(form_.op),
        graph::CudaLiteral(dtype, graph::Neutral(form_.op, dtype), false),
        graph::ElementFunction(graph_, "before", graph_.inputs()[0], "From", form_.operand, "Acc"),
        graph::ElementFunction(graph_, "after", form_.reduce, "Acc", graph_.outputs()[0].node,
                               "To"));
  }
  int64_t ElementBytes() const { return BytesOf(spec_.args[0].dtype); }
  std::string Accumulator() const {
    return graph::CudaArithmetic(graph_.node(form_.reduce).type.dtype, false);
  }
  int64_t WindowElements() const {
    return form_.axes[0].taps * form_.axes[1].taps * form_.axes[2].taps;
  }
  int64_t ThreadsOfImage(int64_t vector, int64_t rows) const {
    return form_.axes[0].out * CeilDiv(form_.axes[1].out, rows) *
           CeilDiv(form_.axes[2].out, vector);
  }
  /// Elements that a thread with so many windows side by side can read at once, wherever its strip
  /// begins.
  int64_t Piece(int64_t vector) const {
    int64_t piece = 16 / ElementBytes();
    while (form_.axes[2].in % piece != 0 || vector * form_.axes[2].stride % piece != 0) piece /= 2;
    return piece;
  }
  /// Registers that strips and results take, approximately.
  int64_t Registers(int64_t vector, int64_t rows) const {
    const int64_t piece = Piece(vector);
    const int64_t span = Span(form_.axes[2], vector);
    const int64_t weights = form_.conv ? form_.axes[1].taps * form_.axes[2].taps : 0;
    const int64_t strip = (span + 2 * piece - 2) / piece * piece * ElementBytes();
    return weights + (strip * Span(form_.axes[1], rows) + 3) / 4 + (rows + 1) * vector + span;
  }

  /// Instructions of all threads, at the rate of multiplications: those, conversions and reads of
  /// elements and weights.
  double WeightingNs(int64_t vector, int64_t rows, const DeviceProfile& profile) const {
    const int64_t span = Span(form_.axes[2], vector);
    const int64_t taps = form_.axes[1].taps * form_.axes[2].taps;
    const int64_t reads = Span(form_.axes[1], rows) * (span + 2 * CeilDiv(span, Piece(vector))) +
                          2 * taps + 30;
    const int64_t each = form_.axes[0].taps * (taps * vector * rows + reads);
    const int64_t threads = form_.images.Bound(spec_.dims).factor() * ThreadsOfImage(vector, rows);
    return 2e9 * static_cast<double>(threads * each) / profile.PeakFlops(DType::kFloat32, false);
  }

  void MakeSpace() {
    const int64_t written = BytesOf(spec_.args.back().dtype);
    const int64_t out = form_.axes[2].out;
    // Weighted windows are worth the results that the last thread of a row computes in vain.
    const auto fits = [&](int64_t v) {
      return v * written <= 16 && (out % v == 0 || (form_.conv && out >= 2 * v));
    };
    const auto has = [&](int64_t rows) { return rows == 1 || rows <= form_.axes[1].out; };
    space_.parameters = {
        {"vector", PowersOfTwo(8, fits), "neighbouring results of a thread"},
        {"below", PowersOfTwo(4, has), "rows of results of a thread"},
        {"block", Integers({64, 128, 256, 512}), "threads of a block"},
    };
    for (int64_t vector : {1, 2, 4, 8}) {
      for (int64_t rows : {1, 2, 4}) {
        if (vector * rows > 1 && Registers(vector, rows) > 160)
          Add(fmt::format("vector != {} or below != {}", vector, rows),
              "strips do not fit in registers");
      }
    }
  }

  void AddFilter(ConstantBlock& constants) const {
    const ConvForm none;
    const ConvForm& conv = form_.conv ? *form_.conv : none;
    constants.Bool("WEIGHTED", form_.conv.has_value())
        .Line(fmt::format("constexpr int CHANNELS = {}, FILTER_D = {}, FILTER_H = {}, FILTER_W = "
                          "{}, FILTER = {};",
                          conv.groups, conv.axes[0].w, conv.axes[1].w, conv.axes[2].w,
                          conv.w.group));
  }

  std::string Kernel() const {
    return fmt::format(
        "{}  pool_all(in_{}, {}, out_{}, {}, blockIdx.x * BLOCK + threadIdx.x);\n}}\n",
        KernelHead(spec_), form_.conv ? form_.conv->x.name : spec_.args[0].name,
        form_.conv ? fmt::format("in_{} + {}", form_.conv->w.name, form_.conv->w.base) : "nullptr",
        spec_.args.back().name, form_.images.ToString());
  }

  PoolingForm form_;
};

}  // namespace

constinit const Family kPoolingFamily{"pooling", TryForm<PoolingTemplate, FormOf>};

}  // namespace atunner
