#include "atunner/intake/cuda/kernel_body.h"

#include <algorithm>

namespace atunner {
namespace {

struct Use {
  bool reads = false;
  bool writes = false;
};

/// True for a unary * before the token.
bool IsDereferenced(const CudaSyntax& syntax, size_t at) {
  if (at < 2 || !syntax.token(at - 1).Is("*")) return false;
  const Token& before = syntax.token(at - 2);
  return before.kind != Token::Kind::kWord && before.kind != Token::Kind::kNumber &&
         !before.Is(")") && !before.Is("]");
}

/// True for ++, -- or a unary & before the token.
bool IsModifiedBefore(const CudaSyntax& syntax, size_t at) {
  if (at == 0) return false;
  const Token& before = syntax.token(at - 1);
  if (before.Is("++") || before.Is("--")) return true;
  return before.Is("&") && (at < 2 || (syntax.token(at - 2).kind != Token::Kind::kWord &&
                                       !syntax.token(at - 2).Is(")")));
}

/// The use of a pointer whose name is token `at`.
Use UseAt(const CudaSyntax& syntax, size_t at, size_t end) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < end && syntax.token(i).Is(text);
  };
  const Use both{true, true};
  size_t next = at + 1;
  const bool indexed = is(next, "[");
  while (is(next, "[")) next = MatchingClose(syntax, next) + 1;
  if (!indexed && !IsDereferenced(syntax, at)) return both;  // the pointer escapes
  while (is(next, ".") && next + 1 < end) next += 2;         // p[i].x
  size_t first = at;
  for (size_t i = next; first > 0 && syntax.token(first - 1).Is("(") && is(i, ")"); ++i) --first;
  if (IsModifiedBefore(syntax, first)) return both;  // &p[i], &(p[i])
  if (is(next, "=")) return {false, true};
  for (std::string_view op : {"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"}) {
    if (is(next, op)) return both;
  }
  return {true, false};
}

/// Loop variables that advance by blockDim.axis.
std::vector<std::string_view> StridingVariables(const CudaSyntax& syntax,
                                                const KernelDefinition& kernel,
                                                std::string_view axis) {
  std::vector<std::string_view> names;
  for (size_t i = kernel.body.begin + 1; i + 4 < kernel.body.end; ++i) {
    const size_t after = syntax.token(i).Is("+=") ? i + 1 : i + 2;
    const bool adds = syntax.token(i).Is("+=") ||
                      (syntax.token(i).Is("+") && syntax.token(i + 1).Is("="));
    if (adds && syntax.token(after).Is("blockDim") && syntax.token(after + 2).Is(axis) &&
        !syntax.token(after + 3).Is("*"))
      names.push_back(syntax.token(i - 1).text);
  }
  return names;
}

/// True if the array is indexed by a loop variable that advances by blockDim.x:
/// for (i = threadIdx.x; …; i += blockDim.x) s[i].
bool StridesOver(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view array) {
  const std::vector<std::string_view> striding = StridingVariables(syntax, kernel, "x");
  for (size_t i = kernel.body.begin; i + 3 < kernel.body.end; ++i) {
    if (syntax.token(i).Is(array) && syntax.token(i + 1).Is("[") && syntax.token(i + 3).Is("]") &&
        std::ranges::find(striding, syntax.token(i + 2).text) != striding.end())
      return true;
  }
  return false;
}

/// True if the body uses a macro whose definition contains `text`, e.g. CUDA_KERNEL_LOOP(i, n) with
/// blockDim.x * gridDim.x.
bool MacroHas(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view text) {
  constexpr std::string_view kOfPyTorch =
      "(i, n) blockIdx.x * blockDim.x + threadIdx.x; blockDim.x * gridDim.x";
  for (size_t i = kernel.body.begin; i + 1 < kernel.body.end; ++i) {
    if (syntax.token(i).kind != Token::Kind::kWord || !syntax.token(i + 1).Is("(")) continue;
    if (syntax.token(i).Is("CUDA_KERNEL_LOOP") && kOfPyTorch.find(text) != std::string_view::npos)
      return true;
    const std::string head = " " + std::string(syntax.token(i).text) + "(";
    for (const Token& directive : syntax.lexed.tokens) {
      if (directive.kind == Token::Kind::kDirective &&
          directive.text.find("define" + head) != std::string_view::npos &&
          directive.text.find(text) != std::string_view::npos)
        return true;
    }
  }
  return false;
}

}  // namespace

