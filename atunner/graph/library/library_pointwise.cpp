// Element-wise operators: the rows of pointwise.def, and a few that are more than one expression.
#include <fmt/format.h>

#include "atunner/graph/expression_text.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

struct Row {
  std::string_view name;
  int operands;
  std::string_view body;
  std::string_view attributes;
  std::string_view meaning;
};
constexpr Row kRows[] = {
#define ATUNNER_POINTWISE(name, operands, body, attributes, meaning) \
  {name, operands, body, attributes, meaning},
#include "atunner/graph/library/pointwise.def"
#undef ATUNNER_POINTWISE
};

constexpr std::string_view kLetters = "abc";

/// Reads the attributes of a row: "min=-1, max=1".
std::vector<Attribute> AttributesOf(std::string_view text) {
  std::vector<Attribute> attributes;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(", "), text.size());
    const size_t equals = text.find('=');
    attributes.push_back({std::string(text.substr(0, equals)),
                          std::stod(std::string(text.substr(equals + 1, comma - equals - 1))),
                          "a number"});
    text.remove_prefix(std::min(comma + 2, text.size()));
  }
  return attributes;
}

LibraryOperator Pointwise(const Row& row) {
  const std::vector<Attribute> attributes = AttributesOf(row.attributes);
  const std::string operands = row.operands == 1 ? "a" : row.operands == 2 ? "a, b" : "a, b, c";
  return {
      .name = std::string(row.name),
      .signature = fmt::format("{}({}) → y", row.name, operands),
      .meaning = std::string(row.meaning),
      .shape_help = row.operands == 1
                        ? "one shape: request.shapes 4096,4096"
                        : "one shape for all operands, or one each: request.shapes 64,1024 1024",
      .attributes = attributes,
      .build =
          [row, attributes](Call& call) {
            std::vector<Value> values;
            for (int i = 0; i < row.operands; ++i)
              values.push_back(call.Input(std::string(1, kLetters[i]), call.shape(i)));
            call.g.Output(
                "y", call.g.Map(WithAttributes(std::string(row.body), attributes, call), values));
          },
      // Trigamma is no scalar operator, and integers have no gradients.
      .differentiable = row.name != "digamma" && !row.name.starts_with("bitwise_"),
      .example = {{3, 5}},
      .pointwise = true};
}

/// NaN becomes `nan` and infinities the numbers ±`limit`, 0 = the largest of the type. Finite
/// numbers stay, whatever the limit is, as in torch.nan_to_num.
void BuildNanToNum(Call& call) {
  const Value a = call.Input("a", call.shape());
  const double given = call.Real("limit");
  const double limit = given == 0 ? LargestFinite(call.g.TypeOf(a).dtype) : given;
  call.g.Output("y", call.g.Map(fmt::format("select(isnan(a), {0}, select(a == inf, {1}, "
                                            "select(a == -inf, -{1}, a)))",
                                            PrintNumber(call.Real("nan")), PrintNumber(limit)),
                                {a}));
}

}  // namespace

void AddPointwise(std::vector<LibraryOperator>& library) {
  for (const Row& row : kRows) library.push_back(Pointwise(row));
  library.push_back({.name = "nan_to_num",
                     .signature = "nan_to_num(a) → y",
                     .meaning = "NaN and infinities replaced",
                     .shape_help = "one shape: request.shapes 4096,4096",
                     .attributes = {{"nan", 0.0, "what NaN becomes"},
                                    {"limit", 0.0,
                                     "what infinities become; 0 = the largest number "
                                     "of the type"}},
                     .build = BuildNanToNum,
                     .example = {{3, 5}},
                     .pointwise = true});
  library.push_back(
      {.name = "dropout",
       .signature = "dropout(x) → y",
       .meaning = "x / (1 - p), or 0 with probability p, by Philox with the given seed",
       .shape_help = "one shape: request.shapes 4096,4096",
       .attributes = {{"p", 0.5, "probability of 0"},
                      {"seed", int64_t{42}, "key of the generator"}},
       .build =
           [](Call& call) {
             const double p = call.Real("p");
             call.Check(p >= 0 && p < 1, "p=" + PrintNumber(p), "a probability below 1");
             const Value x = call.Input("x", call.shape());
             std::string place = "0";  // row-major number of the element
             for (int axis = static_cast<int>(call.shape().size()); axis > 0; --axis)
               place = fmt::format("({} * extent(-{}) + index(-{}))", place, axis, axis);
             call.g.Output("y", call.g.Map(fmt::format("select(uniform({}, {}) >= {}, a * {}, 0)",
                                                       call.Whole("seed"), place, p, 1 / (1 - p)),
                                           {x}));
           },
       .example = {{3, 5}}});
}

}  // namespace atunner::graph
