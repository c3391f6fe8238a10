#include "atunner/rewrites/source/aggregate_atomics.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

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

}  // namespace

Result<std::vector<Proposal>> AggregateAtomics(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.y * block.z != 1 || block.x % 32 != 0)
    return DoesNotApply("the block is no row of whole warps");
  for (const Statement& statement : subject.body()) {
    if (subject.Mentions(statement.range, "return"))
      return DoesNotApply("threads may have returned before the atomic update");
    const auto addition = AsAddition(subject, statement);
    if (!addition) continue;
    if (!IsUniform(subject, addition->address))
      return DoesNotApply("threads of a warp update different addresses");
    TextEdits edits(subject.syntax());
    edits.Replace(addition->whole->range, Aggregated(subject, *addition));
    return std::vector<Proposal>{{edits.Apply(), {}, ""}};
  }
  return DoesNotApply("there is no atomic addition that all threads make once");
}

}  // namespace atunner::rewrites
