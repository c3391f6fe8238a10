#include "atunner/rewrites/source/coarsen_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

constexpr std::array<uint32_t, 2> kResults = {4, 2};

/// The index that a thread has several neighbouring values of, and its declaration. It is not on x:
/// there neighbouring threads access neighbouring elements.
struct Axis {
  char name = 'y';
  std::string index;  ///< "row"
  std::string type;   ///< "int"
  std::string value;  ///< "blockIdx.y * blockDim.y + threadIdx.y"
  const Statement* declaration = nullptr;
};

uint32_t Extent(Dim3 grid, char axis) { return axis == 'y' ? grid.y : grid.z; }

/// `int m = blockIdx.z;` or a thread's index on that axis.
std::optional<Axis> AsAxis(const Subject& subject, const Statement& statement, char name) {
  if (statement.kind != Kind::kDeclaration) return std::nullopt;
  const CudaSyntax& syntax = subject.syntax();
  const TokenRange left = UpTo(syntax, statement.range, "=");
  if (left.end + 1 >= statement.range.end || left.end < left.begin + 2) return std::nullopt;
  const TokenRange value{left.end + 1, statement.range.end - 1};
  const ThreadIndex* index = subject.IndexOn(name);
  const bool of_threads = index != nullptr && index->value.begin == value.begin;
  const bool of_blocks = index == nullptr &&
                         Joined(syntax, value) == fmt::format("blockIdx . {}", name);
  if (!of_threads && !of_blocks) return std::nullopt;
  Axis axis{name, std::string(syntax.token(left.end - 1).text),
            subject.Text({left.begin, left.end - 1}), subject.Text(value), &statement};
  if (axis.type.starts_with("const ")) axis.type.erase(0, 6);
  return axis;
}

/// The names whose values differ between the results of a thread.
class Varying {
 public:
  Varying(const Subject& subject, const std::vector<Statement>& statements,
          const std::string& index)
      : subject_(subject), names_{index} {
    Walk(statements, [&](const Statement& statement) {
      if (statement.kind == Kind::kDeclaration) locals_.merge(NamesOf(statement));
    });
    size_t before = 0;
    while (std::exchange(before, names_.size()) != names_.size())
      for (const Statement& statement : statements) Take(statement, false);
  }

  const std::set<std::string>& names() const { return names_; }
  bool In(TokenRange range) const {
    return std::ranges::any_of(
        names_, [&](const std::string& name) { return subject_.Mentions(range, name); });
  }
  bool InHeader(const Statement& statement) const {
    return In(statement.init) || In(statement.condition) || In(statement.step);
  }

 private:
  std::set<std::string> NamesOf(const Statement& declaration) const {
    const auto names = DeclaredIn(subject_.syntax(), declaration.range);
    return {names.begin(), names.end()};
  }

  /// `each`: the statement stands behind a condition that varies.
  void Take(const Statement& statement, bool each) {
    each = each || InHeader(statement);
    if (statement.children.empty() && (each || In(statement.range))) AddTargets(statement);
    for (const Statement& child : statement.children) Take(child, each);
  }

  /// The local variables that the statement declares or writes: its first name, and those behind &.
  void AddTargets(const Statement& statement) {
    if (statement.kind == Kind::kDeclaration) names_.merge(NamesOf(statement));
    if (statement.kind != Kind::kExpression) return;
    bool first = true;
    for (size_t i = statement.range.begin; i < statement.range.end; ++i) {
      const Token& token = subject_.syntax().token(i);
      if (token.kind != Token::Kind::kWord) continue;
      const bool written = std::exchange(first, false) || subject_.syntax().token(i - 1).Is("&");
      if (written && locals_.contains(std::string(token.text))) names_.emplace(token.text);
    }
  }

  const Subject& subject_;
  std::set<std::string> names_;
  std::set<std::string> locals_;
};

/// The statements for several results: those that vary once for each of them.
class Copies {
 public:
  Copies(const Subject& subject, const Varying& varying, uint32_t results)
      : subject_(subject), varying_(varying), results_(results) {}

  std::string Of(const std::vector<Statement>& statements, const std::string& indent) const {
    std::string text;
    for (const Statement& statement : statements) text += Of(statement, indent);
    return text;
  }

