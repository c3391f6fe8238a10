// Products inside of graphs (linear layers, products of 8-bit floats and integers with their scales) on Hopper.
#include <algorithm>

#include "atunner/codegen/family.h"
#include "atunner/codegen/product_graph.h"

namespace atunner {
namespace {

class GraphProduct : public MapsProduct {
 public:
  GraphProduct(const KernelSpec& spec, const DeviceProfile& profile, ProductGraph form)
      : MapsProduct(spec, profile, form.parts),
        finish_(std::move(form.finish)),
        arguments_(std::move(form.arguments)),
        least_(form.graph.symbols().empty() ? 1 : form.graph.symbols().begin()->second.low) {}

  /// As few rows as there may be; and more than one block or cluster has, partly filled.
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    if (!RowsAreOpen()) return {};
    const auto& [name, most] = *spec_.dims.begin();
    const int64_t rows = RowsFetched(configuration);
    const int64_t several = rows < Integer(configuration, "tile_m") ? rows - 3 : Together(configuration).m + 3;
    std::vector<Dims> sizes = {{{name, least_}}};
    if (several > least_) sizes.push_back({{name, std::min(several, most)}});
    return sizes;
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    if (!RowsAreOpen()) return {};
    const std::string& name = spec_.dims.begin()->first;
    return {{name}, {RowsThere(name, configuration)}};
  }

 protected:
  std::string Finish() const override { return finish_; }
  std::vector<ArgBinding> FinishArguments() const override { return arguments_; }

 private:
  /// Is the number of rows the one open size?
  bool RowsAreOpen() const {
    const auto number = [](const std::string& text) { return Expr::MustParse(text).Names().empty(); };
    return spec_.dims.size() == 1 && spec_.dims.begin()->first == parts_.m && number(parts_.n) && number(parts_.k);
  }

  std::string finish_;
  std::vector<ArgBinding> arguments_;
  int64_t least_;
};

class Product : public Family {
 public:
  std::string_view name() const override { return "product"; }
  bool Match(const KernelSpec& spec) const override { return ProductGraphOf(spec).has_value(); }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    ProductGraph form = ProductGraphOf(spec).value();
    const graph::Node& product = form.graph.node(form.product);
    const graph::Node& a = form.graph.node(product.operands[0]);
    const auto number = [&](const graph::Extent& extent) { return extent.Bound(spec.dims).factor(); };
    if (MapsPay(profile, number(product.type.shape[0]), number(product.type.shape[1]), number(a.type.shape[1]),
                static_cast<int64_t>(SizeOf(a.type.dtype)), form.parts.b_transposed))
      return std::make_unique<GraphProduct>(spec, profile, std::move(form));
    if (ElementsFamily().Match(spec)) return ElementsFamily().Bind(spec, profile);
    return Fail(ErrorCode::kUnsupported, "no schedule family computes '" + spec.name + "' on " + profile.name +
                                             ": products of graphs take Hopper");
  }
};

}  // namespace

const Family& ProductFamily() {
  static const Product family;
  return family;
}

}  // namespace atunner
