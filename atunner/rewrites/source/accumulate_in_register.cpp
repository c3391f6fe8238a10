#include "atunner/rewrites/source/accumulate_in_register.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "atunner/rewrites/source/loop_uses.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

/// The only use of an array in a loop: an element that is the same in all iterations is updated.
const Assignment* FindSum(const Subject& subject, const CountedLoop& loop, const LoopUses& uses) {
  for (const Assignment& one : uses.assignments) {
    const KernelParameter* array = subject.FindParameter(one.target);
    if (!one.is_element() || array == nullptr || one.op == "=" || one.op == "++" || one.op == "--")
      continue;
    if (uses.Varies(subject, one.subscript)) continue;
    const bool elsewhere = subject.Mentions(one.value, one.target) ||
                           std::ranges::count(uses.assignments, one.target, &Assignment::target) >
                               1;
    size_t mentions = 0;
    for (size_t i = loop.loop->range.begin; i < loop.loop->range.end; ++i)
      mentions += subject.syntax().token(i).text == one.target ? 1 : 0;
    if (!elsewhere && mentions == 1) return &one;
  }
  return nullptr;
}

void Edit(const Subject& subject, const CountedLoop& loop, const Assignment& sum,
          TextEdits& edits) {
  const std::string name = subject.FreshName(sum.target + "_sum");
  const std::string element = fmt::format("{}[{}]", sum.target, subject.Text(sum.subscript));
  const std::string indent = IndentAt(subject.syntax(), loop.loop->range.begin);
  edits.InsertBefore(loop.loop->range.begin,
                     fmt::format("{} {} = {};\n{}", subject.FindParameter(sum.target)->type, name,
                                 element, indent));
  edits.Replace({sum.statement->range.begin, sum.subscript.end + 1}, name);
  edits.InsertBehind(loop.loop->range.end - 1, fmt::format("\n{}{} = {};", indent, element, name));
}

}  // namespace

Result<std::vector<Proposal>> AccumulateInRegister(const Subject& subject) {
  TextEdits edits(subject.syntax());
  for (const Statement& statement : subject.body()) {
    const auto loop = AsCountedLoop(subject, statement);
    if (!loop) continue;
    const LoopUses uses = UsesOf(subject, *loop);
    if (const Assignment* sum = FindSum(subject, *loop, uses)) Edit(subject, *loop, *sum, edits);
  }
  if (edits.empty()) return DoesNotApply("no loop adds up in one element of memory");
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
