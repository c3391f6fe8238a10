#include "atunner/rewrites/source/share_loop_in_warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/source/loop_joints.h"
#include "atunner/rewrites/source/warp_scan.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

constexpr int kLanes = 32;

std::string JoinText(const Joint& joint, const std::string& indent) {
  const std::string head = fmt::format("\n{}for (int offset = 16; offset > 0; offset /= 2)",
                                       indent);
  const std::string& name = joint.name;
  switch (joint.kind) {
    case Joint::Kind::kSum:
      return fmt::format("{}\n{}  {} += __shfl_xor_sync(0xffffffffu, {}, offset);", head, indent,
                         name, name);
    case Joint::Kind::kExtreme:
      return fmt::format("{}\n{}  {} = {}({}, __shfl_xor_sync(0xffffffffu, {}, offset));", head,
                         indent, name, joint.function, name, name);
    case Joint::Kind::kPlace:
      break;
  }
  if (joint.place.empty())
    return fmt::format(
        "{0} {{\n"
        "{1}  const auto other = __shfl_xor_sync(0xffffffffu, {2}, offset);\n"
        "{1}  if (other {3} {2}) {2} = other;\n{1}}}",
        head, indent, name, joint.largest ? ">" : "<");
  return fmt::format(
      "{0} {{\n"
      "{1}  const auto other = __shfl_xor_sync(0xffffffffu, {2}, offset);\n"
      "{1}  const auto other_{3} = __shfl_xor_sync(0xffffffffu, {3}, offset);\n"
      "{1}  if (other {4} {2} || (other == {2} && other_{3} < {3})) {{\n"
      "{1}    {2} = other;\n"
      "{1}    {3} = other_{3};\n"
      "{1}  }}\n{1}}}",
      head, indent, name, joint.place, joint.largest ? ">" : "<");
}

/// Rewrites the statements around the loops: those of the kernel, or of its one `if`.
class Sharing {
 public:
  explicit Sharing(const Subject& subject)
      : subject_(subject), edits_(subject.syntax()), lane_(subject.FreshName("lane")) {}

  Result<std::vector<Proposal>> Run() {
    ATUNNER_RETURN_IF_ERROR(Check());
    ATUNNER_RETURN_IF_ERROR(Share(subject_.body()));
    if (loops_ == 0) return DoesNotApply("no loop counts from one bound to another");
    const ThreadIndex& index = *subject_.IndexOn('x');
    edits_.Replace(index.value, "(" + subject_.Text(index.value) + ") / 32");
    edits_.InsertBefore(subject_.kernel().body.begin,
                        fmt::format("const int {} = threadIdx.x % 32;\n{}", lane_,
                                    IndentAt(subject_.syntax(), subject_.kernel().body.begin)));
    return std::vector<Proposal>{{edits_.Apply(), {{kLanes, 1, 1}, {1, 1, 1}}, ""}};
  }

 private:
  Status Check() const {
    const ConcreteStep& launch = subject_.launch();
    if (launch.block.y * launch.block.z * launch.grid.y * launch.grid.z != 1)
      return DoesNotApply("the launch has several axes");
    if (launch.block.x % kLanes != 0) return DoesNotApply("the block is no multiple of a warp");
    if (subject_.indices().size() != 1)
      return DoesNotApply("the kernel has no index 'blockIdx.x * blockDim.x + threadIdx.x'");
    const TokenRange body = subject_.kernel().body;
    if (CountMentions(subject_, body, "threadIdx") != 1 ||
        CountMentions(subject_, body, "gridDim") != 0)
      return DoesNotApply("threads are numbered in another way, too");
    if (subject_.BodyMentions("__shared__") || subject_.BodyMentions("__syncthreads"))
      return DoesNotApply("the threads of a block work together already");
    return {};
  }

  Status Share(const std::vector<Statement>& statements) {
    for (size_t i = 0; i < statements.size(); ++i) {
      const Statement& statement = statements[i];
      if (statement.kind == Kind::kFor) {
        ATUNNER_RETURN_IF_ERROR(ShareLoop(statements, i));
      } else if (statement.IsLoop()) {
        return DoesNotApply("a loop does not count");
      } else if (statement.kind == Kind::kIf || statement.kind == Kind::kBlock) {
        ATUNNER_RETURN_IF_ERROR(ShareIn(statement));
      } else {
        ATUNNER_RETURN_IF_ERROR(Guard(statement));
      }
    }
    return {};
  }

  Status ShareIn(const Statement& statement) {
    for (const Statement& child : statement.children)
      ATUNNER_RETURN_IF_ERROR(
          Share(child.kind == Kind::kBlock ? child.children : std::vector<Statement>{child}));
    return {};
  }

  Status ShareLoop(const std::vector<Statement>& statements, size_t number) {
    const auto loop = AsCountedLoop(subject_, statements[number]);
    if (!loop) return DoesNotApply("a loop does not count up by one");
    if (const auto scan = WarpScan(subject_, *loop, lane_)) {
      edits_.Replace(statements[number].range, *scan);
      ++loops_;
      return {};
    }
    ATUNNER_TRY(const std::vector<Joint> joints, JointsOf(subject_, statements, number, *loop));
    const std::string begin = subject_.Text(loop->begin);
    edits_.Replace(loop->begin, IsZero(begin) ? lane_ : begin + " + " + lane_);
    edits_.Replace(loop->step, loop->variable + " += 32");
    const std::string indent = IndentAt(subject_.syntax(), statements[number].range.begin);
    std::string text;
    for (const Joint& joint : joints) {
      text += JoinText(joint, indent);
      if (joint.starts_elsewhere)
        edits_.InsertBefore(statements[number].range.begin,
                            fmt::format("if ({} != 0) {} = 0;\n{}", lane_, joint.name, indent));
    }
    if (!text.empty()) edits_.InsertBehind(statements[number].range.end - 1, text);
    ++loops_;
    return {};
  }

  /// What a thread did once, one lane does: stores. Values are computed by all.
  Status Guard(const Statement& statement) {
    if (statement.kind != Kind::kExpression) return {};
    const auto assignment = AsAssignment(subject_, statement);
    if (!assignment)
      return DoesNotApply("the effect of '" + subject_.Text(statement.range) + "' is not known");
    if (assignment->is_element())
      edits_.InsertBefore(statement.range.begin, fmt::format("if ({} == 0) ", lane_));
    return {};
  }

  const Subject& subject_;
  TextEdits edits_;
  std::string lane_;
  int loops_ = 0;
};

}  // namespace

Result<std::vector<Proposal>> ShareLoopInWarp(const Subject& subject) {
  return Sharing(subject).Run();
}

}  // namespace atunner::rewrites
