#include "atunner/jobs/operators/operator_cases.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "atunner/graph/compose.h"
#include "atunner/graph/library/library.h"
#include "atunner/operators/graph_operator.h"

namespace atunner::jobs {
namespace {

/// Tiny, primes and large for the virtual GPU, then primes and large for a GPU; attributes "k=v
/// k=v".
struct ShapeRow {
  const char* name;
  std::array<const char*, 5> shapes;
  const char* attributes = "";
};

/// For operators of one shape whose last axis matters.
constexpr ShapeRow kUsual = {"", {"2,3", "7,13", "4,256", "1009,1021", "4096,2048"}};
constexpr ShapeRow kImages = {"", {"1,2,2,2", "2,3,5,7", "2,4,8,8", "7,31,61,67", "16,64,56,56"}};

constexpr ShapeRow kRows[] = {
    {"matmul", {"1,2,3", "7,13,11", "64,64,32", "1021,509,251", "2048,2048,2048"}},
    {"conv2d",
     {"1,3,3,2 3,2,2", "3,7,11,5 13,3,3", "2,8,8,16 32,3,3", "7,31,37,13 17,3,3",
      "16,56,56,64 64,3,3"}},
    {"flash_attention", {"1,1,2,4", "1,3,37,8", "1,2,64,32", "3,5,509,64", "2,8,2048,64"}},
    {"batched_matmul",
     {"1,2,3 1,3,2", "3,7,13 3,13,11", "2,32,16 2,16,32", "5,509,251 5,251,127",
      "16,512,512 16,512,512"}},
    {"batched_matmul",
     {"2,3 2,3", "7,13 11,13", "32,16 32,16", "509,251 127,251", "1024,1024 1024,1024"},
     "transpose_b=1"},
    {"batched_matmul",
     {"2,1,2,3 3,2", "3,1,7,5 1,2,5,11", "2,1,16,8 1,2,8,16", "5,1,127,61 1,3,61,67",
      "8,1,256,256 1,4,256,256"}},
    {"addmm", {"2,3 3,2", "7,13 13,11", "32,16 16,32", "509,251 251,127", "1024,1024 1024,1024"}},
    {"outer", {"2 3", "7 13", "64 128", "1009 1021", "4096 2048"}},
    {"triangular_matmul",
     {"2,2 2,3", "7,7 7,13", "32,32 32,16", "509,509 509,127", "1024,1024 1024,1024"}},
    {"linear", {"2,3 4,3", "7,13 11,13", "32,16 32,16", "509,251 127,251", "1024,1024 1024,1024"}},
    {"quantized_linear",
     {"2,3 4,3", "7,13 11,13", "32,16 32,16", "509,251 127,251", "1024,1024 1024,1024"}},
    {"int8_linear",
     {"2,3 4,3", "7,13 11,13", "32,16 32,16", "509,251 127,251", "1024,1024 1024,1024"}},
    {"fp8_linear",
     {"2,3 4,3", "7,13 11,13", "32,16 32,16", "509,251 127,251", "1024,1024 1024,1024"}},
    {"int4_linear",
     {"2,32 3,32", "7,96 11,96", "32,64 32,64", "509,352 127,352", "1024,1024 1024,1024"}},
    {"attention_gqa",
     {"1,2,2,2 1,1,3,2", "1,3,7,5 1,3,11,5", "2,4,16,8 2,2,16,8", "3,5,127,61 3,5,131,61",
      "2,4,256,64 2,2,256,64"}},
    {"attention_gqa",
     {"1,2,2,2 1,1,3,2", "1,3,7,5 1,3,11,5", "2,4,16,8 2,2,16,8", "3,5,127,61 3,5,131,61",
      "2,4,256,64 2,2,256,64"},
     "causal=1 window=5"},
    {"attention_masked",
     {"1,2,2,2 1,1,3,2", "1,3,7,5 1,3,11,5", "2,4,16,8 2,2,16,8", "3,5,127,61 3,5,131,61",
      "2,4,256,64 2,2,256,64"}},
    {"attention_varlen",
     {"2,2,2,2 2,1,3,2", "3,3,7,5 3,3,11,5", "2,4,16,8 2,2,16,8", "3,5,127,61 3,5,131,61",
      "3,4,256,64 3,2,256,64"}},
    {"attention_paged",
     {"2,2,2 3,2,1,2 2,2", "3,5,7 7,3,5,7 3,2", "4,8,16 16,4,2,16 4,4", "13,7,61 127,5,7,61 13,29",
      "32,32,128 1024,16,8,128 32,64"}},
    {"rope", {"1,2,2", "3,7,6", "2,16,32", "31,127,62", "4,16,1024,128"}},
    {"rope", {"1,2,2", "3,7,6", "2,16,32", "31,127,62", "4,16,1024,128"}, "interleaved=1"},
    {"adamw",
     {"2,3 1 5", "7,13 13 3,5,7", "4,256 256 64,64", "1009,1021 1021 127,509 3",
      "4096,2048 2048 2048,512 2048"}},
    {"sgd",
     {"2,3 1 5", "7,13 13 3,5,7", "4,256 256 64,64", "1009,1021 1021 127,509 3",
      "4096,2048 2048 2048,512 2048"}},
    {"clip_grad_norm",
     {"2,3 1 5", "7,13 13 3,5,7", "4,256 256 64,64", "1009,1021 1021 127,509 3",
      "4096,2048 2048 2048,512 2048"}},
    {"unscale",
     {"2,3 1 5", "7,13 13 3,5,7", "4,256 256 64,64", "1009,1021 1021 127,509 3",
      "4096,2048 2048 2048,512 2048"}},
    {"adamw", kUsual.shapes},
    {"clip_grad_norm", kUsual.shapes},
    {"unscale", kUsual.shapes},
    {"swiglu_packed", {"2,2", "7,14", "4,256", "1009,1022", "4096,2048"}},
    {"geglu_packed", {"2,2", "7,14", "4,256", "1009,1022", "4096,2048"}},
    {"conv",
     {"1,1,3,3 2,1,2,2", "1,3,7,5 5,3,3,2", "2,8,8,8 8,8,3,3", "5,13,31,29 7,13,3,5",
      "16,64,56,56 64,64,3,3"},
     "padding=1"},
    {"conv",
     {"1,1,3 2,1,2", "3,5,13 7,5,3", "2,8,32 8,8,5", "5,13,1021 7,13,5", "16,64,4096 64,64,9"},
     "stride=2"},
    {"conv",
     {"1,1,2,2,2 1,1,2,2,2", "1,3,5,3,5 2,3,3,2,3", "1,4,4,8,8 4,4,3,3,3", "3,5,7,13,11 7,5,3,3,3",
      "2,32,16,28,28 32,32,3,3,3"}},
    {"conv",
     {"1,2,3,3 2,1,2,2", "1,5,7,11 5,1,3,3", "2,8,8,8 8,1,3,3", "5,5,31,29 5,1,3,5",
      "16,5,112,112 5,1,7,7"},
     "groups=C"},
    {"separable_conv",
     {"1,2,3,3 2,1,2,2", "1,5,7,11 5,1,3,3", "2,8,8,8 8,1,3,3", "5,5,31,29 5,1,3,5",
      "8,32,56,56 32,1,3,3"}},
    {"conv_transpose",
     {"1,1,2,2 1,2,2,2", "1,3,5,7 3,5,3,2", "2,8,8,8 8,8,4,4", "5,13,31,29 13,7,3,5",
      "16,64,28,28 64,64,4,4"},
     "stride=2 padding=1"},
    {"conv_transpose",
     {"1,1,3 1,2,2", "3,5,13 5,7,3", "2,8,32 8,8,5", "5,13,509 13,7,5", "16,64,2048 64,64,9"}},
    {"conv_transpose",
     {"1,1,2,2,2 1,1,2,2,2", "1,3,3,2,3 3,2,3,2,3", "1,4,4,4,4 4,4,3,3,3", "3,5,7,5,7 5,7,3,3,3",
      "2,32,8,14,14 32,32,3,3,3"},
     "stride=2"},
    {"max_pool", kImages.shapes},
    {"max_pool",
     {"1,1,3,3", "3,5,7,11", "2,8,16,8", "7,31,61,67", "16,64,56,56"},
     "size=3 stride=2 padding=1"},
    {"avg_pool", kImages.shapes},
    {"avg_pool", {"1,2,2", "3,5,13", "2,8,64", "7,31,4099", "32,64,16384"}},
    {"max_pool", {"1,1,2,2,2", "2,3,5,3,7", "1,4,8,4,4", "3,7,13,31,29", "2,16,32,56,56"}},
    {"avg_pool", {"1,1,2,2,2", "2,3,5,3,7", "1,4,8,4,4", "3,7,13,31,29", "2,16,32,56,56"}},
    {"adaptive_avg_pool",
     {"1,2,2,2", "2,3,5,7", "2,4,8,8", "7,31,61,67", "16,64,56,56"},
     "output=2"},
    {"adaptive_max_pool",
     {"1,2,2,2", "2,3,5,7", "2,4,8,8", "7,31,61,67", "16,64,56,56"},
     "output=2"},
    {"group_norm", {"1,2,3", "3,10,7", "2,8,16,8", "7,62,61,67", "32,64,56,56"}},
    {"instance_norm",
     {"1,2,3,2", kImages.shapes[1], kImages.shapes[2], kImages.shapes[3], kImages.shapes[4]}},
    // longer rows leave the range of float32
    {"prod", {"2,3", "7,13", "64,16", "40009,13", "524288,16"}},
    {"batch_norm", kImages.shapes},
    {"batch_norm_training", kImages.shapes},
    {"batch_norm_inference", kImages.shapes},
    {"embedding", {"2,2 3", "11,13 7", "64,32 4,16", "1009,127 1021", "32768,256 8,1024"}},
    {"embedding_bag",
     {"2,2 2,3", "11,13 7,5", "64,32 16,4", "1009,127 251,7", "32768,256 2048,16"}},
    {"index_select", {"2,2 3", "11,13 7", "64,32 16", "1009,127 1021", "32768,256 8192"}},
    {"gather", {"2,3 2,2", "11,13 11,7", "32,64 32,16", "1009,127 1009,61", "4096,2048 4096,512"}},
    {"scatter_add", {"2,2 3", "11,13 7", "64,32 16", "1009,127 1021", "4096,2048 2048"}},
    {"scatter", {"2,2 3", "11,13 7", "64,32 16", "1009,127 1021", "4096,2048 2048"}},
    {"scatter_max", {"2,2 3", "11,13 7", "64,32 16", "1009,127 1021", "4096,2048 2048"}},
    {"one_hot", {"2,3", "7,13", "16,32", "1009,127", "2048,1024"}},
    {"concat", {"2,3 2,2", "7,13 7,5", "16,64 16,32", "1009,509 1009,251", "4096,2048 4096,1024"}},
    {"permute", {"1,2,2,3", "3,5,7,2", "2,8,4,16", "7,13,31,29", "8,512,16,128"}},
    {"split", {"2,2", "7,26", "4,256", "1009,1018", "4096,2048"}},
    {"topk", {"2,3", "7,13", "8,64", "1009,251", "8192,512"}},
    {"sort", {"2,3", "7,13", "8,64", "1009,251", "8192,512"}},
    {"pixel_shuffle", {"1,4,1,2", "3,20,7,5", "2,16,8,8", "7,52,31,29", "16,256,64,64"}},
    {"pixel_unshuffle", {"1,1,2,2", "3,5,14,10", "2,4,16,16", "7,13,62,58", "16,64,128,128"}},
    {"unfold", {"1,1,3,3", "2,3,7,5", "2,4,8,8", "5,13,31,29", "8,32,56,56"}},
    {"interpolate", kImages.shapes, "factor=1.5"},
    {"interpolate", kImages.shapes, "align_corners=1"},
    {"upsample_nearest", kImages.shapes},
    {"quantize_fp8", kUsual.shapes},
};

/// "stride=2 groups=C", in which C is the second extent of the shape: a group for each channel.
Attributes AttributesOf(const char* text, const std::string& shape) {
  Attributes attributes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string value = word.substr(equals + 1);
    const std::string channels = shape.substr(shape.find(',') + 1);
    const double number = std::stod(value == "C" ? channels : value);
    const bool whole = value.find('.') == std::string::npos;
    attributes[word.substr(0, equals)] = whole ? Value(static_cast<int64_t>(number))
                                               : Value(number);
  }
  return attributes;
}

bool IsPointwise(const Operator& op) {
  const auto found = graph::FindInLibrary(op.info().name);
  return found && found->op->pointwise;
}

/// The graph that an operator of the library is at these shapes.
Result<graph::ValidGraph> GraphOf(const Operator& op, const OperatorCase& one) {
  const auto found = graph::FindInLibrary(op.info().name);
  return graph::Build(*found,
                      {one.dtype, ParsedShapes(one.shapes.text), one.shapes.attributes, false});
}

// outputs of one task: so many pointers fit into registers beside the work
constexpr size_t kTogether = 12;

}  // namespace

