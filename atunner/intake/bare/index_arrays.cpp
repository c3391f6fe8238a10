#include "atunner/intake/bare/index_arrays.h"

#include <algorithm>
#include <optional>
#include <set>

namespace atunner {
namespace {

using Names = std::set<std::string, std::less<>>;

/// An element of a parameter: p[index], *(p + index), __ldg(p + index).
struct Access {
  std::string array;
  TokenRange index;
};

class Finder {
 public:
  Finder(const CudaSyntax& syntax, const KernelDefinition& kernel,
         const std::vector<std::string>& integers)
      : syntax_(syntax), body_(kernel.body), integers_(integers.begin(), integers.end()) {
    for (const KernelParameter& parameter : kernel.parameters) {
      (parameter.pointer ? pointers_ : scalars_).insert(parameter.name);
    }
  }

  std::map<std::string, IndexArray> Run() {
    FindAccesses();
    while (Assign()) {
    }
    for (const Access& access : accesses_) NoteAddressing(access);
    for (const std::string& name : integers_) {
      if (HasNeighbours(name) && IsABound(name, found_.contains(name))) found_[name].offsets = true;
    }
    return std::move(found_);
  }

 private:
  const Token& At(size_t i) const { return syntax_.token(i); }
  bool IsMember(size_t i) const {
    return i > body_.begin && (At(i - 1).Is(".") || At(i - 1).Is("->"));
  }
  static bool Opens(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
  static bool Closes(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

  /// End of the expression that begins at `from`: a comma, a semicolon or a closing bracket.
  size_t EndOf(size_t from) const {
    for (size_t i = from; i < body_.end; ++i) {
      if (Opens(At(i))) {
        i = MatchingClose(syntax_, i);
      } else if (Closes(At(i)) || At(i).Is(",") || At(i).Is(";")) {
        return i;
      }
    }
    return body_.end;
  }

  void FindAccesses() {
    for (size_t i = body_.begin; i + 1 < body_.end; ++i) {
      if (IsMember(i) || !pointers_.contains(At(i).text)) continue;
      if (At(i + 1).Is("["))
        accesses_.push_back(
            {std::string(At(i).text), {i + 2, std::min(MatchingClose(syntax_, i + 1), body_.end)}});
      else if (At(i + 1).Is("+"))
        accesses_.push_back({std::string(At(i).text), {i + 2, EndOf(i + 2)}});
    }
  }

  /// The integer arrays whose values a range computes with. Text between square brackets is an
  /// index and does not count.
  Names ValuesIn(TokenRange range) const {
    Names values;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (At(i).Is("[")) {
        i = MatchingClose(syntax_, i);
        continue;
      }
      if (At(i).kind != Token::Kind::kWord || IsMember(i)) continue;
      if (integers_.contains(At(i).text)) values.emplace(At(i).text);
      if (const auto held = held_.find(At(i).text); held != held_.end())
        values.insert(held->second.begin(), held->second.end());
    }
    return values;
  }

  /// The variable, or the local array, that the assignment at token `at` writes.
  std::optional<std::string> Target(size_t at) const {
    size_t name = at - 1;
    if (At(name).Is("]")) {
      int depth = 1;
      while (depth > 0 && name > body_.begin) {
        --name;
        depth += At(name).Is("]") ? 1 : At(name).Is("[") ? -1 : 0;
      }
      if (name == body_.begin) return std::nullopt;
      --name;
    }
    if (At(name).kind != Token::Kind::kWord || pointers_.contains(At(name).text))
      return std::nullopt;
    return std::string(At(name).text);
  }

  /// The values of a conditional expression (`a : b` of `c ? a : b`), else the range itself; empty
  /// for a comparison.
  TokenRange ValueOf(TokenRange range) const {
    bool compares = false;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (At(i).Is("?")) return {i + 1, range.end};
      if (Opens(At(i))) i = std::min(MatchingClose(syntax_, i), range.end);
      for (std::string_view op : {"<", ">", "<=", ">=", "==", "!=", "&&", "||"})
        compares |= i < range.end && At(i).Is(op);
    }
    return compares ? TokenRange{} : range;
  }

