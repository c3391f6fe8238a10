#include "atunner/rewrites/source/aggregate_atomics.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

struct Addition {
  const Statement* whole = nullptr;  ///< with its condition
  TokenRange condition;              ///< empty: always
  TokenRange address;
  TokenRange value;
};

/// `atomicAdd(address, value);`, also behind one `if`.
std::optional<Addition> AsAddition(const Subject& subject, const Statement& statement) {
  const CudaSyntax& syntax = subject.syntax();
  Addition addition{&statement, {}, {}, {}};
  const Statement* call = &statement;
  if (statement.kind == Kind::kIf && statement.children.size() == 1) {
    addition.condition = statement.condition;
    call = &statement.children[0];
    if (call->kind == Kind::kBlock && call->children.size() == 1) call = &call->children[0];
  }
  const size_t begin = call->range.begin;
  if (call->kind != Kind::kExpression || !syntax.token(begin).Is("atomicAdd")) return std::nullopt;
  const auto arguments = SplitArguments(syntax, {begin + 2, MatchingClose(syntax, begin + 1)},
                                        false);
  if (arguments.size() != 2) return std::nullopt;
  addition.address = arguments[0];
  addition.value = arguments[1];
  return addition;
}

/// True if all threads use the same address: it consists of parameters and numbers.
bool IsUniform(const Subject& subject, TokenRange address) {
  for (size_t i = address.begin; i < address.end; ++i) {
    const Token& token = subject.syntax().token(i);
    if (token.kind == Token::Kind::kWord && subject.FindParameter(token.text) == nullptr)
      return false;
  }
  return true;
}

std::string TypeAt(const Subject& subject, TokenRange address) {
  for (size_t i = address.begin; i < address.end; ++i) {
    const KernelParameter* parameter = subject.FindParameter(subject.syntax().token(i).text);
    if (parameter != nullptr && parameter->pointer) return parameter->type;
  }
  return "float";
}

std::string Aggregated(const Subject& subject, const Addition& addition) {
  const std::string indent = IndentAt(subject.syntax(), addition.whole->range.begin);
  const std::string sum = subject.FreshName("warp_sum");
  const std::string value = subject.Text(addition.value);
  return fmt::format(
      "{1} {2} = {3};\n"
      "{0}for (int offset = 16; offset > 0; offset /= 2)\n"
      "{0}  {2} += __shfl_down_sync(0xffffffffu, {2}, offset);\n"
      "{0}if (threadIdx.x % 32 == 0) atomicAdd({4}, {2});",
      indent, TypeAt(subject, addition.address), sum,
      addition.condition.empty()
          ? value
          : fmt::format("{} ? {} : 0", subject.Text(addition.condition), value),
      subject.Text(addition.address));
}

constexpr uint32_t kElementsPerThread[] = {4, 16};

/// The sum of several elements in a register, then of the warp: one update for all of them.
std::string SummedByThread(const Subject& subject, const RowBody& row, const Addition& addition) {
  const std::string indent = IndentAt(subject.syntax(), subject.body()[0].range.begin);
  const std::string sum = subject.FreshName("thread_sum");
  std::string inner;
  for (const Statement& statement : row.statements) {
    if (!inner.empty()) inner += "\n" + indent;
    if (statement.range.begin != addition.whole->range.begin) {
      inner += subject.Text(statement.range);
      continue;
    }
    if (!addition.condition.empty())
      inner += fmt::format("if ({}) ", subject.Text(addition.condition));
    inner += fmt::format("{} += {};", sum, subject.Text(addition.value));
  }
  return fmt::format(
      "{1} {2} = 0;\n{3}"
      "{0}for (int offset = 16; offset > 0; offset /= 2)\n"
      "{0}  {2} += __shfl_down_sync(0xffffffffu, {2}, offset);\n"
      "{0}if (threadIdx.x % 32 == 0) atomicAdd({4}, {2});",
      indent, TypeAt(subject, addition.address), sum, GridStride(row, inner, indent),
      subject.Text(addition.address));
}

/// Proposals for kernels of one thread an element; none for others.
std::vector<Proposal> SumByThread(const Subject& subject) {
  std::vector<Proposal> proposals;
  const auto row = AsRowBody(subject);
  if (!row) return proposals;
  std::optional<Addition> addition;
  for (const Statement& statement : row->statements) {
    const auto one = AsAddition(subject, statement);
    if (one && !addition && IsUniform(subject, one->address))
      addition = one;
    else if (statement.kind != Kind::kDeclaration)
      return proposals;
  }
  if (!addition) return proposals;
  for (const uint32_t elements : kElementsPerThread) {
    if (subject.launch().grid.x < elements) break;
    TextEdits edits(subject.syntax());
    edits.Replace(subject.kernel().body, SummedByThread(subject, *row, *addition));
    proposals.push_back({edits.Apply(),
                         {{1, 1, 1}, {elements, 1, 1}},
                         fmt::format("{} elements a thread", elements)});
  }
  return proposals;
}

}  // namespace

Result<std::vector<Proposal>> AggregateAtomics(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.y * block.z != 1 || block.x % 32 != 0)
    return DoesNotApply("the block is no row of whole warps");
  std::vector<Proposal> proposals = SumByThread(subject);
  for (const Statement& statement : subject.body()) {
    if (subject.Mentions(statement.range, "return") && !proposals.empty()) break;
    if (subject.Mentions(statement.range, "return"))
      return DoesNotApply("threads may have returned before the atomic update");
    const auto addition = AsAddition(subject, statement);
    if (!addition) continue;
    if (!IsUniform(subject, addition->address))
      return DoesNotApply("threads of a warp update different addresses");
    TextEdits edits(subject.syntax());
    edits.Replace(addition->whole->range, Aggregated(subject, *addition));
    proposals.insert(proposals.begin(), {edits.Apply(), {}, ""});
    return proposals;
  }
  if (!proposals.empty()) return proposals;
  return DoesNotApply("there is no atomic addition that all threads make once");
}

}  // namespace atunner::rewrites