bool Wanted(const Operator& op, const std::vector<std::string>& only) {
  return only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
           return op.info().name.find(part) != std::string::npos;
         });
}

std::vector<std::vector<int64_t>> ParsedShapes(const std::string& text) {
  std::vector<std::vector<int64_t>> shapes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::istringstream extents(word);
    shapes.emplace_back();
    for (std::string extent; std::getline(extents, extent, ',');)
      shapes.back().push_back(std::atoll(extent.c_str()));
  }
  return shapes;
}

std::vector<OperatorShapes> ShapesOf(const Operator& op, bool full) {
  std::string name = op.info().name;
  if (const auto found = graph::FindInLibrary(name); found && found->backward)
    name = found->op->name;
  std::vector<const ShapeRow*> rows;
  for (const ShapeRow& row : kRows) {
    if (name == row.name) rows.push_back(&row);
  }
  if (rows.empty()) rows.push_back(&kUsual);
  std::vector<OperatorShapes> shapes;
  for (const ShapeRow* row : rows) {
    const char* const texts[] = {row->shapes[0], row->shapes[full ? 3 : 1],
                                 row->shapes[full ? 4 : 2]};
    const char* const sizes[] = {"tiny", "primes", "large"};
    for (size_t i = 0; i < 3; ++i)
      shapes.push_back(
          {op.info().name, sizes[i], texts[i], AttributesOf(row->attributes, texts[i])});
  }
  return shapes;
}