  /// One pass over the assignments; true if a variable was found to hold values of one more array.
  bool Assign() {
    bool more = false;
    for (size_t i = body_.begin + 1; i + 1 < body_.end; ++i) {
      if (!At(i).Is("=")) continue;
      const auto target = Target(i);
      if (!target) continue;
      const Names values = ValuesIn(ValueOf({i + 1, EndOf(i + 1)}));
      if (values.empty()) continue;
      const int64_t less = MinusOf(ValueOf({i + 1, EndOf(i + 1)}));
      const auto [known, is_new] = less_.try_emplace(*target, less);
      if (!is_new) known->second = std::min(known->second, less);
      Names& held = held_[*target];
      const size_t before = held.size();
      held.insert(values.begin(), values.end());
      more |= held.size() != before;
    }
    return more;
  }

  /// Splits a range at operators outside of brackets.
  std::vector<TokenRange> Split(TokenRange range,
                                std::initializer_list<std::string_view> operators) const {
    std::vector<TokenRange> pieces = {{range.begin, range.begin}};
    for (size_t i = range.begin; i < range.end; ++i) {
      if (std::ranges::any_of(operators, [&](std::string_view op) { return At(i).Is(op); })) {
        pieces.push_back({i + 1, i + 1});
        continue;
      }
      if (Opens(At(i))) i = std::min(MatchingClose(syntax_, i), range.end - 1);
      pieces.back().end = i + 1;
    }
    return pieces;
  }

  /// The constant that is subtracted in a range: 1 in `v - 1`, or in a variable that holds `v - 1`.
  int64_t MinusOf(TokenRange range) const {
    int64_t minus = 0;
    const TokenRange inner = Unwrapped(range);
    for (const TokenRange& term : Split(inner, {"+", "-"})) {
      if (term.end != term.begin + 1) continue;
      const Token& token = At(term.begin);
      if (const auto less = less_.find(token.text); less != less_.end()) minus += less->second;
      const bool taken = term.begin > inner.begin && At(term.begin - 1).Is("-");
      if (taken && token.kind == Token::Kind::kNumber)
        minus += std::atoll(std::string(token.text).c_str());
    }
    return minus;
  }

  /// MinusOf the factor of a product that has the array's values.
  int64_t MinusOfFactor(TokenRange term, const std::string& array) const {
    for (const TokenRange& piece : Split(Unwrapped(term), {"*"})) {
      if (ValuesIn(piece).contains(array)) return MinusOf(piece);
    }
    return 0;
  }

  TokenRange Unwrapped(TokenRange range) const {
    while (!range.empty() && At(range.begin).Is("(") &&
           MatchingClose(syntax_, range.begin) + 1 == range.end)
      range = {range.begin + 1, range.end - 1};
    return range;
  }

  /// The factors of a product other than the one with the value of `array`; {"?"} if one of them is
  /// neither a number nor a parameter.
  std::vector<std::string> FactorsBeside(TokenRange term, const std::string& array) const {
    std::vector<std::string> factors;
    if (Split(Unwrapped(term), {"<"}).size() > 1) return {"?"};  // a shift
    for (const TokenRange& piece : Split(Unwrapped(term), {"*"})) {
      if (!array.empty() && ValuesIn(piece).contains(array)) {
        const size_t terms = Split(Unwrapped(piece), {"+", "-"}).size();
        if (terms > 2 || (terms == 2 && MinusOf(piece) == 0)) return {"?"};
        continue;
      }
      const TokenRange factor = Unwrapped(piece);
      const bool single = factor.end == factor.begin + 1;
      const bool known = single && (At(factor.begin).kind == Token::Kind::kNumber ||
                                    scalars_.contains(At(factor.begin).text) ||
                                    syntax_.FindConstant(At(factor.begin).text) != nullptr);
      if (known)
        factors.emplace_back(At(factor.begin).text);
      else if (!array.empty())
        return {"?"};
    }
    return factors;
  }

