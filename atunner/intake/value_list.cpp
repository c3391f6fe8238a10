#include "atunner/intake/value_list.h"

#include <cctype>
#include <optional>

#include "atunner/intake/parameter_form.h"

namespace atunner {
namespace {

constexpr size_t kMostValues = 65536;
constexpr int kMostNested = 16;

std::unexpected<Error> TooMany() { return Invalid("a list of more than 65536 values"); }

bool IsOpening(char c) { return c == '(' || c == '[' || c == '{'; }
bool IsClosing(char c) { return c == ')' || c == ']' || c == '}'; }

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// True if the text has `word` at `at`, and not as a part of a longer word.
bool IsWordAt(std::string_view text, size_t at, std::string_view word) {
  if (!text.substr(at).starts_with(word)) return false;
  const bool starts = at == 0 || !IsWordChar(text[at - 1]);
  return starts && (at + word.size() >= text.size() || !IsWordChar(text[at + word.size()]));
}

/// Position of `word` outside of brackets and quotes, from `from` on; npos if there is none.
size_t FindWord(std::string_view text, std::string_view word, size_t from = 0) {
  int depth = 0;
  char quote = 0;
  for (size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    depth += IsOpening(c) - IsClosing(c);
    if (depth == 0 && IsWordAt(text, i, word)) return i;
  }
  return std::string_view::npos;
}

/// The text between `opening` ("range(") and `closing` if these enclose the whole text.
std::optional<std::string_view> InsideOf(std::string_view text, std::string_view opening,
                                         char closing) {
  if (!text.starts_with(opening) || !text.ends_with(closing)) return std::nullopt;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += IsOpening(text[i]) - IsClosing(text[i]);
    // The bracket closes before the end: "[1] + [2]".
    if (depth == 0 && i >= opening.size() - 1 && i + 1 < text.size()) return std::nullopt;
  }
  return text.substr(opening.size(), text.size() - opening.size() - 1);
}

Result<std::vector<Value>> Piece(std::string_view text, int depth);

Result<std::vector<Value>> Sum(std::string_view text, int depth) {
  if (depth > kMostNested) return Invalid("a list nested too deeply");
  std::vector<Value> all;
  for (const std::string& piece : SplitOutsideBrackets(text, '+')) {
    ATUNNER_TRY(const std::vector<Value> values, Piece(piece, depth + 1));
    all.insert(all.end(), values.begin(), values.end());
    if (all.size() > kMostValues) return TooMany();
  }
  return all;
}

Result<std::vector<int64_t>> Integers(std::string_view arguments) {
  std::vector<int64_t> numbers;
  for (const std::string& text : SplitOutsideBrackets(arguments, ',')) {
    ATUNNER_TRY(const Expr expr, Expr::Parse(text));
    ATUNNER_TRY(const int64_t number, expr.EvaluateInt({}));
    numbers.push_back(number);
  }
  return numbers;
}

/// Python's range(stop), range(start, stop) and range(start, stop, step).
Result<std::vector<Value>> Range(std::string_view arguments) {
  ATUNNER_TRY(const std::vector<int64_t> numbers, Integers(arguments));
  if (numbers.empty() || numbers.size() > 3) return Invalid("range() takes one to three integers");
  const int64_t start = numbers.size() > 1 ? numbers[0] : 0;
  const int64_t stop = numbers.size() > 1 ? numbers[1] : numbers[0];
  const int64_t step = numbers.size() > 2 ? numbers[2] : 1;
  if (step == 0) return Invalid("range() with a step of 0");
  std::vector<Value> values;
  int64_t i = start;
  while (step > 0 ? i < stop : i > stop) {
    values.emplace_back(i);
    if (values.size() > kMostValues) return TooMany();
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return values;
}

/// numpy's linspace(first, last, count) and geomspace(first, last, count).
Result<std::vector<Value>> Spaced(std::string_view arguments, bool logarithmic) {
  const std::vector<std::string> texts = SplitOutsideBrackets(arguments, ',');
  if (texts.size() != 3) return Invalid("linspace() and geomspace() take first, last and how many");
  std::vector<Value> values;
  for (const std::string& text : texts) {
    ATUNNER_TRY(const Expr expr, Expr::Parse(text));
    ATUNNER_TRY(Value value, expr.Evaluate({}));
    values.push_back(std::move(value));
  }
  const auto* count = std::get_if<int64_t>(&values[2]);
  if (count == nullptr) return Invalid("linspace() and geomspace() take a whole number of values");
  return SpacedValues(values[0], values[1], *count, logarithmic);
}

/// `element` for each value of `variable` in `source` that meets the condition.
Result<std::vector<Value>> Mapped(const std::string& variable, const std::vector<Value>& source,
                                  const Expr& element, const std::optional<Expr>& condition) {
  std::vector<Value> values;
  const std::vector<std::string> names = {variable};
  for (const Value& each : source) {
    const std::vector<Value> bound = {each};
    Bindings bindings;
    bindings.Add(names, bound);
    if (condition) {
      ATUNNER_TRY(const bool wanted, condition->EvaluateBool(bindings));
      if (!wanted) continue;
    }
    ATUNNER_TRY(Value value, element.Evaluate(bindings));
    values.push_back(std::move(value));
  }
  return values;
}

/// "ELEMENT for VARIABLE in LIST if CONDITION"; `at_for` is the position of "for".
Result<std::vector<Value>> Comprehension(std::string_view inside, size_t at_for, int depth) {
  const size_t at_in = FindWord(inside, "in", at_for + 3);
  if (at_in == std::string_view::npos) return Invalid("'for' without 'in'");
  const std::string variable = Trim(inside.substr(at_for + 3, at_in - at_for - 3));
  const size_t at_if = FindWord(inside, "if", at_in + 2);
  ATUNNER_TRY(const Expr element, Expr::Parse(Trim(inside.substr(0, at_for))));
  ATUNNER_TRY(
      const std::vector<Value> source,
      Sum(inside.substr(at_in + 2, at_if == std::string_view::npos ? at_if : at_if - at_in - 2),
          depth));
  std::optional<Expr> condition;
  if (at_if != std::string_view::npos) {
    ATUNNER_TRY(condition, Expr::Parse(Trim(inside.substr(at_if + 2))));
  }
  return Mapped(variable, source, element, condition);
}

Result<std::vector<Value>> Elements(std::string_view inside, int depth) {
  if (const size_t at_for = FindWord(inside, "for"); at_for != std::string_view::npos)
    return Comprehension(inside, at_for, depth);
  std::vector<Value> values;
  for (const std::string& text : SplitOutsideBrackets(inside, ',')) {
    ATUNNER_TRY(const Expr expr, Expr::Parse(text));
    ATUNNER_TRY(Value value, expr.Evaluate({}));
    values.push_back(std::move(value));
    if (values.size() > kMostValues) return TooMany();
  }
  return values;
}

Result<std::vector<Value>> Piece(std::string_view text, int depth) {
  if (const auto inside = InsideOf(text, "list(", ')')) return Sum(*inside, depth);
  if (const auto inside = InsideOf(text, "range(", ')')) return Range(*inside);
  if (const auto inside = InsideOf(text, "linspace(", ')')) return Spaced(*inside, false);
  if (const auto inside = InsideOf(text, "geomspace(", ')')) return Spaced(*inside, true);
  if (const auto inside = InsideOf(text, "[", ']')) return Elements(*inside, depth);
  if (const auto inside = InsideOf(text, "(", ')')) return Elements(*inside, depth);
  return Invalid("'" + std::string(text) + "' is not a list", "",
                 "write [1, 2, 4] or a comprehension over range()");
}

}  // namespace

std::string Trim(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> SplitOutsideBrackets(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  int depth = 0;
  char quote = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == separator && depth == 0) {
      pieces.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    } else {
      depth += IsOpening(c) - IsClosing(c);
    }
  }
  std::string last = Trim(text.substr(start));
  if (!last.empty() || !pieces.empty()) pieces.push_back(std::move(last));
  if (pieces.size() > 1 && pieces.back().empty()) pieces.pop_back();  // a trailing comma
  return pieces;
}

Result<std::vector<Value>> ParseValueList(std::string_view text) {
  const std::string trimmed = Trim(text);
  if (trimmed.empty()) return Invalid("an empty list");
  const bool bracketed = trimmed.find('[') != std::string::npos ||
                         trimmed.find("range") != std::string::npos ||
                         trimmed.find("space(") != std::string::npos;
  return bracketed ? Sum(trimmed, 0) : Elements(trimmed, 0);
}

}  // namespace atunner