Result<KernelSpec> SpecOf(const OperatorCase& one) {
  if (one.operators.size() == 1)
    return one.operators[0]->Instantiate(
        {ParsedShapes(one.shapes.text), one.dtype, one.shapes.attributes});
  std::vector<graph::ValidGraph> graphs;
  for (const Operator* op : one.operators) {
    ATUNNER_TRY(graph::ValidGraph graph, GraphOf(*op, one));
    graphs.push_back(std::move(graph));
  }
  ATUNNER_TRY(const graph::ValidGraph together, graph::Together("pointwise", graphs));
  return SpecOfGraph(together, {});
}

namespace {

/// Operators and the gradients that are derived from them.
std::vector<const Operator*> WantedOperators(const std::vector<std::string>& only) {
  const std::vector<const Operator*> listed = AllOperators();
  std::vector<const Operator*> wanted;
  for (const Operator* op : listed) {
    if (Wanted(*op, only)) wanted.push_back(op);
    const Operator* gradient = FindOperator(op->info().name + "_backward");
    const bool derived = gradient != nullptr && std::ranges::find(listed, gradient) == listed.end();
    if (derived && Wanted(*gradient, only)) wanted.push_back(gradient);
  }
  return wanted;
}

/// A mean over 10^6 elements hands each a gradient that float16 does not hold: there, of a sum.
void KeepInRange(const Operator& op, DType dtype, OperatorShapes& shapes) {
  const auto found = graph::FindInLibrary(op.info().name);
  if (dtype != DType::kFloat16 || !found || !found->backward) return;
  for (const graph::Attribute& attribute : found->op->attributes) {
    if (attribute.name == "reduction") shapes.attributes["reduction"] = std::string("sum");
  }
}

/// At every shape, if it can be had at any: then that it cannot at another is a failure.
std::vector<OperatorCase> CasesOf(const Operator& op, DType dtype, bool full) {
  std::vector<OperatorCase> cases;
  bool any = false;
  for (OperatorShapes& shapes : ShapesOf(op, full)) {
    if (full) KeepInRange(op, dtype, shapes);
    any |= op.Instantiate({ParsedShapes(shapes.text), dtype, shapes.attributes}).has_value();
    cases.push_back({{&op}, dtype, std::move(shapes)});
  }
  return any ? cases : std::vector<OperatorCase>{};
}

/// Cases of single pointwise operators of one type, some operators to a case.
std::vector<OperatorCase> Grouped(const std::vector<OperatorCase>& alone) {
  std::vector<OperatorCase> groups;
  for (const char* size : {"tiny", "primes", "large"}) {
    size_t count = 0;
    for (const OperatorCase& one : alone) {
      if (one.shapes.size != size) continue;
      if (count++ % kTogether != 0) {
        groups.back().operators.push_back(one.operators[0]);
        continue;
      }
      groups.push_back(one);
      groups.back().shapes.name = "pointwise";
    }
  }
  return groups;
}

}  // namespace

std::vector<OperatorCase> OperatorCases(const OperatorTestRequest& request) {
  const std::vector<const Operator*> operators = WantedOperators(request.only);
  std::vector<DType> dtypes = request.dtypes;
  if (dtypes.empty())
    dtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32};
  std::vector<OperatorCase> cases;
  std::map<const Operator*, bool> taken;
  for (DType dtype : dtypes) {
    std::vector<OperatorCase> pointwise;
    for (const Operator* op : operators) {
      const auto own = CasesOf(*op, dtype, request.full);
      taken[op] |= !own.empty();
      auto& list = !request.apart && IsPointwise(*op) ? pointwise : cases;
      list.insert(list.end(), own.begin(), own.end());
    }
    const auto groups = Grouped(pointwise);
    cases.insert(cases.end(), groups.begin(), groups.end());
  }
  // An operator that no type instantiates has wrong shapes in the table: that is a failure, too.
  for (const Operator* op : operators) {
    if (!taken[op] && request.dtypes.empty())
      cases.push_back({{op}, DType::kFloat32, ShapesOf(*op, request.full)[0]});
  }
  return cases;
}

}  // namespace atunner::jobs
