// Look-ups in a parsed source, and splitting of token ranges.
#include <algorithm>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

bool IsLaunchOf(const KernelLaunch& launch, const KernelDefinition& kernel) {
  return launch.kernel == kernel.name || launch.kernel == kernel.qualified ||
         kernel.qualified.ends_with("::" + launch.kernel);
}

std::string_view CudaSyntax::Text(TokenRange range) const {
  if (range.empty() || range.begin >= lexed.tokens.size()) return {};
  const Token& last = lexed.tokens[std::min(range.end, lexed.tokens.size()) - 1];
  const size_t start = lexed.tokens[range.begin].offset;
  return source.substr(start, last.offset + last.text.size() - start);
}

const FileConstant* CudaSyntax::FindConstant(std::string_view name) const {
  for (const FileConstant& constant : constants) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

const FileVariable* CudaSyntax::FindVariable(std::string_view name) const {
  const auto found = std::ranges::find(variables, name, &FileVariable::name);
  return found == variables.end() ? nullptr : &*found;
}

const NamespaceBody* CudaSyntax::NamespaceAt(size_t token) const {
  const NamespaceBody* found = nullptr;
  for (const NamespaceBody& one : namespaces) {
    if (one.range.begin <= token && token < one.range.end) found = &one;
  }
  return found;
}

std::map<std::string, std::string, std::less<>>::const_iterator CudaSyntax::FindAlias(
    std::string_view type) const {
  const auto known = aliases.find(type);
  const size_t colon = type.find('<') == std::string_view::npos ? type.rfind("::")
                                                                : std::string_view::npos;
  if (known != aliases.end() || colon == std::string_view::npos || type.starts_with("std::"))
    return known;
  return aliases.find(type.substr(colon + 2));
}

TokenRange InitialisersBehind(const CudaSyntax& syntax, size_t close) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax.lexed.tokens.size() && syntax.token(i).Is(text);
  };
  size_t at = close + 1;
  if (is(at, "noexcept")) at = is(at + 1, "(") ? MatchingClose(syntax, at + 1) + 1 : at + 1;
  if (!is(at, ":")) return {};
  const size_t begin = ++at;
  while (at < syntax.lexed.tokens.size() && !is(at, ";")) {
    if (is(at, "{") && at > begin && (is(at - 1, ")") || is(at - 1, "}"))) return {begin, at};
    at = is(at, "(") || is(at, "{") ? MatchingClose(syntax, at) + 1 : at + 1;
  }
  return {};
}

size_t MatchingClose(const CudaSyntax& syntax, size_t open) {
  const std::vector<Token>& tokens = syntax.lexed.tokens;
  if (open >= tokens.size()) return tokens.size();
  const bool angle = tokens[open].Is("<");
  int depth = 0;
  int angles = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind != Token::Kind::kSymbol) continue;
    if (token.Is("(") || token.Is("[") || token.Is("{")) ++depth;
    if (token.Is(")") || token.Is("]") || token.Is("}")) --depth;
    if (angle && depth == 0 && token.Is("<")) ++angles;
    if (angle && depth == 0 && token.Is(">")) --angles;
    if (angle ? (angles == 0 || depth < 0) : depth == 0) return i;
  }
  return tokens.size();
}

std::vector<TokenRange> SplitArguments(const CudaSyntax& syntax, TokenRange range, bool angles) {
  std::vector<TokenRange> pieces;
  size_t start = range.begin;
  int angle_depth = 0;
  const size_t end = std::min(range.end, syntax.lexed.tokens.size());
  for (size_t i = range.begin; i < end; ++i) {
    const Token& token = syntax.token(i);
    if (token.Is("(") || token.Is("[") || token.Is("{")) {
      i = std::min(MatchingClose(syntax, i), end);
    } else if (angles && token.Is("<") && i > range.begin &&
               syntax.token(i - 1).kind == Token::Kind::kWord) {
      ++angle_depth;
    } else if (angles && token.Is(">") && angle_depth > 0) {
      --angle_depth;
    } else if (token.Is(",") && angle_depth == 0) {
      pieces.push_back({start, i});
      start = i + 1;
    }
  }
  if (start < end) pieces.push_back({start, end});
  return pieces;
}

std::vector<TemplateParameter> ParseTemplateParameters(const CudaSyntax& syntax, TokenRange range) {
  std::vector<TemplateParameter> all;
  for (const TokenRange& piece : SplitArguments(syntax, range, true)) {
    TemplateParameter parameter;
    size_t end = piece.end;
    for (size_t i = piece.begin; i < piece.end; ++i) {
      if (!syntax.token(i).Is("=")) continue;
      parameter.fallback = std::string(syntax.Text({i + 1, piece.end}));
      end = i;
      break;
    }
    if (piece.begin >= end) continue;
    if (syntax.token(end - 1).kind == Token::Kind::kWord && end - 1 > piece.begin)
      parameter.name = std::string(syntax.token(end - 1).text);
    parameter.type = std::string(
        syntax.Text({piece.begin, parameter.name.empty() ? end : end - 1}));
    all.push_back(std::move(parameter));
  }
  return all;
}

}  // namespace atunner
