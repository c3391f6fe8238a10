#include "atunner/rewrites/rewrite.h"

#include <fmt/format.h>

#include <utility>

namespace atunner::rewrites {
namespace {

Expr Changed(const Expr& grid, uint32_t times, uint32_t over) {
  if (times == 1 && over == 1) return grid;
  if (over == 1) return Expr::MustParse(fmt::format("({}) * {}", grid.text(), times));
  return Expr::MustParse(fmt::format("(({}) * {} + {}) // {}", grid.text(), times, over - 1, over));
}

}  // namespace

RenderedKernel With(const RenderedKernel& kernel, const Proposal& proposal) {
  RenderedKernel changed = kernel;
  changed.source.text = proposal.text;
  LaunchStep& step = changed.plan.steps.front();
  for (size_t axis = 0; axis < 3; ++axis)
    step.grid[axis] = Changed(step.grid[axis], proposal.grid.times[axis], proposal.grid.over[axis]);
  return changed;
}

}  // namespace atunner::rewrites
