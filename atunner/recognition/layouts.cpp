// Transpositions of a matrix, and of batches of matrices.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

void AddTransposition(const Facts& facts, const BufferFact& x, const SizeFact& rows,
                      const SizeFact* columns, std::vector<Hypothesis>& all) {
  const int64_t matrix = columns == nullptr ? x.elements : rows.value * columns->value;
  const int64_t batches = x.elements / matrix, length = matrix / rows.value;
  std::string form = fmt::format("transposition of {} by {}", x.name, rows.name);
  if (columns != nullptr) form += " and " + columns->name;
  for (const Epilogue& epilogue : EpiloguesOf(facts)) {
    HypothesisWriter writer("transposition", form + epilogue.form);
    const std::string in = writer.Input(x, {batches, rows.value, length});
    const std::string turned = writer.Line(fmt::format("transpose({}, order=[0, 2, 1])", in));
    const std::string wide = epilogue.form.empty() ? turned : writer.Wide(turned, x);
    all.push_back(Finish(std::move(writer), facts, wide, epilogue, {batches, length, rows.value}));
  }
}

bool Divides(int64_t value, int64_t elements) {
  return value > 1 && value < elements && elements % value == 0;
}

}  // namespace

std::vector<Hypothesis> LayoutHypotheses(const Facts& facts) {
  std::vector<Hypothesis> all;
  for (const BufferFact* x : facts.Inputs()) {
    if (x->elements != facts.Output()->elements || !IsFloat(facts.Output()->dtype)) continue;
    for (const SizeFact& rows : facts.sizes) {
      if (!Divides(rows.value, x->elements)) continue;
      AddTransposition(facts, *x, rows, nullptr, all);
      for (const SizeFact& columns : facts.sizes) {
        if (Divides(columns.value, x->elements / rows.value))
          AddTransposition(facts, *x, rows, &columns, all);
      }
    }
  }
  return all;
}

}  // namespace atunner::recognition
