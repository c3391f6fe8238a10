#include "atunner/rewrites/source/row_in_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/source/loop_uses.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

constexpr int kLongestRow = 64;  // registers of a thread

/// A row of a thread: all accesses to `array` are array[index * length + element].
struct Row {
  const KernelParameter* array = nullptr;
  std::string index;
  int length = 0;
  int vector = 4;         ///< elements of an access
  std::set<int> written;  ///< elements
  std::vector<ElementRead> accesses;
  std::vector<std::string> elements;  ///< of each access, as text
  std::set<std::string> loops;        ///< variables of loops over elements
};

std::optional<int> NumberIn(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

/// The length of "i * 8" or "8 * i".
std::optional<int> LengthIn(const std::string& text, const std::string& index) {
  if (text.starts_with(index + " * ")) return NumberIn(text.substr(index.size() + 3));
  if (text.ends_with(" * " + index))
    return NumberIn(text.substr(0, text.size() - index.size() - 3));
  return std::nullopt;
}

/// The bounds of a loop over elements: "for (int d = 0; d < 8; ++d)".
std::optional<std::pair<int, int>> BoundsOf(const Subject& subject, const std::string& variable) {
  std::optional<std::pair<int, int>> bounds;
  int loops = 0;
  Walk(subject.body(), [&](const Statement& statement) {
    const auto loop = AsCountedLoop(subject, statement);
    if (!loop || loop->variable != variable) return;
    ++loops;
    const auto begin = NumberIn(subject.Text(loop->begin)), end = NumberIn(subject.Text(loop->end));
    const bool less = subject.syntax().token(statement.condition.begin + 1).Is("<");
    if (begin && end && less) bounds = {*begin, *end};
  });
  return loops == 1 ? bounds : std::nullopt;
}

bool IsWritten(const Subject& subject, const ElementRead& access) {
  static constexpr std::array<std::string_view, 11> kOps = {
      "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"};
  const auto assigns = [&](const Token& token) {
    return std::ranges::find(kOps, token.text) != kOps.end();
  };
  return assigns(subject.syntax().token(access.whole.end)) ||
         subject.syntax().token(access.whole.begin - 1).Is("++") ||
         subject.syntax().token(access.whole.begin - 1).Is("--");
}

bool TakeAccess(const Subject& subject, const ElementRead& access, Row& row) {
  std::string text = Joined(subject.syntax(), access.subscript), element = "0";
  if (const size_t plus = text.find(" + "); plus != std::string::npos) {
    element = text.substr(plus + 3);
    text.resize(plus);
  }
  const auto length = LengthIn(text, row.index);
  if (!length || (row.length != 0 && *length != row.length)) return false;
  row.length = *length;
  std::pair<int, int> range;
  if (const auto number = NumberIn(element)) {
    range = {*number, *number + 1};
  } else if (const auto bounds = BoundsOf(subject, element)) {
    range = *bounds;
    row.loops.insert(element);
  } else {
    return false;
  }
  if (range.first < 0 || range.second > row.length) return false;
  if (IsWritten(subject, access))
    for (int i = range.first; i < range.second; ++i) row.written.insert(i);
  row.accesses.push_back(access);
  row.elements.push_back(element);
  return true;
}

/// The row of a parameter; nullopt if it is used in another way.
std::optional<Row> RowOf(const Subject& subject, const KernelParameter& parameter) {
  static constexpr std::array<std::string_view, 4> kTypes = {"float", "int", "unsigned int",
                                                             "unsigned"};
  if (!parameter.pointer || std::ranges::find(kTypes, parameter.type) == kTypes.end())
    return std::nullopt;
  Row row;
  row.array = &parameter;
  row.index = subject.IndexOn('x')->name;
  for (const ElementRead& access : ReadsIn(subject, subject.kernel().body)) {
    if (access.array == parameter.name && !TakeAccess(subject, access, row)) return std::nullopt;
  }
  const size_t mentions = CountMentions(subject, subject.kernel().body, parameter.name);
  if (row.accesses.size() < 1 || mentions != row.accesses.size() || row.length < 2 ||
      row.length > kLongestRow || row.length % 2 != 0)
    return std::nullopt;
  row.vector = row.length % 4 == 0 ? 4 : 2;
  const bool one_access = row.accesses.size() == 1 && row.loops.empty();
  return one_access ? std::nullopt : std::optional(row);
}

std::string VectorType(const Row& row) {
  const std::string base = row.array->type.starts_with("unsigned") ? "uint" : row.array->type;
  return base + std::to_string(row.vector);
}

class Rewriter {
 public:
  explicit Rewriter(const Subject& subject) : subject_(subject), edits_(subject.syntax()) {}

  /// False if the statements around the accesses have a form that is not known.
  bool Take(const Row& row) {
    const std::vector<Statement>& list = Around(row);
    const auto uses = [&](const Statement& one) {
      return subject_.Mentions(one.range, row.array->name);
    };
    const auto first = std::ranges::find_if(list, uses);
    if (first == list.end()) return false;
    auto last = first;
    for (auto at = first; at != list.end(); ++at) {
      if (subject_.Mentions(at->range, "return")) return false;
      if (uses(*at)) last = at;
    }
    const std::string name = subject_.FreshName(row.array->name + "_row");
    const std::string indent = IndentAt(subject_.syntax(), first->range.begin);
    edits_.InsertBefore(first->range.begin, Load(row, name, indent));
    for (size_t i = 0; i < row.accesses.size(); ++i)
      edits_.Replace(row.accesses[i].whole, fmt::format("{}[{}]", name, row.elements[i]));
    if (!row.written.empty()) edits_.InsertBehind(last->range.end - 1, Store(row, name, indent));
    for (const std::string& loop : row.loops) Unroll(loop);
    return true;
  }

  std::string Apply() const { return edits_.Apply(); }

 private:
  /// The statements of the kernel, or of the one `if` that has all accesses.
  const std::vector<Statement>& Around(const Row& row) const {
    const std::vector<Statement>* list = &subject_.body();
    for (const Statement& one : subject_.body()) {
      const bool all = std::ranges::all_of(row.accesses, [&](const ElementRead& access) {
        return access.whole.begin >= one.range.begin && access.whole.end <= one.range.end;
      });
      if (all && one.kind == Kind::kIf && one.children.size() == 1 &&
          one.children[0].kind == Kind::kBlock)
        list = &one.children[0].children;
    }
    return *list;
  }

  std::string Load(const Row& row, const std::string& name, const std::string& indent) const {
    std::string text = fmt::format("alignas({}) {} {}[{}];\n{}", 4 * row.vector, row.array->type,
                                   name, row.length, indent);
    for (int i = 0; i < row.length / row.vector; ++i)
      text += fmt::format(
          "reinterpret_cast<{0}*>({1})[{2}] = "
          "reinterpret_cast<const {0}*>({3})[{4} * {5}{6}];\n{7}",
          VectorType(row), name, i, row.array->name, row.index, row.length / row.vector,
          i == 0 ? "" : fmt::format(" + {}", i), indent);
    return text;
  }

  std::string Store(const Row& row, const std::string& name, const std::string& indent) const {
    std::set<int> vectors;
    for (const int element : row.written) vectors.insert(element / row.vector);
    std::string text;
    for (const int i : vectors)
      text += fmt::format(
          "\n{7}reinterpret_cast<{0}*>({3})[{4} * {5}{6}] = "
          "reinterpret_cast<const {0}*>({1})[{2}];",
          VectorType(row), name, i, row.array->name, row.index, row.length / row.vector,
          i == 0 ? "" : fmt::format(" + {}", i), indent);
    return text;
  }

  /// An array stays in registers only where its subscripts are constants.
  void Unroll(const std::string& variable) {
    if (!unrolled_.insert(variable).second) return;
    Walk(subject_.body(), [&](const Statement& statement) {
      const auto loop = AsCountedLoop(subject_, statement);
      if (!loop || loop->variable != variable) return;
      const size_t at = statement.range.begin;
      if (at > 0 && subject_.syntax().token(at - 1).kind == Token::Kind::kDirective) return;
      edits_.InsertBefore(at, "#pragma unroll\n" + IndentAt(subject_.syntax(), at));
    });
  }

  const Subject& subject_;
  TextEdits edits_;
  std::set<std::string> unrolled_;
};

}  // namespace

Result<std::vector<Proposal>> RowInRegisters(const Subject& subject) {
  if (subject.IndexOn('x') == nullptr)
    return DoesNotApply("the kernel has no index 'blockIdx.x * blockDim.x + threadIdx.x'");
  Rewriter rewriter(subject);
  int rows = 0;
  for (const KernelParameter& parameter : subject.kernel().parameters) {
    const auto row = RowOf(subject, parameter);
    if (row && rewriter.Take(*row)) ++rows;
  }
  if (rows == 0) return DoesNotApply("no thread has several neighbouring elements of its own");
  return std::vector<Proposal>{{rewriter.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
