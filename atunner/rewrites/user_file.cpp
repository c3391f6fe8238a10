#include "atunner/rewrites/user_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "atunner/rewrites/tree/statement.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

const KernelDefinition* Find(const CudaSyntax& syntax, const std::string& kernel) {
  const auto found = std::ranges::find_if(syntax.kernels, [&](const KernelDefinition& one) {
    return one.qualified == kernel || one.name == kernel;
  });
  return found == syntax.kernels.end() ? nullptr : &*found;
}

TokenRange Whole(const KernelDefinition& kernel) {
  return {kernel.head.begin, kernel.body.end + 1};  // with the closing brace
}

/// "(n + 255) / 256" times 32 → "32 * ((n + 255) / 256)".
std::string ChangedExtent(const std::string& extent, uint32_t times, uint32_t over) {
  if (times == 1 && over == 1) return extent;
  if (over == 1) return fmt::format("{} * ({})", times, extent);
  return fmt::format("({} + {}) / {}",
                     times == 1 ? extent : fmt::format("{} * ({})", times, extent), over - 1, over);
}

/// The text of the configuration's first argument after the change.
std::string ChangedGrid(const CudaSyntax& syntax, TokenRange grid, const GridChange& change) {
  const std::string text(syntax.Text(grid));
  const bool one_axis = change.times[1] == 1 && change.times[2] == 1 && change.over[1] == 1 &&
                        change.over[2] == 1;
  const bool is_name = grid.end == grid.begin + 1 &&
                       syntax.token(grid.begin).kind == Token::Kind::kWord;
  bool is_dim3 = text.starts_with("dim3") || !one_axis;
  for (size_t i = 0; is_name && i + 1 < syntax.lexed.tokens.size(); ++i)
    is_dim3 = is_dim3 ||
              (syntax.token(i).Is("dim3") &&
               Mentions(syntax, UpTo(syntax, {i, syntax.lexed.tokens.size()}, ";"), text));
  if (!is_dim3) return ChangedExtent(text, change.times[0], change.over[0]);
  return fmt::format("dim3({}, {}, {})",
                     ChangedExtent(text + ".x", change.times[0], change.over[0]),
                     ChangedExtent(text + ".y", change.times[1], change.over[1]),
                     ChangedExtent(text + ".z", change.times[2], change.over[2]));
}

}  // namespace

GridChange Joined(const GridChange& first, const GridChange& second) {
  GridChange joined;
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint32_t times = first.times[axis] * second.times[axis],
                   over = first.over[axis] * second.over[axis];
    const uint32_t common = std::gcd(times, over);
    joined.times[axis] = times / common;
    joined.over[axis] = over / common;
  }
  return joined;
}

Result<std::string> RewrittenFile(const std::string& file, const std::string& before,
                                  const std::string& rewritten, const std::string& kernel,
                                  const GridChange& grid) {
  const CudaSyntax own = ParseCuda(file), from = ParseCuda(before), to = ParseCuda(rewritten);
  const KernelDefinition *in_file = Find(own, kernel), *in_before = Find(from, kernel),
                         *in_rewritten = Find(to, kernel);
  if (in_file == nullptr || in_before == nullptr || in_rewritten == nullptr ||
      own.Text(Whole(*in_file)) != from.Text(Whole(*in_before)))
    return Fail(ErrorCode::kUnsupported, "the file defines '" + kernel +
                                             "' in another form than the one that was rewritten");
  TextEdits edits(own);
  edits.Replace(Whole(*in_file), std::string(to.Text(Whole(*in_rewritten))));
  for (const KernelLaunch& launch : own.launches) {
    if (grid == GridChange{} || !IsLaunchOf(launch, *in_file) || launch.configuration.empty())
      continue;
    edits.Replace(launch.configuration[0], ChangedGrid(own, launch.configuration[0], grid));
  }
  return edits.Apply();
}

}  // namespace atunner::rewrites
