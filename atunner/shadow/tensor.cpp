// Products of small matrices on tensor cores, with float64 tensor instructions.
#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

/// Where PTX places the elements of m16n8k16, m16n8k8 and m16n8k4. With g = lane / 4 and
/// t = lane % 4, a register of A holds row g or g + 8; the thread's columns are those of the rows
/// that its registers of B hold. A sum of products may be taken in any order of k. So one
/// m8n8k4 in float64, which wants A[g][t] and B[t][g] from each thread, adds up four of the
/// products, with the elements that the thread has anyway; its accumulators lie where those of the
/// wider instruction do.
struct Factors {
  std::vector<std::string> upper, lower;  ///< A: rows g and g + 8, by k
  std::vector<std::string> columns;       ///< B, by k
};

Factors FactorsOf(ValueWriter& writer, const MmaForm& form) {
  Factors factors;
  const int halves = form.factor == Type::kTF32 ? 1 : 2;
  const auto elements = [](const TextOperand& operand) {
    return operand.elements.empty() ? std::vector{operand} : operand.elements;
  };
  const std::vector<TextOperand> rows = elements(writer.operand(1));
  const std::vector<TextOperand> columns = elements(writer.operand(2));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int half = 0; half < halves; ++half)
      (i % 2 == 0 ? factors.upper : factors.lower)
          .push_back(writer.Fetch(rows[i], form.factor, half));
  }
  for (const TextOperand& column : columns) {
    for (int half = 0; half < halves; ++half)
      factors.columns.push_back(writer.Fetch(column, form.factor, half));
  }
  return factors;
}

/// The two elements of C in row g (half 0) or g + 8 (half 1).
std::pair<std::string, std::string> AddendsOf(ValueWriter& writer, const MmaForm& form,
                                              size_t half) {
  const auto& elements = writer.operand(3).elements;
  const std::string first = writer.Double(), second = writer.Double();
  const bool packed = form.addend == Type::kF16;
  const TextOperand& left = elements[packed ? half : 2 * half];
  const TextOperand& right = elements[packed ? half : 2 * half + 1];
  writer.Put("mov.f64 {}, {}", first, writer.Fetch(left, form.addend, 0));
  writer.Put("mov.f64 {}, {}", second, writer.Fetch(right, form.addend, packed ? 1 : 0));
  return {first, second};
}

}  // namespace

void WriteMma(ValueWriter& writer, const MmaForm& form) {
  const auto& results = writer.operand(0).elements;
  const bool packed = form.result == Type::kF16;
  if (results.size() != (packed ? 2u : 4u) ||
      writer.operand(3).elements.size() != (form.addend == Type::kF16 ? 2u : 4u))
    return WriteOriginal(writer);
  const Factors factors = FactorsOf(writer, form);
  std::vector<std::vector<std::string>> sums;
  for (size_t half = 0; half < 2; ++half) {
    const auto [first, second] = AddendsOf(writer, form, half);
    const auto& rows = half == 0 ? factors.upper : factors.lower;
    for (size_t k = 0; k < factors.columns.size() && k < rows.size(); ++k)
      writer.PutGuarded(
          "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}}}, {{{2}}}, "
          "{{{3}}}, {{{0}, {1}}}",
          first, second, rows[k], factors.columns[k]);
    sums.push_back({first, second});
  }
  for (size_t half = 0; half < 2; ++half) {
    if (packed) {
      writer.SetFloats(results[half].reg, Type::kF16, sums[half]);
      continue;
    }
    for (size_t i = 0; i < 2; ++i)
      writer.SetFloats(results[2 * half + i].reg, Type::kF32, {sums[half][i]});
  }
}

}  // namespace atunner::shadow