 private:
  std::string Of(const Statement& statement, const std::string& indent) const {
    if (!varying_.In(statement.range)) return Line(indent, subject_.Text(statement.range));
    if (statement.kind == Kind::kBlock)
      return indent + "{\n" + Of(statement.children, indent + "  ") + indent + "}\n";
    const bool common = statement.kind == Kind::kFor || statement.kind == Kind::kIf;
    if (common && !varying_.InHeader(statement)) return Inside(statement, indent);
    std::string text;
    for (uint32_t i = 0; i < results_; ++i) {
      std::map<std::string, std::string> names;
      for (const std::string& name : varying_.names()) names[name] = fmt::format("{}_{}", name, i);
      text += Line(indent, Renamed(subject_, statement.range, names));
    }
    return text;
  }

  /// A loop or an if whose header all results share.
  std::string Inside(const Statement& statement, const std::string& indent) const {
    std::string text = indent;
    size_t begin = statement.range.begin;
    for (const Statement& child : statement.children) {
      std::string head = subject_.Text({begin, child.range.begin});
      text += (text == indent ? "" : " ") + head + " {\n";
      text += Of(child.kind == Kind::kBlock ? child.children : std::vector<Statement>{child},
                 indent + "  ");
      text += indent + "}";
      begin = child.range.end;
    }
    return text + "\n";
  }

  static std::string Line(const std::string& indent, const std::string& text) {
    return (text.starts_with('#') ? "" : indent) + text + "\n";
  }

  const Subject& subject_;
  const Varying& varying_;
  uint32_t results_;
};

/// True for "row < m" and "row > 0 - 1": where it holds at both ends, it holds between them.
bool IsBound(const std::string& condition) {
  static constexpr std::array<std::string_view, 6> kOthers = {"%", "==", "!=", "|", "?", "&"};
  return condition.find_first_of("<>") != std::string::npos &&
         std::ranges::none_of(kOthers, [&](std::string_view other) {
           return condition.find(other) != std::string::npos;
         });
}

class Coarsening {
 public:
  Coarsening(const Subject& subject, const Conditions& body, Axis axis)
      : subject_(subject), body_(body), axis_(std::move(axis)) {}

  /// Refuses what other values of the index would change beside the results.
  Status Check() {
    for (const Statement& statement : body_.statements)
      if (statement.range.begin != axis_.declaration->range.begin) work_.push_back(statement);
    const Varying varying(subject_, work_, axis_.index);
    for (const Statement& statement : work_) {
      const std::string text = Joined(subject_.syntax(), statement.range);
      for (const char* place : {"blockIdx", "threadIdx", "blockDim", "gridDim"})
        if (text.find(fmt::format("{} . {}", place, axis_.name)) != std::string::npos)
          return DoesNotApply(fmt::format("'{}.{}' is used again", place, axis_.name));
    }
    for (const std::string& one : body_.inside) ATUNNER_RETURN_IF_ERROR(Sort(one, varying));
    for (const std::string& name : varying.names())
      for (const uint32_t i : {0U, 1U})
        if (subject_.BodyMentions(fmt::format("{}_{}", name, i)))
          return DoesNotApply(fmt::format("the kernel uses the name '{}_{}' itself", name, i));
    return {};
  }

  std::optional<Proposal> With(uint32_t results) const {
    const uint32_t extent = Extent(subject_.launch().grid, axis_.name);
    if (extent < results || (bounds_.empty() && extent % results != 0)) return std::nullopt;
    TextEdits edits(subject_.syntax());
    std::string text = Text(results);
    text.pop_back();  // the line's end
    edits.Replace(subject_.kernel().body, text);
    Proposal proposal{edits.Apply(), {}, fmt::format("{} results along {}", results, axis_.name)};
    proposal.grid.over[static_cast<size_t>(axis_.name - 'x')] = results;
    return proposal;
  }

 private:
  Status Sort(const std::string& condition, const Varying& varying) {
    const CudaSyntax syntax = ParseCuda(condition);
    const TokenRange all{0, syntax.lexed.tokens.size()};
    const auto mentions = [&](const std::string& name) { return Mentions(syntax, all, name); };
    if (std::ranges::none_of(varying.names(), mentions)) {
      others_.push_back(condition);
      return {};
    }
    const bool index_only = std::ranges::all_of(varying.names(), [&](const std::string& name) {
      return name == axis_.index || !mentions(name);
    });
    if (!index_only || !IsBound(condition))
      return DoesNotApply("'" + condition + "' is no bound of '" + axis_.index + "'");
    bounds_.push_back(condition);
    return {};
  }

