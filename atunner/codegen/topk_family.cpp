// Top-k: the places of the first few of each row in sorted order, and what stands there. A block finds those of a row
// in two passes, of which the second meets the row in a cache; many of a row it finds by sorting all of it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "atunner/codegen/family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::NodeId;

constexpr int64_t kFew = 256;          // ranks that are found without sorting
constexpr int64_t kMostSorted = 6144;  // elements of 64 bits in shared memory

std::optional<NodeForm> FormOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  const auto id = fused ? OnlyNode<graph::Sort>(*fused) : std::nullopt;
  if (!id) return std::nullopt;
  const graph::Node& sort = fused->node(*id);
  const graph::Node& x = fused->node(sort.operands[0]);
  const auto last = static_cast<int64_t>(x.type.rank()) - 1;
  const DType dtype = x.type.dtype;
  const bool ordered = (IsFloat(dtype) && SizeOf(dtype) <= 4 && SizeOf(dtype) >= 2) || dtype == DType::kInt32;
  const bool rows = sort.As<graph::Sort>()->axis == last && x.type.shape[last].factor() < INT32_MAX / 64 &&
                    (sort.type.shape[last].factor() <= kFew || x.type.shape[last].factor() <= kMostSorted);
  const bool outputs = std::ranges::all_of(fused->outputs(), [&](const graph::Output& output) {
    const graph::Node& node = fused->node(output.node);
    const auto* gather = node.As<graph::Gather>();
    return output.node == *id || (gather && gather->axis == last && gather->batch == last &&
                                  node.operands == std::vector<NodeId>{sort.operands[0], *id});
  });
  return x.As<graph::Input>() && ordered && rows && outputs ? std::optional(NodeForm{*fused, *id}) : std::nullopt;
}

class TopKTemplate : public GraphTemplate {
 public:
  TopKTemplate(const KernelSpec& spec, const DeviceProfile& profile, NodeForm form)
      : GraphTemplate(spec, profile, std::move(form.graph)), sort_(graph_.node(form.node)) {
    const auto bytes = static_cast<int64_t>(SizeOf(x().type.dtype));
    space_.parameters = {
        {"block", Integers({32, 64, 128, 256, 512, 1024}), "threads, which share a row"},
        {"vector", VectorWidths(bytes, Columns(), 16), "neighbouring elements that a thread reads at once"},
    };
    Add(fmt::format("block <= 64 or block <= 2 * {} or block * vector < 2 * {}", Ranks(), Columns()),
        "more threads than elements");
    if (!Whole()) Add(fmt::format("block >= {}", 2 * Ranks()), "two groups of threads for each rank");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants;
    constants.Define("WHOLE", Whole() ? 1 : 0)
        .Int("COLS", Columns(), "elements of a row")
        .Int("K", sort_.type.shape.back().factor(), "that are wanted")
        .Int("RANKS", Ranks(), "of which a group has one each")
        .Bool("DESCENDING", sort_.As<graph::Sort>()->descending)
        .Line(fmt::format("typedef {} Compared;", graph::CudaArithmetic(x().type.dtype, false)));
    return RenderedKernel{Source(configuration, "the first of rows", constants,
                                 {embed::kVectorCuh, embed::kCombineCuh, embed::kWarpReduceCuh, embed::kSortCuh,
                                  embed::kTopkCuh, Kernel()}),
                          Plan(configuration, {Launch("kernel", RowCount(), "block")})};
  }

  SizeFreedom FreeSizes(const Configuration&) const override { return OpenSize(); }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double width = Real(at["vector"]) * Real(static_cast<int64_t>(SizeOf(x().type.dtype)));
    // Vectors of a thread; or elements, where it sorts them: that has many steps, few of which leave a warp.
    const double share = Real(Columns()) / Real(at["block"] * (Whole() ? 1 : at["vector"]));
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps * (1 + 0.2 * std::log2(16 / width)) *
           (1 + 0.05 * std::fabs(std::log2(share / 8)));
  }

 private:
  const graph::Node& x() const { return graph_.node(sort_.operands[0]); }
  int64_t Columns() const { return x().type.shape.back().factor(); }
  /// Are more wanted than a bound helps to find?
  bool Whole() const { return sort_.type.shape.back().factor() > kFew; }
  /// A power of two, at least as many as are wanted.
  int64_t Ranks() const {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sort_.type.shape.back().factor())));
  }
  std::string RowCount() const {
    return graph::ElementCount({x().type.shape.begin(), x().type.shape.end() - 1}).ToString();
  }
  std::string Kernel() const {
    std::string text = KernelHead(spec_) + fmt::format(R"(  const long long row = blockIdx.x;
  const auto* const x = in_{} + row * COLS;
  first_of_row(x, [&](int rank, int place) {{
)",
                                                       x().name);
    for (const graph::Output& output : graph_.outputs())
      text += fmt::format("    out_{}[row * K + rank] = {};\n", output.name,
                          graph_.node(output.node).As<graph::Sort>() ? "place" : "x[place]");
    return text + "  });\n}\n";
  }

  graph::Node sort_;
};

}  // namespace

constinit const Family kTopKFamily = FormFamily<TopKTemplate, FormOf>("topk");

}  // namespace atunner
