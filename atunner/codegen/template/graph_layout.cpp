#include "atunner/codegen/template/graph_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/model/kernel/accuracy.h"
#include "embed/families.h"

namespace atunner {

using graph::Shape;

std::string IndexType(const graph::ValidGraph& graph, const Dims& dims) {
  const bool small = std::ranges::all_of(graph.nodes(), [&](const graph::Node& node) {
    return graph::ElementCount(node.type.shape).Bound(dims).factor() < INT32_MAX / 2;
  });
  return small ? "int" : "long long";
}

std::string Indented(const std::string& text) {
  std::string result;
  size_t depth = 0;
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    const size_t begin = std::min(text.find_first_not_of(' ', at), end);
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with('}')) --depth;
    result += (line.empty() || line[0] == '#' ? "" : std::string(2 * depth, ' ')) + line + '\n';
    if (line.ends_with('{')) ++depth;
  }
  return result;
}

std::string LanesText(const graph::ElementText& elements, const std::string& each,
                      const std::string& indent, const std::string& before,
                      const std::string& first) {
  return elements.Scope(0) + before + "#pragma unroll\n" + indent +
         "for (int lane = 0; lane < VEC; ++lane) {\n" + first + elements.Scope(1) + each + indent +
         "}\n";
}

std::string ResultsText(graph::ElementText& elements, const graph::ValidGraph& graph,
                        const std::vector<graph::Output>& outputs, const graph::Coordinates& at,
                        const std::string& offset, const std::string& indent,
                        const std::string& first, const std::string& guard) {
  std::string vectors, stores, writes;
  for (const graph::Output& output : outputs) {
    const std::string value = elements.Of(output.node, at).text;
    vectors += fmt::format("{}Vector<{}> {}_out;\n", indent,
                           CudaName(graph.node(output.node).type.dtype), output.name);
    stores += fmt::format("{}  store({}_out.element[lane], {});\n", indent, output.name, value);
    writes += fmt::format("{0}{3}write(out_{1} + {2}, {1}_out);\n", indent, output.name, offset,
                          guard);
  }
  return LanesText(elements, stores, indent, vectors, first) + writes;
}

std::string KernelParameters(const KernelSpec& spec) {
  std::string text;
  for (const ArgSpec& arg : spec.args) {
    const bool input = arg.role == Role::kInput;
    text += fmt::format("{}{}{}* __restrict__ {}_{}", text.empty() ? "" : ", ",
                        input ? "const " : "", CudaName(arg.dtype), input ? "in" : "out", arg.name);
  }
  for (const auto& [name, size] : spec.dims) text += ", long long " + name;
  return text;
}

std::string KernelHead(const KernelSpec& spec, std::string_view name) {
  return fmt::format("extern \"C\" __global__ void __launch_bounds__(BLOCK) {}({}) {{\n", name,
                     KernelParameters(spec));
}

int64_t WidestElement(const KernelSpec& spec) {
  size_t widest = 1;
  for (const ArgSpec& arg : spec.args) widest = std::max(widest, SizeOf(arg.dtype));
  return static_cast<int64_t>(widest);
}

std::string CombinerName(graph::Combine op) {
  std::string name(Name(op == graph::Combine::kMean ? graph::Combine::kSum : op));
  name[0] = Capitals(name)[0];
  return name;
}

bool MayBeNarrow(const graph::ValidGraph& graph) {
  const bool narrow = std::ranges::all_of(graph.outputs(), [&](const graph::Output& output) {
    const DType dtype = graph.node(output.node).type.dtype;
    return IsFloat(dtype) && SizeOf(dtype) == 2;
  });
  return narrow && std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
           return node.As<graph::Map>() && graph::HasNarrowForms(node.As<graph::Map>()->body);
         });
}

std::string_view NarrowText(const KernelSpec& spec, const graph::ValidGraph& graph) {
  return MayBeNarrow(graph) && AccuracyOf(spec) != Accuracy::kStrict ? embed::kNarrowCuh
                                                                     : std::string_view();
}

void AddFunctions(const graph::ValidGraph& graph, ParameterSpace& space) {
  if (!MayBeNarrow(graph)) return;
  space.parameters.push_back({"functions",
                              {std::string("short"), std::string("full")},
                              "evaluation of exp, log, tanh, erf and quotients: as 16-bit results "
                              "need it, or in full float32"});
}

bool IsNarrow(const graph::ValidGraph& graph, const ParameterSpace& space,
              const Configuration& configuration) {
  return MayBeNarrow(graph) && ToString(Get(space, configuration, "functions")) == "short";
}

std::vector<Dims> GraphTemplate::CheckSizes(const Shape& shape, int64_t of_block) const {
  if (spec_.dims.size() != 1) return {};
  const auto& [name, most] = *spec_.dims.begin();
  const int64_t least = graph_.symbols().begin()->second.low;
  std::vector<Dims> sizes = {{{name, least}}};
  const int64_t unit = graph::ElementCount(shape).factor();  // for each unit of the open size
  const int64_t few = std::min(
      {2 * of_block / unit + 1, std::max<int64_t>(1, 200000 / unit), most});
  if (few > least) sizes.push_back({{name, few}});
  return sizes;
}

LaunchStep GraphTemplate::Launch(std::string entry, const std::string& blocks,
                                 const std::string& threads) const {
  LaunchStep step = Step(std::move(entry), blocks, Expr::MustParse(threads));
  for (const ArgSpec& arg : spec_.args) AddArguments(step, {arg.name});
  for (const auto& [name, size] : spec_.dims) AddArguments(step, {"i64:" + name});
  return step;
}

SourceUnit GraphTemplate::Source(const Configuration& configuration, std::string_view schedule,
                                 const ConstantBlock& constants,
                                 std::initializer_list<std::string_view> texts) const {
  ConstantBlock all;
  for (size_t i = 0; i < space_.parameters.size(); ++i) {
    const Parameter& parameter = space_.parameters[i];
    const auto* number = std::get_if<int64_t>(&configuration.values[i]);
    if (number)
      all.Int(parameter.name == "vector" ? "VEC" : Capitals(parameter.name), *number,
              parameter.meaning);
  }
  const std::string body = Joined(texts);
  return Titled(fmt::format("{}, scheduled by atunner: {}", spec_.name, schedule), configuration,
                graph::KernelPrelude(body) + "\n" + all.text() + constants.text(), body);
}

std::vector<Value> VectorWidths(int64_t widest, int64_t neighbours, int64_t most_bytes) {
  return PowersOfTwo(16,
                     [&](int64_t v) { return v * widest <= most_bytes && neighbours % v == 0; });
}

}  // namespace atunner
