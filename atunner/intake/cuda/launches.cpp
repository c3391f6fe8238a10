#include "atunner/intake/cuda/launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "atunner/intake/cuda/launch_config.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

class LaunchReader {
 public:
  explicit LaunchReader(CudaSyntax& syntax) : syntax_(syntax) {}

  void Run() {
    for (size_t i = 0; i + 3 < Count(); ++i) {
      if (IsTriple(syntax_, i, "<")) OneLaunch(i);
      const bool cooperative = Is(i, "cudaLaunchCooperativeKernel");
      if ((cooperative || Is(i, "cudaLaunchKernel")) && Is(i + 1, "("))
        CalledLaunch(i, cooperative);
      if (!Is(i, "cudaLaunchKernelEx") || !Is(i + 1, "(")) continue;
      if (auto launch = ConfiguredLaunch(syntax_, i)) AddLaunch(*std::move(launch), i);
    }
  }

 private:
  size_t Count() const { return syntax_.lexed.tokens.size(); }
  const Token& At(size_t i) const { return syntax_.token(i); }
  bool Is(size_t i, std::string_view text) const { return i < Count() && At(i).Is(text); }
  bool IsWord(size_t i) const { return i < Count() && At(i).kind == Token::Kind::kWord; }

  /// A launch by cudaLaunchKernel((void*)kernel, grid, block, args, shared bytes, stream).
  void CalledLaunch(size_t call, bool cooperative) {
    const std::vector<TokenRange> pieces = SplitArguments(
        syntax_, {call + 2, MatchingClose(syntax_, call + 1)}, true);
    if (pieces.size() < 4 || pieces[0].empty() || pieces[3].empty()) return;
    KernelLaunch launch;
    size_t name = pieces[0].end - 1;
    while (name > pieces[0].begin && Is(name, ")")) --name;
    if (!NameLaunch(name, launch)) return;
    launch.token = call;
    launch.line = At(call).line;
    launch.cooperative = cooperative;
    launch.configuration = {pieces[1], pieces[2]};
    launch.configuration.insert(launch.configuration.end(), pieces.begin() + 4, pieces.end());
    ListedArguments(call, At(pieces[3].end - 1).text, launch);
    AddLaunch(std::move(launch), call);
  }

  /// Finds the arguments of such a launch in the list that it names: `void* args[] = {&x, &n};` or
  /// `void* args[2]; args[0] = &x; args[1] = &n;`.
  void ListedArguments(size_t call, std::string_view list, KernelLaunch& launch) const {
    constexpr int64_t kMostArguments = 64;
    std::map<int64_t, TokenRange> assigned;
    for (size_t i = call; i-- > 0 && launch.arguments.empty();) {
      if (!Is(i, list) || !Is(i + 1, "[")) continue;
      const size_t equals = MatchingClose(syntax_, i + 1) + 1;
      if (Is(equals, "=") && Is(equals + 1, "{")) {
        launch.arguments = Pointees({equals + 2, MatchingClose(syntax_, equals + 1)});
      } else if (const auto place = LiteralOf(std::string(At(i + 2).text));
                 Is(equals, "=") && place) {
        size_t end = equals + 1;
        while (end < call && !Is(end, ";")) ++end;
        if (*place < kMostArguments && end > equals + 1)
          assigned.try_emplace(*place, TokenRange{equals + 1, end});
      } else {
        break;  // the list's declaration
      }
    }
    if (!launch.arguments.empty()) return;
    for (const auto& [place, value] : assigned) {
      const std::vector<TokenRange> one = Pointees(value);
      if (place != static_cast<int64_t>(launch.arguments.size()) || one.size() != 1) return;
      launch.arguments.push_back(one[0]);
    }
  }

  /// The variables that a list like {&x, (void*)&n} points to.
  std::vector<TokenRange> Pointees(TokenRange list) const {
    std::vector<TokenRange> pieces = SplitArguments(syntax_, list, true);
    for (TokenRange& piece : pieces) {
      for (size_t i = piece.begin; i < piece.end; ++i) {
        if (Is(i, "&")) piece.begin = i + 1;
      }
    }
    return pieces;
  }

