#include "atunner/codegen/template/wgmma_text.h"

#include <fmt/format.h>

#include <utility>

namespace atunner {

std::string WgmmaText(const WgmmaFunction& function) {
  const int64_t sums = function.columns / 2;
  const bool wide = function.operands == Operands::k16Bits;
  const bool whole = function.operands == Operands::kInt8;
  std::string outputs;
  std::string bindings;
  for (int64_t i = 0; i < sums; ++i) {
    const bool last = i + 1 == sums;
    if (i % 16 == 0) outputs += "      \"";
    outputs += fmt::format("%{}{}", i, last ? "" : ",");
    if (i % 16 == 15 || last) outputs += "\"\n";
    bindings += fmt::format("\"+{}\"(d[{}][{}]){}", whole ? "r" : "f", i / 4, i % 4,
                            last         ? ""
                            : i % 8 == 7 ? ",\n        "
                                         : ", ");
  }
  const auto operand = [&](int64_t at) { return fmt::format("%{}", sums + at); };
  const bool registers = function.a_in_registers;
  const std::string a = registers ? fmt::format("{{{}, {}, {}, {}}}", operand(0), operand(1),
                                                operand(2), operand(3))
                                  : operand(0);
  const int64_t next = registers ? 4 : 1;
  return fmt::format(
      R"(/// d[64, {columns}] = a[64, {depth}] · b[{depth}, {columns}], started asynchronously; with ADDS it is added to d.
template <bool ADDS = true>
DEVICE void multiply({sum} (&d)[{fragments}][4], {a_type}, unsigned long long b) {{
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{types} {{"
{outputs}      "}}, {a}, {b}, {adds}{rest};"
      : {bindings}
      : {a_binding}, "l"(b), "n"((int)ADDS){b_binding});
}}
)",
      fmt::arg("columns", function.columns), fmt::arg("fragments", function.columns / 8),
      fmt::arg("a_type", registers ? "const unsigned (&a)[4]" : "unsigned long long a"),
      fmt::arg("outputs", outputs), fmt::arg("a", a), fmt::arg("b", operand(next)),
      fmt::arg("adds", operand(next + 1)),
      fmt::arg("rest", wide    ? fmt::format(", 1, 1, {}{}",
                                          registers               ? ""
                                             : function.a_transposed ? "1, "
                                                                     : "0, ",
                                             operand(next + 2))
                       : whole ? ""
                               : ", 1, 1"),
      fmt::arg("depth", wide ? 16 : 32), fmt::arg("sum", whole ? "int" : "float"),
      fmt::arg("types", wide    ? R"(f32." MMA_TYPE "." MMA_TYPE ")"
                        : whole ? R"(s32." A_TYPE "." B_TYPE ")"
                                : R"(f32." A_TYPE "." B_TYPE ")"),
      fmt::arg("bindings", bindings),
      fmt::arg("a_binding",
               registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))"),
      fmt::arg("b_binding", wide ? fmt::format(", \"n\"({})", function.b_transposed) : ""));
}

std::string AttentionProducts(const std::set<int64_t>& tiles, int64_t dim) {
  std::string text = WgmmaText({.columns = dim, .a_in_registers = true, .b_transposed = "1"});
  for (const int64_t tile : tiles) text += "\n" + WgmmaText({.columns = tile, .b_transposed = "0"});
  return text;
}

ArgBinding BoxMap(std::string_view tensor, DType dtype, std::vector<Expr> dims,
                  std::vector<Expr> box, const Expr& swizzle_bytes) {
  TensorView view{.dims = std::move(dims),
                  .strides = {},
                  .box = std::move(box),
                  .swizzle_bytes = swizzle_bytes};
  std::string step = view.dims[0].text();
  for (size_t i = 1; i < view.dims.size(); ++i) {
    view.strides.push_back(Expr::MustParse(step));
    step = fmt::format("({}) * ({})", step, view.dims[i].text());
  }
  return tensor[0] == '@'
             ? ArgBinding::WorkspaceMap(std::string(tensor.substr(1)), dtype, std::move(view))
             : ArgBinding::Map(std::string(tensor), dtype, std::move(view));
}

}  // namespace atunner
