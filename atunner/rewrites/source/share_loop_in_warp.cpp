#include "atunner/rewrites/source/share_loop_in_warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "atunner/rewrites/source/loop_uses.h"
#include "atunner/rewrites/source/warp_scan.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

constexpr int kLanes = 32;

/// A variable that a loop computes and that is used behind it.
struct Joint {
  enum class Kind : uint8_t { kSum, kExtreme, kPlace };
  Kind kind = Kind::kSum;
  std::string name;
  std::string function;  ///< kExtreme: "fmaxf"
  std::string place;     ///< kPlace: the variable that holds where the extreme is
  bool largest = true;   ///< kPlace
};

/// `largest = fmaxf(largest, e)`
std::optional<Joint> AsExtreme(const Subject& subject, const Assignment& one) {
  static constexpr std::array<std::string_view, 6> kFunctions = {"fmaxf", "fminf", "max",
                                                                 "min",   "fmax",  "fmin"};
  const CudaSyntax& syntax = subject.syntax();
  const std::string function(syntax.token(one.value.begin).text);
  if (one.op != "=" || std::ranges::find(kFunctions, function) == kFunctions.end() ||
      !syntax.token(one.value.begin + 1).Is("("))
    return std::nullopt;
  const size_t close = MatchingClose(syntax, one.value.begin + 1);
  const auto arguments = SplitArguments(syntax, {one.value.begin + 2, close}, false);
  if (close + 1 != one.value.end || arguments.size() != 2) return std::nullopt;
  const bool first = subject.Text(arguments[0]) == one.target;
  const bool second = subject.Text(arguments[1]) == one.target;
  const TokenRange other = arguments[first ? 1 : 0];
  if (!(first || second) || subject.Mentions(other, one.target)) return std::nullopt;
  return Joint{Joint::Kind::kExtreme, one.target, function, "", true};
}

/// `if (e > best) { best = e; at = j; }` in a loop over j.
std::optional<Joint> AsPlace(const Subject& subject, const Statement& statement,
                             const CountedLoop& loop) {
  if (statement.kind != Kind::kIf || statement.children.size() != 1 ||
      statement.children[0].children.size() != 2)
    return std::nullopt;
  const auto best = AsAssignment(subject, statement.children[0].children[0]);
  const auto at = AsAssignment(subject, statement.children[0].children[1]);
  if (!best || !at || best->is_element() || at->is_element() || best->op != "=" || at->op != "=" ||
      subject.Text(at->value) != loop.variable)
    return std::nullopt;
  const std::string value = subject.Text(best->value),
                    condition = subject.Text(statement.condition);
  const bool largest = condition == value + " > " + best->target;
  if (!largest && condition != value + " < " + best->target) return std::nullopt;
  return Joint{Joint::Kind::kPlace, best->target, "", at->target, largest};
}

/// The number of times that a range mentions a name.
size_t Count(const Subject& subject, TokenRange range, const std::string& name) {
  size_t count = 0;
  for (size_t i = range.begin; i < range.end; ++i)
    count += subject.syntax().token(i).text == name ? 1 : 0;
  return count;
}

/// The loop's joints, or why its iterations cannot be shared.
class LoopReader {
 public:
  LoopReader(const Subject& subject, const std::vector<Statement>& around, size_t number,
             const CountedLoop& loop)
      : subject_(subject),
        around_(around),
        number_(number),
        loop_(loop),
        uses_(UsesOf(subject, loop)) {}

  Result<std::vector<Joint>> Read() {
    if (!uses_.obstacle.empty())
      return DoesNotApply("the effect of '" + uses_.obstacle + "' is not known");
    Walk(loop_.loop->children, [&](const Statement& statement) {
      if (const auto place = AsPlace(subject_, statement, loop_)) AddPlace(*place);
    });
    for (const Assignment& one : uses_.assignments) ATUNNER_RETURN_IF_ERROR(Take(one));
    return joints_;
  }

 private:
  void AddPlace(const Joint& place) {
    joints_.push_back(place);
    known_.insert({place.name, place.place});
  }

  Status Take(const Assignment& one) {
    if (one.is_element()) return TakeElement(one);
    if (uses_.locals.contains(one.target) || known_.contains(one.target)) return {};
    if (const auto extreme = AsExtreme(subject_, one); extreme && UsedOnlyHere(one)) {
      joints_.push_back(*extreme);
      return {};
    }
    const bool sum = one.op == "+=" && UsedOnlyHere(one) &&
                     !subject_.Mentions(one.value, one.target);
    if (!sum) return DoesNotApply("an iteration needs '" + one.target + "' of the one before");
    if (!StartsAtZero(subject_, around_, number_, one.target))
      return DoesNotApply("the sum '" + one.target + "' does not begin at 0");
    joints_.push_back({Joint::Kind::kSum, one.target, "", "", true});
    return {};
  }

  Status TakeElement(const Assignment& one) const {
    if (subject_.Mentions(one.subscript, loop_.variable)) return {};
    return DoesNotApply("all iterations write to the same element of '" + one.target + "'");
  }

  /// The loop uses the variable in no other statement.
  bool UsedOnlyHere(const Assignment& one) const {
    return Count(subject_, loop_.loop->range, one.target) ==
           Count(subject_, one.statement->range, one.target);
  }

  const Subject& subject_;
  const std::vector<Statement>& around_;
  size_t number_;
  const CountedLoop& loop_;
  LoopUses uses_;
  std::set<std::string> known_;
  std::vector<Joint> joints_;
};

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
    if (Count(subject_, body, "threadIdx") != 1 || Count(subject_, body, "gridDim") != 0)
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
    LoopReader reader(subject_, statements, number, *loop);
    ATUNNER_TRY(const std::vector<Joint> joints, reader.Read());
    const std::string begin = subject_.Text(loop->begin);
    edits_.Replace(loop->begin, IsZero(begin) ? lane_ : begin + " + " + lane_);
    edits_.Replace(loop->step, loop->variable + " += 32");
    const std::string indent = IndentAt(subject_.syntax(), statements[number].range.begin);
    std::string text;
    for (const Joint& joint : joints) text += JoinText(joint, indent);
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
