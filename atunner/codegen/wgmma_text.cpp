#include "atunner/codegen/wgmma_text.h"

#include <fmt/format.h>

namespace atunner {

std::string WgmmaText(const WgmmaFunction& function) {
  const int64_t sums = function.columns / 2;
  std::string outputs;
  std::string bindings;
  for (int64_t i = 0; i < sums; ++i) {
    const bool last = i + 1 == sums;
    if (i % 16 == 0) outputs += "      \"";
    outputs += fmt::format("%{}{}", i, last ? "" : ",");
    if (i % 16 == 15 || last) outputs += "\"\n";
    bindings += fmt::format("\"+f\"(d[{}][{}]){}", i / 4, i % 4, last ? "" : i % 8 == 7 ? ",\n        " : ", ");
  }
  const auto operand = [&](int64_t at) { return fmt::format("%{}", sums + at); };
  const bool registers = function.a_in_registers;
  const std::string a =
      registers ? fmt::format("{{{}, {}, {}, {}}}", operand(0), operand(1), operand(2), operand(3)) : operand(0);
  const int64_t next = registers ? 4 : 1;
  return fmt::format(
      R"(/// d[64, {columns}] {sign} a[64, 16] · b[16, {columns}], in the background.
DEVICE void {name}(float (&d)[{fragments}][4], {a_type}, unsigned long long b) {{
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32." MMA_TYPE "." MMA_TYPE " {{"
{outputs}      "}}, {a}, {b}, {add}, 1, 1, {a_major}{transposed};"
      : {bindings}
      : {a_binding}, "l"(b), "n"({b_transposed}));
}}
)",
      fmt::arg("columns", function.columns), fmt::arg("sign", function.accumulates ? "+=" : "="),
      fmt::arg("name", function.name), fmt::arg("fragments", function.columns / 8),
      fmt::arg("a_type", registers ? "const unsigned (&a)[4]" : "unsigned long long a"), fmt::arg("outputs", outputs),
      fmt::arg("a", a), fmt::arg("b", operand(next)), fmt::arg("add", function.accumulates ? 1 : 0),
      fmt::arg("a_major", registers ? "" : "0, "), fmt::arg("transposed", operand(next + 1)),
      fmt::arg("bindings", bindings),
      fmt::arg("a_binding", registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))"),
      fmt::arg("b_transposed", function.b_transposed));
}

}  // namespace atunner
