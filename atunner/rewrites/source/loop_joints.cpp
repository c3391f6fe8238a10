#include "atunner/rewrites/source/loop_joints.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "atunner/rewrites/rewrite.h"
#include "atunner/rewrites/source/guarded.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

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

/// `if (e > best) { best = e; at = j; }` in a loop over j; also without the place.
std::optional<Joint> AsPlace(const Subject& subject, const Statement& statement,
                             const CountedLoop& loop) {
  if (statement.kind != Kind::kIf || statement.children.size() != 1) return std::nullopt;
  const Statement& child = statement.children[0];
  const std::vector<Statement> both = child.kind == Kind::kBlock ? child.children
                                                                 : std::vector<Statement>{child};
  if (both.empty() || both.size() > 2) return std::nullopt;
  const auto best = AsAssignment(subject, both[0]);
  const auto at = AsAssignment(subject, both.back());
  if (!best || !at || best->is_element() || at->is_element() || best->op != "=" || at->op != "=")
    return std::nullopt;
  if (both.size() == 2 && subject.Text(at->value) != loop.variable) return std::nullopt;
  const std::string value = subject.Text(best->value),
                    condition = subject.Text(statement.condition);
  const bool largest = condition == value + " > " + best->target;
  if (!largest && condition != value + " < " + best->target) return std::nullopt;
  return Joint{Joint::Kind::kPlace, best->target, "", both.size() == 2 ? at->target : "", largest};
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
    const bool zero = StartsAtZero(subject_, around_, number_, one.target);
    joints_.push_back({Joint::Kind::kSum, one.target, "", "", true, !zero});
    return {};
  }

  Status TakeElement(const Assignment& one) const {
    if (subject_.Mentions(one.subscript, loop_.variable)) return {};
    return DoesNotApply("all iterations write to the same element of '" + one.target + "'");
  }

  /// The loop uses the variable in no other statement.
  bool UsedOnlyHere(const Assignment& one) const {
    return CountMentions(subject_, loop_.loop->range, one.target) ==
           CountMentions(subject_, one.statement->range, one.target);
  }

  const Subject& subject_;
  const std::vector<Statement>& around_;
  size_t number_;
  const CountedLoop& loop_;
  LoopUses uses_;
  std::set<std::string> known_;
  std::vector<Joint> joints_;
};

}  // namespace

Result<std::vector<Joint>> JointsOf(const Subject& subject, const std::vector<Statement>& around,
                                    size_t number, const CountedLoop& loop) {
  return LoopReader(subject, around, number, loop).Read();
}

}  // namespace atunner::rewrites
