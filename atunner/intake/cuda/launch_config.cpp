#include "atunner/intake/cuda/launch_config.h"

#include <algorithm>

namespace atunner {
namespace {

/// Parses `ns::name<int, 4>` into the kernel's name and template arguments.
bool NameKernel(const CudaSyntax& syntax, TokenRange range, KernelLaunch& launch) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    if (token.Is("<")) {
      launch.template_args = SplitArguments(
          syntax, {i + 1, std::min(MatchingClose(syntax, i), range.end)}, true);
      break;
    }
    if (token.kind != Token::Kind::kWord && !token.Is("::")) return false;
    launch.kernel += token.text;
  }
  return !launch.kernel.empty();
}

/// The value assigned by the `=` at token `equals`: up to the end of the statement or list element.
TokenRange ValueBehind(const CudaSyntax& syntax, size_t equals) {
  size_t end = equals + 1;
  while (end < syntax.lexed.tokens.size()) {
    const Token& token = syntax.token(end);
    if (token.Is(";") || token.Is(",") || token.Is("}")) break;
    end = token.Is("(") || token.Is("{") ? MatchingClose(syntax, end) + 1 : end + 1;
  }
  return {equals + 1, std::min(end, syntax.lexed.tokens.size())};
}

/// The last value assigned to a field of that name, in any structure, in [begin, call): by x.field
/// = value or by .field = value in a list. Empty if the members of the field are assigned one by
/// one.
TokenRange FieldBefore(const CudaSyntax& syntax, size_t begin, size_t call,
                       std::string_view field) {
  for (size_t i = call; i-- > begin + 1;) {
    if (!syntax.token(i).Is(field) || !syntax.token(i - 1).Is(".")) continue;
    if (syntax.token(i + 1).Is("=")) return ValueBehind(syntax, i + 1);
    if (syntax.token(i + 1).Is(".")) return {};
  }
  return {};
}

std::array<TokenRange, 3> ClusterBefore(const CudaSyntax& syntax, size_t call) {
  std::array<TokenRange, 3> cluster;
  for (size_t i = call; i-- > 1;) {
    if (!syntax.token(i).Is("clusterDim") || !syntax.token(i + 1).Is(".") ||
        !syntax.token(i + 3).Is("="))
      continue;
    const std::string_view axis = syntax.token(i + 2).text;
    TokenRange& extent = cluster[axis == "x" ? 0 : axis == "y" ? 1 : 2];
    if (extent.empty()) extent = ValueBehind(syntax, i + 3);
  }
  return cluster;
}

}  // namespace

std::optional<KernelLaunch> ConfiguredLaunch(const CudaSyntax& syntax, size_t call) {
  std::vector<TokenRange> pieces = SplitArguments(
      syntax, {call + 2, MatchingClose(syntax, call + 1)}, true);
  KernelLaunch launch;
  if (pieces.size() < 2 || !NameKernel(syntax, pieces[1], launch)) return std::nullopt;
  launch.token = call;
  launch.line = syntax.token(call).line;
  size_t begin = call;  // start of the function
  for (const HostFunction& function : syntax.functions) {
    if (function.body.begin <= call && call < function.body.end) begin = function.body.begin;
  }
  launch.configuration = {FieldBefore(syntax, begin, call, "gridDim"),
                          FieldBefore(syntax, begin, call, "blockDim")};
  if (std::ranges::any_of(launch.configuration, &TokenRange::empty)) launch.configuration.clear();
  const TokenRange shared = FieldBefore(syntax, begin, call, "dynamicSmemBytes");
  if (!shared.empty() && !launch.configuration.empty()) launch.configuration.push_back(shared);
  launch.cluster = ClusterBefore(syntax, call);
  launch.arguments.assign(pieces.begin() + 2, pieces.end());
  return launch;
}

}  // namespace atunner