Role RoleOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
            const KernelParameter& parameter) {
  if (parameter.is_const) return Role::kInput;
  Use all;
  for (size_t i = kernel.body.begin; i < kernel.body.end; ++i) {
    if (!syntax.token(i).Is(parameter.name) || syntax.token(i).kind != Token::Kind::kWord) continue;
    // Not the parameter, but a member of the same name.
    if (i > 0 && (syntax.token(i - 1).Is(".") || syntax.token(i - 1).Is("->"))) continue;
    const Use use = UseAt(syntax, i, kernel.body.end);
    all.reads |= use.reads;
    all.writes |= use.writes;
  }
  if (!all.writes) return Role::kInput;
  return all.reads ? Role::kInOut : Role::kOutput;
}

bool Reads(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name,
           std::string_view axis) {
  for (size_t i = kernel.body.begin; i + 2 < kernel.body.end; ++i) {
    if (syntax.token(i).Is(name) && syntax.token(i + 1).Is(".") && syntax.token(i + 2).Is(axis))
      return true;
    // The number of warps of a block in cooperative groups also depends on blockDim.x.
    if (name == "blockDim" && axis == "x" && syntax.token(i).Is("meta_group_size")) return true;
  }
  return MacroHas(syntax, kernel, std::string(name) + "." + std::string(axis));
}

bool Uses(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name) {
  for (const TokenRange range : {kernel.head, kernel.body}) {
    for (size_t i = range.begin; i < range.end; ++i) {
      const Token& token = syntax.token(i);
      if (token.Is(name)) return true;
      // Directives use names too: #pragma unroll UNROLL, #if USE_LDG.
      if (token.kind == Token::Kind::kDirective && token.text.find(name) != std::string_view::npos)
        return true;
    }
  }
  return false;
}

std::optional<std::string> FixedSharedArray(const CudaSyntax& syntax,
                                            const KernelDefinition& kernel,
                                            const std::vector<std::string>& free_names) {
  for (size_t i = kernel.body.begin; i < kernel.body.end; ++i) {
    if (!syntax.token(i).Is("__shared__")) continue;
    if (i > 0 && syntax.token(i - 1).Is("extern")) continue;
    for (size_t at = i; at < kernel.body.end && !syntax.token(at).Is(";"); ++at) {
      if (!syntax.token(at).Is("[")) continue;
      const TokenRange extent{at + 1, MatchingClose(syntax, at)};
      bool follows = false;
      if (extent.end + 1 >= kernel.body.end) break;
      for (size_t t = extent.begin; t < extent.end; ++t)
        follows |= std::ranges::find(free_names, syntax.token(t).text) != free_names.end();
      const bool alone = !syntax.token(at - 1).Is("]") && !syntax.token(extent.end + 1).Is("[");
      const bool per_warp = alone && syntax.Text(extent) == "32";
      const bool strided = StridesOver(syntax, kernel, syntax.token(at - 1).text);
      if (!follows && !extent.empty() && !per_warp && !strided)
        return std::string(syntax.Text(extent));
      at = extent.end;
    }
  }
  return std::nullopt;
}

bool StridesByBlock(const CudaSyntax& syntax, const KernelDefinition& kernel,
                    std::string_view axis) {
  return !StridingVariables(syntax, kernel, axis).empty();
}

bool StridesByGrid(const CudaSyntax& syntax, const KernelDefinition& kernel) {
  for (size_t i = kernel.body.begin; i + 6 < kernel.body.end; ++i) {
    const auto is = [&](size_t at, std::string_view text) { return syntax.token(at).Is(text); };
    const bool one = is(i, "blockDim") && is(i + 2, "x") && is(i + 3, "*") && is(i + 4, "gridDim");
    const bool other = is(i, "gridDim") && is(i + 2, "x") && is(i + 3, "*") &&
                       is(i + 4, "blockDim");
    if (one || other) return true;
  }
  return MacroHas(syntax, kernel, "blockDim.x * gridDim.x") ||
         MacroHas(syntax, kernel, "gridDim.x * blockDim.x");
}

std::string LaunchBound(const CudaSyntax& syntax, const KernelDefinition& kernel) {
  for (size_t i = kernel.head.begin; i + 1 < kernel.head.end; ++i) {
    if (!syntax.token(i).Is("__launch_bounds__")) continue;
    const auto pieces = SplitArguments(syntax, {i + 2, MatchingClose(syntax, i + 1)}, false);
    return pieces.empty() ? "" : std::string(syntax.Text(pieces.front()));
  }
  return "";
}

const KernelLaunch* FindLaunch(const CudaSyntax& syntax, const KernelDefinition& kernel) {
  for (const KernelLaunch& launch : syntax.launches) {
    if (IsLaunchOf(launch, kernel)) return &launch;
  }
  return nullptr;
}

}  // namespace atunner
