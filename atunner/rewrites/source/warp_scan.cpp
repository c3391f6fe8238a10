#include "atunner/rewrites/source/warp_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

/// The loop's statements, of which one is `sum += e;`.
struct RunningSum {
  std::vector<Statement> statements;
  size_t addition = 0;  ///< index
  Assignment sum;
};

/// True if statement `one` writes to an element of this iteration alone, or declares something.
bool IsOfItsIteration(const Subject& subject, const CountedLoop& loop, const Statement& one) {
  if (one.kind == Kind::kDeclaration) return true;
  const auto assignment = AsAssignment(subject, one);
  return assignment && assignment->is_element() &&
         subject.Mentions(assignment->subscript, loop.variable);
}

std::optional<RunningSum> AsRunningSum(const Subject& subject, const CountedLoop& loop) {
  const Statement& body = loop.loop->children[0];
  RunningSum running;
  running.statements = body.kind == Kind::kBlock ? body.children : std::vector<Statement>{body};
  bool found = false, used = false;
  for (size_t i = 0; i < running.statements.size(); ++i) {
    const auto one = AsAssignment(subject, running.statements[i]);
    if (one && !one->is_element() && one->op == "+=" && !found) {
      running.sum = *one;
      running.addition = i;
      found = true;
    } else if (!IsOfItsIteration(subject, loop, running.statements[i])) {
      return std::nullopt;
    }
  }
  if (!found || subject.Mentions(running.sum.value, running.sum.target)) return std::nullopt;
  for (size_t i = 0; i < running.statements.size(); ++i)
    used = used || (i != running.addition &&
                    subject.Mentions(running.statements[i].range, running.sum.target));
  // A declaration in front of the addition may be needed for its value.
  const bool declares = std::ranges::any_of(
      running.statements, [](const Statement& one) { return one.kind == Kind::kDeclaration; });
  if (!used || declares) return std::nullopt;
  return running;
}

}  // namespace

std::optional<std::string> WarpScan(const Subject& subject, const CountedLoop& loop,
                                    const std::string& lane) {
  const auto running = AsRunningSum(subject, loop);
  if (!running) return std::nullopt;
  const std::string type = TypeOfLocal(subject, subject.body(), running->sum.target);
  if (type.empty()) return std::nullopt;
  const std::string indent = IndentAt(subject.syntax(), loop.loop->range.begin);
  const std::string first = subject.FreshName("first"), part = subject.FreshName("part"),
                    before = subject.FreshName("before");
  std::string uses;
  for (size_t i = 0; i < running->statements.size(); ++i) {
    if (i == running->addition) continue;
    const std::string sum = i < running->addition
                                ? before
                                : fmt::format("({} + {})", running->sum.target, part);
    uses += fmt::format("\n{}    {}", indent,
                        Renamed(subject, running->statements[i].range, running->sum.target, sum));
  }
  const bool exclusive = running->addition > 0;
  return fmt::format(
      "for (int {first} = {begin}; {first} {less} {end}; {first} += 32) {{\n"
      "{in}  const int {j} = {first} + {lane};\n"
      "{in}  {type} {part} = {j} {less} {end} ? {value} : 0;\n"
      "{in}  for (int offset = 1; offset < 32; offset *= 2) {{\n"
      "{in}    const {type} left = __shfl_up_sync(0xffffffffu, {part}, offset);\n"
      "{in}    if ({lane} >= offset) {part} += left;\n"
      "{in}  }}\n{exclusive}"
      "{in}  if ({j} {less} {end}) {{{uses}\n{in}  }}\n"
      "{in}  {sum} += __shfl_sync(0xffffffffu, {part}, 31);\n"
      "{in}}}",
      fmt::arg("first", first), fmt::arg("begin", subject.Text(loop.begin)),
      fmt::arg("less", subject.syntax().token(loop.loop->condition.begin + 1).text),
      fmt::arg("end", subject.Text(loop.end)), fmt::arg("in", indent), fmt::arg("j", loop.variable),
      fmt::arg("lane", lane), fmt::arg("type", type), fmt::arg("part", part),
      fmt::arg("value", subject.Text(running->sum.value)),
      fmt::arg("exclusive",
               exclusive ? fmt::format("{0}  {1} {2} = __shfl_up_sync(0xffffffffu, {3}, 1);\n"
                                       "{0}  {2} = {4} + ({5} == 0 ? 0 : {2});\n",
                                       indent, type, before, part, running->sum.target, lane)
                         : ""),
      fmt::arg("uses", uses), fmt::arg("sum", running->sum.target));
}

}  // namespace atunner::rewrites