  void OneLaunch(size_t open) {
    size_t close = open + 3;
    while (close < Count() && !IsTriple(syntax_, close, ">")) {
      if (Is(close, ";") || Is(close, "{")) {
        // dim3{…} may be part of a configuration, the end of a statement not.
        if (Is(close, ";")) return;
        close = MatchingClose(syntax_, close);
      }
      close = Is(close, "(") || Is(close, "[") ? MatchingClose(syntax_, close) + 1 : close + 1;
    }
    if (close + 3 >= Count() || !Is(close + 3, "(") || open == 0) return;
    KernelLaunch launch;
    if (!NameLaunch(open - 1, launch)) return;
    launch.configuration = SplitArguments(syntax_, {open + 3, close}, false);
    launch.arguments = SplitArguments(syntax_, {close + 4, MatchingClose(syntax_, close + 3)},
                                      true);
    AddLaunch(std::move(launch), open);
  }

  /// Replaces a launched variable by its kernel: `auto kernel = reduce<256>; kernel<<<…>>>(…)`.
  void FollowVariable(KernelLaunch& launch, size_t at) const {
    const auto named = [&](const KernelLaunch& one) {
      return std::ranges::any_of(syntax_.kernels,
                                 [&](const auto& kernel) { return IsLaunchOf(one, kernel); });
    };
    if (named(launch)) return;
    for (size_t i = at; i-- > 0;) {
      if (!Is(i, launch.kernel) || !Is(i + 1, "=")) continue;
      size_t end = Is(i + 2, "&") ? i + 3 : i + 2;
      while (end < at && !Is(end, ";")) ++end;
      KernelLaunch value;
      if (!NameLaunch(end - 1, value) || !named(value)) continue;
      launch.kernel = value.kernel;
      launch.template_args = value.template_args;
      return;
    }
  }

  void AddLaunch(KernelLaunch launch, size_t at) {
    FollowVariable(launch, at);
    for (size_t f = 0; f < syntax_.functions.size(); ++f) {
      if (syntax_.functions[f].body.begin <= at && at < syntax_.functions[f].body.end)
        launch.function = f;
    }
    syntax_.launches.push_back(std::move(launch));
  }

  /// Sets name and template arguments of the kernel whose name, or whose template arguments, end at
  /// the token `name`; false if there is no name.
  bool NameLaunch(size_t name, KernelLaunch& launch) const {
    // (k<128>)<<<...>>>
    if (name > 1 && Is(name, ")") && (IsWord(name - 1) || Is(name - 1, ">"))) --name;
    if (Is(name, ">")) {  // k<128, float><<<...>>>
      const size_t start = OpeningAngle(name);
      if (start == 0) return false;
      launch.template_args = SplitArguments(syntax_, {start + 1, name}, true);
      name = start - 1;
    }
    if (!IsWord(name)) return false;
    launch.token = name;
    launch.line = At(name).line;
    launch.kernel = std::string(At(name).text);
    while (name >= 2 && Is(name - 1, "::") && IsWord(name - 2)) {
      name -= 2;
      launch.kernel = std::string(At(name).text) + "::" + launch.kernel;
    }
    return true;
  }

  /// The "<" that the ">" at a token closes; 0 if there is none.
  size_t OpeningAngle(size_t close) const {
    size_t depth = 0;
    for (size_t at = close; at > 0; --at) {
      if (Is(at, ">")) ++depth;
      if (Is(at, "<") && --depth == 0) return at;
    }
    return 0;
  }

  CudaSyntax& syntax_;
};

}  // namespace

bool IsTriple(const CudaSyntax& syntax, size_t i, std::string_view symbol) {
  const auto is = [&](size_t at) {
    return at < syntax.lexed.tokens.size() && syntax.token(at).Is(symbol);
  };
  const auto offset = [&](size_t at) { return syntax.token(at).offset; };
  return is(i) && is(i + 1) && is(i + 2) && offset(i + 1) == offset(i) + 1 &&
         offset(i + 2) == offset(i) + 2;
}

void ReadLaunches(CudaSyntax& syntax) { LaunchReader(syntax).Run(); }

}  // namespace atunner