  std::string Indexed(uint32_t i) const { return fmt::format("{}_{}", axis_.index, i); }

  /// The bounds hold for the first and the last result.
  std::string InsideText(uint32_t results) const {
    std::string text;
    for (const uint32_t i : {0U, results - 1})
      for (const std::string& bound : bounds_)
        text += (text.empty() ? "" : " && ") + RenamedText(bound, axis_.index, Indexed(i));
    return text;
  }

  std::string IndexText(uint32_t results) const {
    std::string text;
    for (uint32_t i = 1; i < results; ++i)
      text += fmt::format("  const {} {} = {} + {};\n", axis_.type, Indexed(i), Indexed(0), i);
    return text;
  }

  /// The statements that do not depend on the index and stand before the first that does.
  size_t Common(const Varying& varying) const {
    size_t count = 0;
    while (count < work_.size() && work_[count].kind == Kind::kDeclaration &&
           !varying.In(work_[count].range))
      ++count;
    return count;
  }

  std::string Text(uint32_t results) const {
    const Varying varying(subject_, work_, axis_.index);
    const size_t common = Common(varying);
    const std::vector<Statement> rest(work_.begin() + static_cast<long>(common), work_.end());
    std::string text = fmt::format("// A thread computes {} results along {}.\n", results,
                                   axis_.name);
    for (const Statement& index : body_.indices)
      if (index.range.begin != axis_.declaration->range.begin)
        text += "  " + subject_.Text(index.range) + "\n";
    for (size_t i = 0; i < common; ++i) text += "  " + subject_.Text(work_[i].range) + "\n";
    text += fmt::format("  const {} {} = {} * ({});\n", axis_.type, Indexed(0), results,
                        axis_.value);
    for (const std::string& other : others_) text += "  if (!(" + other + ")) return;\n";
    text += IndexText(results);
    const Copies copies(subject_, varying, results);
    if (bounds_.empty()) return text + copies.Of(rest, "  ");
    text += "  if (" + InsideText(results) + ") {\n" + copies.Of(rest, "    ") +
            "    return;\n  }\n";
    return text + SingleText(results, rest);
  }

  /// The last results, one after the other.
  std::string SingleText(uint32_t results, const std::vector<Statement>& rest) const {
    std::string text = fmt::format("  for ({0} {1} = {1}_0; {1} <= {2}; ++{1}) {{\n", axis_.type,
                                   axis_.index, Indexed(results - 1));
    for (const std::string& bound : bounds_) text += "    if (!(" + bound + ")) continue;\n";
    for (const Statement& statement : rest) text += "    " + subject_.Text(statement.range) + "\n";
    return text + "  }\n";
  }

  const Subject& subject_;
  const Conditions& body_;
  Axis axis_;
  std::vector<Statement> work_;  ///< all but indices and conditions
  std::vector<std::string> bounds_, others_;
};

Status CheckBody(const Subject& subject, const Conditions& body) {
  for (const Statement& statement : body.statements)
    for (const char* word : {"return", "__syncthreads", "__shared__", "__syncwarp"})
      if (subject.Mentions(statement.range, word))
        return DoesNotApply(fmt::format("the kernel uses '{}'", word));
  if (Joined(subject.syntax(), subject.kernel().body).find("__shfl") != std::string::npos)
    return DoesNotApply("the threads of a warp exchange values");
  return {};
}

}  // namespace

Result<std::vector<Proposal>> CoarsenThreads(const Subject& subject) {
  const auto body = AsConditions(subject);
  if (!body) return DoesNotApply("the kernel returns in another way than by bounds");
  ATUNNER_RETURN_IF_ERROR(CheckBody(subject, *body));
  std::vector<Proposal> proposals;
  std::string why = "neither y nor z of the grid has an index of its own";
  for (const char name : {'z', 'y'}) {
    for (const Statement& statement : subject.body()) {
      auto axis = AsAxis(subject, statement, name);
      if (!axis) continue;
      Coarsening coarsening(subject, *body, *std::move(axis));
      if (const Status fits = coarsening.Check(); !fits) {
        why = fits.error().what;
        continue;
      }
      for (const uint32_t results : kResults)
        if (auto proposal = coarsening.With(results)) proposals.push_back(*std::move(proposal));
    }
  }
  if (proposals.empty()) return DoesNotApply(why);
  return proposals;
}

}  // namespace atunner::rewrites
