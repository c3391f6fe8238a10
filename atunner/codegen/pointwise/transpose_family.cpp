// Transposes that change the innermost axis, with element-wise maps before and after: tiles go
// through shared memory, so that both sides move whole lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/graph/match/transposition.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Extent;
using graph::Shape;
using graph::TransposeForm;

std::optional<TransposeForm> FormOf(const Task& task) {
  return task.fused() ? graph::TransposeFormOf(*task.fused()) : std::nullopt;
}

class TransposeTemplate : public GraphTemplate {
 public:
  TransposeTemplate(const KernelSpec& spec, const DeviceProfile& profile, TransposeForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants;
    constants.Line(fmt::format("typedef {} From;", CudaName(spec_.args[0].dtype)))
        .Line(fmt::format("typedef {} To;", CudaName(spec_.args[1].dtype)));
    const std::string blocks = fmt::format(
        "ceil_div({}, tile_a) * ceil_div({}, tile_b) * ({})", form_.extents[form_.a()].ToString(),
        form_.extents[form_.b()].ToString(), Batches().ToString());
    return RenderedKernel{
        Source(configuration, "transpose", constants,
               {embed::kVectorCuh, MapText(), embed::kTransposeCuh, KernelText()}),
        Plan(configuration, {Launch("kernel", blocks, "block")})};
  }

  std::vector<Dims> CheckDims(const Configuration&) const override {
    return CheckSizes(form_.extents, 50000);
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    const auto size = static_cast<double>(SizeOf(spec_.args[0].dtype));
    const auto lines = [&](const char* tile) {
      const double bytes_of_row = Real(at[tile]) * size;
      return bytes_of_row < 128 ? 128 / bytes_of_row : 1.0;
    };
    const CostConstants& costs = CostsOf(profile);
    // Neighbouring bytes that are read together.
    const double piece = Real(at["tile_a"]) * size < 256 ? costs.transpose_piece : 1.0;
    const double block = 1 + costs.transpose_block * std::fabs(std::log2(Real(at["block"]) / 128));
    const double width = Real(at["vector"]) * size;
    const double narrow = width < 4 ? costs.transpose_vector2
                                    : 1 + costs.transpose_narrow * std::log2(16 / width);
    const auto wasted = [&](size_t axis, const char* tile) {
      const auto extent = static_cast<double>(form_.extents[axis].Bound(spec_.dims).factor());
      return std::ceil(extent / Real(at[tile])) * Real(at[tile]) / extent;
    };
    // bytes of a thread
    const double flight = Real(at["tile_a"]) * Real(at["tile_b"]) * size / Real(at["block"]);
    const double late = flight < 32    ? 1 + costs.transpose_few * (32 / flight - 1)
                        : flight > 128 ? costs.transpose_many
                                       : 1.0;
    return bytes * piece * block * lines("tile_a") * lines("tile_b") * narrow * late *
           (0.5 + 0.5 * wasted(form_.a(), "tile_a") * wasted(form_.b(), "tile_b")) /
           profile.dram_gbps;
  }

 private:
  Extent Batches() const {
    Extent count(1);
    for (size_t axis = 0; axis < form_.extents.size(); ++axis) {
      if (!form_.in_tile(axis)) count = count * form_.extents[axis];
    }
    return count;
  }

  void MakeSpace() {
    const int64_t neighbours = std::gcd(form_.extents[form_.a()].factor(),
                                        form_.extents[form_.b()].factor());
    space_.parameters = {
        {"tile_a", Integers({16, 32, 64, 128}), "elements that are neighbours in the operand"},
        {"tile_b", Integers({16, 32, 64, 128}), "elements that are neighbours in the result"},
        {"vector", VectorWidths(std::max<int64_t>(WidestElement(spec_), 2), neighbours, 16),
         "neighbouring elements that a thread moves at once"},
        {"block", Integers({32, 64, 128, 256, 512}), "threads of a block"},
    };
    Add(fmt::format("tile_a * tile_b * {} <= 49152", SizeOf(spec_.args[0].dtype)),
        "the tile exceeds shared memory");
    Add("tile_a >= vector and tile_b >= vector", "a thread turns vector x vector elements");
    Add("tile_a * tile_b >= vector * vector * block", "more threads than elements to turn");
    Add("tile_a * tile_b <= 128 * block", "what a thread has in flight takes registers");
  }

  /// One element of the result from one of the operand: its very bits, where nothing is computed.
  std::string MapText() const {
    if (std::ranges::none_of(graph_.nodes(),
                             [](const graph::Node& node) { return node.As<graph::Map>(); }))
      return "DEVICE To map(const From& element) {\n  return element;\n}\n";
    return graph::ElementFunction(graph_, "map", graph_.inputs()[0], "From",
                                  graph_.outputs()[0].node, "To");
  }

  std::string KernelText() const {
    const std::string a = form_.extents[form_.a()].ToString();
    const std::string b = form_.extents[form_.b()].ToString();
    std::string text = KernelHead(spec_);
    text += fmt::format(
        "  const unsigned tiles_a = ({} + TILE_A - 1) / TILE_A, tiles_b = ({} + TILE_B - 1) / "
        "TILE_B;\n",
        a, b);
    // Blocks that follow each other write neighbours.
    text +=
        "  const unsigned b0 = blockIdx.x % tiles_b * TILE_B, a0 = blockIdx.x / tiles_b % tiles_a "
        "* TILE_A;\n";
    graph::Coordinates from;
    for (size_t axis = 0; axis < form_.extents.size(); ++axis)
      from.push_back({.text = form_.in_tile(axis) ? "0" : "c" + std::to_string(axis)});
    graph::Coordinates to;
    Shape result;
    for (size_t axis : form_.order) to.push_back(from[axis]), result.push_back(form_.extents[axis]);
    const auto place = static_cast<size_t>(std::ranges::find(form_.order, form_.a()) -
                                           form_.order.begin());
    text += "  const unsigned batch = blockIdx.x / tiles_a / tiles_b;\n" +
            CoordinateLines(
                form_.extents, [this](size_t axis) { return !form_.in_tile(axis); }, "c", "batch",
                "long long", "  ");
    return text +
           fmt::format("  transpose_tile(in_{} + {}, out_{} + {}, a0, b0, {}, {}, {}, {});\n}}\n",
                       spec_.args[0].name, NumberText(form_.extents, from), spec_.args[1].name,
                       NumberText(result, to), a, b, graph::StrideOf(form_.extents, form_.b()),
                       graph::StrideOf(result, place));
  }

  TransposeForm form_;
};

}  // namespace

constinit const Family kTransposeFamily{"transpose", TryForm<TransposeTemplate, FormOf>};

}  // namespace atunner
