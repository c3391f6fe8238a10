#include "atunner/rewrites/source/share_loop_in_block.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/source/loop_joints.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

constexpr uint32_t kColumns = 32;  // results of a block: the lanes of a warp

/// Writes the body anew: every statement is reached by all threads of the block, as barriers ask.
class BlockSharing {
 public:
  BlockSharing(const Subject& subject, const Conditions& body)
      : subject_(subject),
        body_(body),
        parts_(subject.launch().block.x / kColumns),
        part_(subject.FreshName("part")),
        column_(subject.FreshName("column")),
        inside_(subject.FreshName("inside")) {}

  Result<std::vector<Proposal>> Run() {
    for (size_t i = 0; i < body_.statements.size(); ++i) ATUNNER_RETURN_IF_ERROR(Take(i));
    if (loops_ == 0) return DoesNotApply("no loop counts from one bound to another");
    TextEdits edits(subject_.syntax());
    text_.pop_back();  // the line's end
    edits.Replace(subject_.kernel().body, Head() + text_);
    return std::vector<Proposal>{{edits.Apply(), {{parts_, 1, 1}, {1, 1, 1}}, ""}};
  }

 private:
  std::string Head() const {
    const ThreadIndex& index = *subject_.IndexOn('x');
    const TokenRange whole = body_.indices[0].range;
    std::string inside;
    for (const std::string& one : body_.inside) inside += (inside.empty() ? "" : " && ") + one;
    return fmt::format(
        "// A block computes {0} results; each of its {1} warps takes every {1}th iteration.\n"
        "{2}"
        "  const int {3} = threadIdx.x / {0}, {4} = threadIdx.x % {0};\n"
        "  {5} = blockIdx.x * {0} + {4};\n"
        "{6}"
        "  const bool {7} = {8};\n",
        kColumns, parts_, shared_, part_, column_,
        subject_.Text({whole.begin, index.value.begin - 1}), before_, inside_,
        inside.empty() ? "true" : inside);
  }

  Status Take(size_t number) {
    const Statement& statement = body_.statements[number];
    if (statement.kind == Kind::kFor) return TakeLoop(number);
    if (statement.kind == Kind::kDeclaration) {
      if (!ReadsIn(subject_, statement.range).empty())
        return DoesNotApply("memory is read in front of the loop");
      (text_.empty() ? before_ : text_) += "  " + subject_.Text(statement.range) + "\n";
      return {};
    }
    const auto assignment = AsAssignment(subject_, statement);
    if (!assignment)
      return DoesNotApply("the effect of '" + subject_.Text(statement.range) + "' is not known");
    const bool once = assignment->is_element();
    text_ += once ? fmt::format("  if ({} && {} == 0) ", inside_, part_) : "  ";
    text_ += subject_.Text(statement.range) + "\n";
    return {};
  }

  Status TakeLoop(size_t number) {
    const Statement& statement = body_.statements[number];
    const auto loop = AsCountedLoop(subject_, statement);
    if (!loop) return DoesNotApply("a loop does not count up by one");
    ATUNNER_TRY(const std::vector<Joint> joints,
                JointsOf(subject_, body_.statements, number, *loop));
    for (const Joint& joint : joints)
      if (joint.starts_elsewhere)
        text_ += fmt::format("  if ({} != 0) {} = 0;\n", part_, joint.name);
    const std::string begin = subject_.Text(loop->begin);
    const Statement& child = statement.children[0];
    text_ += fmt::format("  if ({}) {{\n    for ({} = {}; {}; {} += {}) {}\n  }}\n", inside_,
                         subject_.Text({statement.init.begin, loop->begin.begin - 1}),
                         IsZero(begin) ? part_ : begin + " + " + part_,
                         subject_.Text(statement.condition), loop->variable, parts_,
                         subject_.Text(child.range));
    for (const Joint& joint : joints) ATUNNER_RETURN_IF_ERROR(Join(joint));
    ++loops_;
    return {};
  }

  /// Every thread combines the parts of its column.
  Status Join(const Joint& joint) {
    if (joint.kind == Joint::Kind::kPlace && !joint.place.empty())
      return DoesNotApply("the loop looks for a place");
    const std::string type = TypeOfLocal(subject_, body_.statements, joint.name);
    if (type.empty() || type == "const")
      return DoesNotApply("the type of '" + joint.name + "' is not known");
    const std::string all = subject_.FreshName(joint.name + "_of_part");
    const std::string other = fmt::format("{}[other][{}]", all, column_);
    std::string combine = joint.name + " += " + other + ";";
    if (joint.kind == Joint::Kind::kExtreme)
      combine = fmt::format("{0} = {1}({0}, {2});", joint.name, joint.function, other);
    if (joint.kind == Joint::Kind::kPlace)
      combine = fmt::format("if ({2} {1} {0}) {0} = {2};", joint.name, joint.largest ? ">" : "<",
                            other);
    if (shared_.find(" " + all + "[") != std::string::npos)
      return DoesNotApply("two loops compute '" + joint.name + "'");
    shared_ += fmt::format("  __shared__ {} {}[{}][{}];\n", type, all, parts_, kColumns);
    text_ += fmt::format(
        "  {0}[{1}][{2}] = {3};\n"
        "  __syncthreads();\n"
        "  {3} = {0}[0][{2}];\n"
        "  for (int other = 1; other < {4}; ++other) {5}\n",
        all, part_, column_, joint.name, parts_, combine);
    return {};
  }

  const Subject& subject_;
  const Conditions& body_;
  uint32_t parts_;
  std::string part_, column_, inside_;
  std::string shared_, before_, text_;  ///< declarations, statements in front of loops, others
  int loops_ = 0;
};

}  // namespace

Result<std::vector<Proposal>> ShareLoopInBlock(const Subject& subject) {
  const ConcreteStep& launch = subject.launch();
  if (launch.block.y * launch.block.z * launch.grid.y * launch.grid.z != 1)
    return DoesNotApply("the launch has several axes");
  if (launch.block.x % kColumns != 0 || launch.block.x == kColumns)
    return DoesNotApply("the block is no multiple of a warp");
  if (subject.indices().size() != 1)
    return DoesNotApply("the kernel has no index 'blockIdx.x * blockDim.x + threadIdx.x'");
  const TokenRange body = subject.kernel().body;
  if (CountMentions(subject, body, "threadIdx") != 1 ||
      CountMentions(subject, body, "gridDim") != 0)
    return DoesNotApply("threads are numbered in another way, too");
  if (subject.BodyMentions("__shared__") || subject.BodyMentions("__syncthreads"))
    return DoesNotApply("the threads of a block work together already");
  if (subject.BodyMentions("other")) return DoesNotApply("the kernel uses the name 'other' itself");
  const auto conditions = AsConditions(subject);
  if (!conditions) return DoesNotApply("the kernel returns in another way than by bounds");
  return BlockSharing(subject, *conditions).Run();
}

}  // namespace atunner::rewrites
