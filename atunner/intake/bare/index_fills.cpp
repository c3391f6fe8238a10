#include "atunner/intake/bare/index_fills.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "atunner/intake/bare/index_arrays.h"
#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/structure_layout.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

class IndexFiller {
 public:
  explicit IndexFiller(SourceReading& out) : out_(out) {}

  const ArgSpec* TensorOf(const std::string& name) const {
    const auto tensor = std::ranges::find(out_.tensors, name, &ArgSpec::name);
    return tensor == out_.tensors.end() ? nullptr : &*tensor;
  }

  /// The value that a number, a parameter or a constant of the source has as a factor, as text;
  /// empty = unknown.
  std::string FactorText(const std::string& factor) const {
    const auto& parameters = out_.kernel->parameters;
    const auto parameter = std::ranges::find(parameters, factor, &KernelParameter::name);
    const auto index = static_cast<size_t>(parameter - parameters.begin());
    if (parameter != parameters.end())
      return out_.bindings[index].kind == ArgBinding::Kind::kScalar
                 ? out_.bindings[index].value.text()
                 : "";
    const FileConstant* constant = out_.syntax.FindConstant(factor);
    const auto value = LiteralOf(constant ? constant->value : factor);
    return value ? std::to_string(*value) : "";
  }

  /// A place of float4* is one of four elements of the tensor.
  int LanesOf(const std::string& array) const {
    const auto& parameters = out_.kernel->parameters;
    const auto parameter = std::ranges::find(parameters, array, &KernelParameter::name);
    if (parameter == parameters.end()) return 1;
    const auto alias = out_.syntax.FindAlias(parameter->type);
    const std::string type = alias == out_.syntax.aliases.end() ? parameter->type : alias->second;
    auto known = ParseCType(type);
    if (!known) known = FloatsOf(out_.syntax, type);
    return known ? known->lanes : 1;
  }

  /// How many different values may address the array so; empty when it has no tensor.
  std::string PlacesOf(const AddressedArray& use, bool offsets) const {
    const ArgSpec* tensor = TensorOf(use.array);
    if (tensor == nullptr) return "";
    std::string elements = "1";
    for (const Expr& extent : tensor->shape) elements += fmt::format(" * ({})", extent.text());
    if (const int lanes = LanesOf(use.array); lanes > 1)
      elements = fmt::format("({}) // {}", elements, lanes);
    std::string divisor;
    for (const std::string& factor : use.scale) {
      const std::string text = FactorText(factor);
      if (text.empty()) return "1";
      divisor += fmt::format("{}({})", divisor.empty() ? "" : " * ", text);
    }
    if (use.plus != 0) elements = fmt::format("max(0, {} - {})", elements, use.plus);
    if (!divisor.empty()) return fmt::format("({}) // ({})", elements, divisor);
    std::string row;
    for (const std::string& factor : use.row) {
      const std::string text = FactorText(factor);
      if (text.empty()) return offsets ? elements : "1";
      row += fmt::format("{}({})", row.empty() ? "" : " * ", text);
    }
    return row.empty() || offsets ? elements : fmt::format("min({}, {})", elements, row);
  }

  /// Integers that address other arrays must lie within them; what the host fills them with is not
  /// known.
  void Run() {
    std::vector<std::string> integers;
    for (const ArgSpec& arg : out_.tensors) {
      const bool open = arg.fill.kind == Fill::Kind::kFamilies &&
                        !out_.stated.fills.contains(arg.name);
      if (open && arg.role != Role::kOutput && !IsFloat(arg.dtype) && arg.dtype != DType::kBool)
        integers.push_back(arg.name);
    }
    for (const auto& [name, found] : FindIndexArrays(out_.syntax, *out_.kernel, integers)) {
      ArgSpec& arg = *std::ranges::find(out_.tensors, name, &ArgSpec::name);
      std::string end;
      std::set<std::string> arrays;
      const int64_t first = found.into.empty()
                                ? 0
                                : std::ranges::max(found.into, {}, &AddressedArray::minus).minus;
      for (const AddressedArray& use : found.into) {
        std::string places = PlacesOf(use, found.offsets);
        if (places.empty() || (found.offsets && use.array == name)) continue;
        if (use.minus < first) places = fmt::format("max(0, {} - {})", places, first - use.minus);
        end = end.empty() || end == places ? places : fmt::format("min({}, {})", end, places);
        arrays.insert("'" + use.array + "'");
      }
      if (end.empty() && found.offsets)
        end = PlacesOf({.array = name, .scale = {}, .row = {}}, true);
      const auto parsed = Expr::Parse(end);
      if (end.empty() || !parsed) continue;
      for (const std::string& size : parsed->Names()) out_.used_in_sizes.insert(size);
      arg.fill.kind = found.offsets ? Fill::Kind::kOffsets : Fill::Kind::kIndices;
      arg.fill.low = static_cast<double>(first);
      arg.fill.path = SizeOf(arg.dtype) < 4 ? fmt::format("min({}, {})", end,
                                                          int64_t{1} << (8 * SizeOf(arg.dtype) - 1))
                                            : end;
      out_.notes.push_back(fmt::format(
          "'{}' is filled with {}{}{}; state another fill with // atunner: fill {} = …", name,
          found.offsets ? "ascending offsets" : "indices",
          first == 0 ? "" : fmt::format(" from {} on", first),
          arrays.empty() ? "" : fmt::format(" of {}", fmt::join(arrays, " and ")), name));
    }
  }

  SourceReading& out_;
};

}  // namespace

void FillIndexArrays(SourceReading& reading) { IndexFiller(reading).Run(); }

}  // namespace atunner