  void NoteAddressing(const Access& access) {
    const TokenRange index = Unwrapped(access.index);
    const std::vector<TokenRange> terms = Split(index, {"+", "-"});
    for (size_t t = 0; t < terms.size(); ++t) {
      for (const std::string& array : ValuesIn(terms[t])) {
        AddressedArray use;
        use.array = access.array;
        use.scale = FactorsBeside(terms[t], array);
        use.minus = MinusOfFactor(terms[t], array);
        for (size_t other = 0; other < terms.size(); ++other) {
          if (other != t && !terms[other].empty()) NoteOtherTerm(terms[other], index, use);
        }
        found_[array].into.push_back(std::move(use));
      }
    }
  }

  /// Adds a further term of an index: a literal offset, or a product that makes v a column index.
  void NoteOtherTerm(TokenRange term, TokenRange index, AddressedArray& use) const {
    const Token& first = At(term.begin);
    const bool literal = first.kind == Token::Kind::kNumber && term.end == term.begin + 1;
    const bool added = term.begin == index.begin || At(term.begin - 1).Is("+");
    const int64_t number = literal ? std::atoll(std::string(first.text).c_str()) : 0;
    if (literal && !added && use.scale.empty()) use.minus += number;
    if (literal && added) use.plus = std::max(use.plus, number);
    if (Split(Unwrapped(term), {"*"}).size() < 2) return;
    use.row = FactorsBeside(term, "");
    if (use.row.empty()) use.row = {"?"};
  }

  std::string Joined(TokenRange range) const {
    std::string text;
    for (size_t i = range.begin; i < range.end; ++i) text += At(i).text;
    return text;
  }

  /// True if elements i and i + 1 of the array are both read.
  bool HasNeighbours(const std::string& array) const {
    Names places;
    for (const Access& access : accesses_) {
      if (access.array == array) places.insert(Joined(Unwrapped(access.index)));
    }
    return std::ranges::any_of(places, [&](const std::string& place) {
      return places.contains(place + "+1") || places.contains("1+" + place) ||
             places.contains(place + "-1");
    });
  }

  /// True if the condition of a loop (or, with `branches`, of an if) compares a value of the array.
  bool IsABound(const std::string& array, bool branches) const {
    for (size_t i = body_.begin; i + 1 < body_.end; ++i) {
      const bool asks = At(i).Is("for") || At(i).Is("while") || (branches && At(i).Is("if"));
      if (!asks || !At(i + 1).Is("(")) continue;
      TokenRange condition{i + 2, std::min(MatchingClose(syntax_, i + 1), body_.end)};
      if (At(i).Is("for")) {
        const std::vector<TokenRange> parts = Split(condition, {";"});
        condition = parts.size() > 1 ? parts[1] : TokenRange{};
      }
      for (const TokenRange& one : Split(condition, {"&&", "||"})) {
        if (Split(one, {"<", "<=", ">", ">="}).size() > 1 && ValuesIn(one).contains(array))
          return true;
      }
    }
    return false;
  }

  const CudaSyntax& syntax_;
  const TokenRange body_;
  const Names integers_;
  Names pointers_, scalars_;
  std::vector<Access> accesses_;
  /// Arrays whose values a variable holds, by variable
  std::map<std::string, Names, std::less<>> held_;
  /// The constant that was subtracted from those values, by variable
  std::map<std::string, int64_t, std::less<>> less_;
  std::map<std::string, IndexArray> found_;
};

}  // namespace

std::map<std::string, IndexArray> FindIndexArrays(const CudaSyntax& syntax,
                                                  const KernelDefinition& kernel,
                                                  const std::vector<std::string>& integers) {
  return Finder(syntax, kernel, integers).Run();
}

}  // namespace atunner
