#include "atunner/intake/cuda/structures.h"

#include <algorithm>
#include <string>

#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

constexpr int kMostNested = 8;           // structures in structures
constexpr int64_t kMostElements = 4096;  // numbers of a structure

int64_t RoundedUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Reader {
 public:
  explicit Reader(const CudaSyntax& syntax) : syntax_(syntax) {}

  std::optional<Structure> Run(std::string_view type, int depth) {
    if (const size_t colon = type.rfind("::"); colon != std::string_view::npos)
      type.remove_prefix(colon + 2);
    const TokenRange body = BodyOf(type);
    if (body.empty() || depth > kMostNested) return std::nullopt;
    Structure out;
    for (size_t i = body.begin; i < body.end;) {
      const size_t end = StatementEnd(i, body.end);
      const bool function = end < body.end && Is(end, "}");
      if (!function && !Members({i, end}, depth, out)) return std::nullopt;
      i = end + 1;
    }
    out.bytes = RoundedUp(out.bytes, out.alignment);
    return out.numbers.empty() ? std::nullopt : std::optional(std::move(out));
  }

 private:
  bool Is(size_t i, std::string_view text) const { return syntax_.token(i).Is(text); }

  /// Between the braces of `struct Name { … }` or of `typedef struct { … } Name;`.
  TokenRange BodyOf(std::string_view name) const {
    for (size_t i = 0; i + 2 < syntax_.lexed.tokens.size(); ++i) {
      if (!Is(i, "struct") || (i > 0 && Is(i - 1, ">"))) continue;
      const size_t brace = Is(i + 1, "{") ? i + 1 : i + 2;
      if (!Is(brace, "{")) continue;
      const size_t close = MatchingClose(syntax_, brace);
      if ((brace == i + 2 && Is(i + 1, name)) || Is(close + 1, name)) return {brace + 1, close};
    }
    return {};
  }

  /// The `;` behind the statement that begins at `i`, or the brace that closes a member function.
  size_t StatementEnd(size_t i, size_t end) const {
    while (i < end && !Is(i, ";")) {
      const bool function = Is(i, "{") && (Is(i - 1, ")") || Is(i - 1, "const"));
      if (function) return MatchingClose(syntax_, i);
      i = Is(i, "(") || Is(i, "{") ? MatchingClose(syntax_, i) + 1 : i + 1;
    }
    return std::min(i, end);
  }

  /// Adds the members of one declaration, e.g. `const float x, y[3] = {};`.
  bool Members(TokenRange statement, int depth, Structure& out) {
    TokenRange type;
    for (const TokenRange& piece : SplitArguments(syntax_, statement, true)) {
      size_t name = piece.begin;
      while (name + 1 < piece.end && syntax_.token(name + 1).kind == Token::Kind::kWord) ++name;
      const size_t behind = name + 1;
      const bool ends = behind >= piece.end || Is(behind, "[") || Is(behind, "=") ||
                        Is(behind, "{");
      if (!ends || syntax_.token(name).kind != Token::Kind::kWord) return false;
      if (type.empty()) type = {piece.begin, name};
      if (type.empty()) return false;
      const auto count = ElementsAt(behind);
      if (!count || !Add(TypeText(type), *count, depth, out)) return false;
    }
    return true;
  }

  std::string TypeText(TokenRange type) const {
    std::string text;
    for (size_t i = type.begin; i < type.end; ++i) {
      if (!Is(i, "const") && !Is(i, "struct"))
        text += (text.empty() ? "" : " ") + std::string(syntax_.token(i).text);
    }
    const auto alias = syntax_.FindAlias(text);
    return alias == syntax_.aliases.end() ? text : alias->second;
  }

  /// The product of the extents that begin at a token; nullopt if one is unknown.
  std::optional<int64_t> ElementsAt(size_t at) const {
    int64_t count = 1;
    for (; Is(at, "["); at = MatchingClose(syntax_, at) + 1) {
      std::string text(syntax_.Text({at + 1, MatchingClose(syntax_, at)}));
      if (const FileConstant* constant = syntax_.FindConstant(text)) text = constant->value;
      const auto extent = LiteralOf(text);
      if (!extent || *extent < 1 || *extent > kMostElements) return std::nullopt;
      count *= *extent;
    }
    return count <= kMostElements ? std::optional(count) : std::nullopt;
  }

  /// Adds `count` elements of a type.
  bool Add(const std::string& type, int64_t count, int depth, Structure& out) {
    Structure one;
    if (const auto known = ParseCType(type)) {
      const auto bytes = static_cast<int64_t>(SizeOf(known->dtype));
      for (int lane = 0; lane < known->lanes; ++lane)
        one.numbers.push_back({known->dtype, lane * bytes});
      one.bytes = known->bytes();
      one.alignment = known->lanes == 3 ? bytes : std::min<int64_t>(known->bytes(), 16);
    } else {
      auto nested = Run(type, depth + 1);
      if (!nested) return false;
      one = *std::move(nested);
    }
    const int64_t numbers = static_cast<int64_t>(out.numbers.size() + one.numbers.size() * count);
    if (numbers > kMostElements) return false;
    out.alignment = std::max(out.alignment, one.alignment);
    out.bytes = RoundedUp(out.bytes, one.alignment);
    for (int64_t i = 0; i < count; ++i) {
      for (const Structure::Number& number : one.numbers)
        out.numbers.push_back({number.dtype, out.bytes + number.offset});
      out.bytes += one.bytes;
    }
    return true;
  }

  const CudaSyntax& syntax_;
};

}  // namespace

std::optional<Structure> StructureOf(const CudaSyntax& syntax, std::string_view type) {
  return Reader(syntax).Run(type, 0);
}

std::optional<CType> FloatsOf(const CudaSyntax& syntax, std::string_view type) {
  const auto structure = StructureOf(syntax, type);
  if (!structure) return std::nullopt;
  const DType first = structure->numbers.front().dtype;
  const bool same = std::ranges::all_of(
      structure->numbers, [&](const Structure::Number& one) { return one.dtype == first; });
  const auto lanes = static_cast<int>(structure->numbers.size());
  const bool packed = structure->bytes == static_cast<int64_t>(SizeOf(first)) * lanes;
  return same && packed && IsFloat(first) ? std::optional(CType{first, lanes}) : std::nullopt;
}

}  // namespace atunner
