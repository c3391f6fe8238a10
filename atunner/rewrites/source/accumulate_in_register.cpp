#include "atunner/rewrites/source/accumulate_in_register.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

/// `before`: the statement in front of the loop; nullptr if there is none. Where it gives the
/// element a value, the sum begins there and memory is written once.
void Edit(const Subject& subject, const CountedLoop& loop, const Assignment& sum,
          const Statement* before, TextEdits& edits) {
  const std::string name = subject.FreshName(sum.target + "_sum");
  const std::string element = fmt::format("{}[{}]", sum.target, subject.Text(sum.subscript));
  const std::string indent = IndentAt(subject.syntax(), loop.loop->range.begin);
  const std::string& type = subject.FindParameter(sum.target)->type;
  const auto first = before == nullptr ? std::nullopt : AsAssignment(subject, *before);
  if (first && first->op == "=" && first->target == sum.target && first->is_element() &&
      subject.Text(first->subscript) == subject.Text(sum.subscript))
    edits.Replace(before->range,
                  fmt::format("{} {} = {};", type, name, subject.Text(first->value)));
  else
    edits.InsertBefore(loop.loop->range.begin,
                       fmt::format("{} {} = {};\n{}", type, name, element, indent));
  edits.Replace({sum.statement->range.begin, sum.subscript.end + 1}, name);
  edits.InsertBehind(loop.loop->range.end - 1, fmt::format("\n{}{} = {};", indent, element, name));
}

void EditAll(const Subject& subject, const std::vector<Statement>& statements, TextEdits& edits) {
  for (size_t i = 0; i < statements.size(); ++i) {
    const auto loop = AsCountedLoop(subject, statements[i]);
    const LoopUses uses = loop ? UsesOf(subject, *loop) : LoopUses();
    const Assignment* sum = loop ? FindSum(subject, *loop, uses) : nullptr;
    if (sum != nullptr)
      Edit(subject, *loop, *sum, i == 0 ? nullptr : &statements[i - 1], edits);
    else
      EditAll(subject, statements[i].children, edits);
  }
}

}  // namespace

Result<std::vector<Proposal>> AccumulateInRegister(const Subject& subject) {
  TextEdits edits(subject.syntax());
  EditAll(subject, subject.body(), edits);
  if (edits.empty()) return DoesNotApply("no loop adds up in one element of memory");
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
