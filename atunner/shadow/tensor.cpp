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

Factors FactorsOf(ValueWriter& writer, const MmaForm& form, const std::vector<TextOperand>& rows,
                  const std::vector<TextOperand>& columns) {
  Factors factors;
  const int halves = form.factor == Type::kTF32 ? 1 : 2;
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

/// The two elements of C in row g (half 0) or g + 8 (half 1), in new registers.
std::vector<std::string> AddendsOf(ValueWriter& writer, const MmaForm& form,
                                   const std::vector<TextOperand>& addends, size_t half) {
  const bool packed = form.addend == Type::kF16;
  std::vector<std::string> sums;
  for (size_t i = 0; i < 2; ++i) {
    sums.push_back(writer.Double());
    const TextOperand& source = addends[packed ? half : 2 * half + i];
    writer.Put("mov.f64 {}, {}", sums[i],
               writer.Fetch(source, form.addend, packed ? static_cast<int>(i) : 0));
  }
  return sums;
}

std::vector<TextOperand> ElementsOf(const TextOperand& operand) {
  return operand.elements.empty() ? std::vector{operand} : operand.elements;
}

}  // namespace

std::vector<std::vector<std::string>> SumsOf(ValueWriter& writer, const MmaForm& form,
                                             const std::vector<TextOperand>& a,
                                             const std::vector<TextOperand>& b,
                                             const std::vector<TextOperand>& c) {
  const Factors factors = FactorsOf(writer, form, a, b);
  std::vector<std::vector<std::string>> sums;
  for (size_t half = 0; half < 2; ++half) {
    sums.push_back(AddendsOf(writer, form, c, half));
    const auto& rows = half == 0 ? factors.upper : factors.lower;
    for (size_t k = 0; k < factors.columns.size() && k < rows.size(); ++k)
      writer.PutGuarded(
          "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}}}, {{{2}}}, "
          "{{{3}}}, {{{0}, {1}}}",
          sums[half][0], sums[half][1], rows[k], factors.columns[k]);
  }
  return sums;
}

void SetSums(ValueWriter& writer, const MmaForm& form, const std::vector<TextOperand>& results,
             const std::vector<std::vector<std::string>>& sums) {
  for (size_t half = 0; half < 2; ++half) {
    if (form.result == Type::kF16) {
      writer.SetFloats(results[half].reg, Type::kF16, sums[half]);
      continue;
    }
    for (size_t i = 0; i < 2; ++i)
      writer.SetFloats(results[2 * half + i].reg, Type::kF32, {sums[half][i]});
  }
}

void WriteMma(ValueWriter& writer, const MmaForm& form) {
  const std::vector<TextOperand> results = ElementsOf(writer.operand(0));
  const std::vector<TextOperand> addends = ElementsOf(writer.operand(3));
  if (results.size() != (form.result == Type::kF16 ? 2u : 4u) ||
      addends.size() != (form.addend == Type::kF16 ? 2u : 4u))
    return WriteOriginal(writer);
  SetSums(
      writer, form, results,
      SumsOf(writer, form, ElementsOf(writer.operand(1)), ElementsOf(writer.operand(2)), addends));
}

}  // namespace atunner::shadow
