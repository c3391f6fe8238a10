#include "atunner/intake/captured/source_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/intake/captured/definition.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

struct Edit {
  size_t offset = 0, length = 0;
  std::string text;
};

std::string Applied(std::string text, std::vector<Edit> edits) {
  std::ranges::stable_sort(edits, std::ranges::greater{}, &Edit::offset);
  for (const Edit& edit : edits) text.replace(edit.offset, edit.length, edit.text);
  return text;
}

/// Collects the changes of one kernel.
class Patcher {
 public:
  Patcher(const std::string& text, const CudaSyntax& syntax, const UserKernel& kernel,
          const Configuration& tuned)
      : text_(text), syntax_(syntax), kernel_(kernel), tuned_(tuned) {}

  std::vector<Edit> Run(const KernelDefinition& definition) {
    for (size_t i = 0; i < kernel_.injections.size(); ++i) {
      if (!LooselyEqual(tuned_.values[i], kernel_.initial.values[i])) Change(i, definition);
    }
    Launches(definition);
    return std::move(edits_);
  }

 private:
  void Change(size_t parameter, const KernelDefinition& definition) {
    const Injection& injection = kernel_.injections[parameter];
    const std::string value = ToString(tuned_.values[parameter]);
    if (injection.kind == Injection::Kind::kReplace) {
      edits_.push_back({injection.offset, injection.length, value});
    } else if (injection.kind == Injection::Kind::kUnroll) {
      edits_.push_back({injection.offset, 0, "_Pragma(\"unroll " + value + "\") "});
    } else if (injection.kind == Injection::Kind::kOption) {
      Remark(syntax_.token(definition.head.begin).offset,
             "compile this kernel with " + injection.option + value);
    }
  }

  /// A comment on a line of its own above the place.
  void Remark(size_t offset, const std::string& what) {
    const size_t line = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1;
    std::string indent;
    for (size_t i = line; i < text_.size() && (text_[i] == ' ' || text_[i] == '\t'); ++i)
      indent += text_[i];
    edits_.push_back({line, 0, indent + "// atunner: " + what + "\n"});
  }

  int64_t ValueOf(const Expr& expr, const Configuration& configuration) const {
    const std::vector<std::string> names = kernel_.space.Names();
    return expr.EvaluateInt(Bindings(kernel_.spec.dims).Add(names, configuration.values))
        .value_or(1);
  }

  void Launches(const KernelDefinition& definition) {
    const LaunchStep& step = kernel_.plan.steps.at(0);
    for (const KernelLaunch& launch : syntax_.launches) {
      if (!IsLaunchOf(launch, definition)) continue;
      TemplateArguments(launch, definition);
      if (OnlyBlockXDiffers(step)) {
        const int64_t before = ValueOf(step.block[0], kernel_.initial);
        const int64_t after = ValueOf(step.block[0], tuned_);
        if (before != after) Block(launch, before, after);
      } else {
        Remark(syntax_.token(launch.token).offset, LaunchText(step));
      }
    }
  }

  int64_t Threads(const LaunchStep& step, size_t axis, const Configuration& configuration) const {
    return ValueOf(step.block[axis], configuration);
  }

  /// False if the other axes of the block change, or the number of threads along the grid.
  bool OnlyBlockXDiffers(const LaunchStep& step) const {
    for (size_t axis = 1; axis < 3; ++axis) {
      if (Threads(step, axis, kernel_.initial) != Threads(step, axis, tuned_)) return false;
    }
    return kernel_.space.Find("grid_quarters") < 0 ||
           GetInt(kernel_.space, tuned_, "grid_quarters") == 4;
  }

  std::string LaunchText(const LaunchStep& step) const {
    std::string text = "launch it with ";
    for (const auto& [extents, what] :
         {std::pair(&step.grid, "a grid of "), std::pair(&step.block, " and blocks of ")}) {
      text += what;
      for (size_t axis = 0; axis < 3; ++axis)
        text += fmt::format("{}{}", axis > 0 ? " x " : "", ValueOf((*extents)[axis], tuned_));
    }
    return text;
  }

  /// Numbers among the template arguments of a launch.
  void TemplateArguments(const KernelLaunch& launch, const KernelDefinition& definition) {
    for (size_t i = 0; i < definition.templates.size(); ++i) {
      const int at = kernel_.space.Find(definition.templates[i].name);
      if (at < 0) continue;
      const auto index = static_cast<size_t>(at);
      if (kernel_.injections[index].kind != Injection::Kind::kLaunch ||
          LooselyEqual(tuned_.values[index], kernel_.initial.values[index]))
        continue;
      const std::string value = ToString(tuned_.values[index]);
      const bool literal = i < launch.template_args.size() &&
                           LiteralOf(std::string(syntax_.Text(launch.template_args[i])));
      if (literal)
        Replace(launch.template_args[i], value);
      else
        Remark(syntax_.token(launch.token).offset,
               "launch it with " + definition.templates[i].name + " = " + value);
    }
  }

  void Replace(const TokenRange& range, std::string by) {
    edits_.push_back(
        {syntax_.token(range.begin).offset, syntax_.Text(range).size(), std::move(by)});
  }

  /// A literal block, and the same number in the grid and the shared memory, follow the new size. A
  /// constant was changed where it is defined.
  void Block(const KernelLaunch& launch, int64_t before, int64_t after) {
    const size_t place = syntax_.token(launch.token).offset;
    if (launch.configuration.size() < 2)
      return Remark(place, fmt::format("launch it with blocks of {} threads", after));
    int blocks = 0;
    const std::string block = ReplaceNumber(std::string(syntax_.Text(launch.configuration[1])),
                                            before, std::to_string(after), blocks);
    if (blocks == 0) {
      if (!FollowsConstant(launch.configuration[1]))
        Remark(place, fmt::format("launch it with blocks of {} threads", after));
      return;
    }
    Replace(launch.configuration[1], block);
    for (const size_t i : {size_t{0}, size_t{2}}) {
      if (i >= launch.configuration.size()) continue;
      const std::string old(syntax_.Text(launch.configuration[i]));
      int count = 0;
      std::string text = ReplaceNumber(old, before, std::to_string(after), count);
      if (i == 0) text = ReplaceNumber(text, before - 1, std::to_string(after - 1), count);
      if (count > 0) Replace(launch.configuration[i], text);
    }
  }

  /// True if the extent names a constant that is a parameter of the source.
  bool FollowsConstant(const TokenRange& extent) const {
    const std::vector<std::string> names = NamesOf(std::string(syntax_.Text(extent)));
    return std::ranges::any_of(names, [&](const std::string& name) {
      const int at = kernel_.space.Find(name);
      return at >= 0 &&
             kernel_.injections[static_cast<size_t>(at)].kind == Injection::Kind::kReplace;
    });
  }

  const std::string& text_;
  const CudaSyntax& syntax_;
  const UserKernel& kernel_;
  const Configuration& tuned_;
  std::vector<Edit> edits_;
};

using Lines = std::vector<std::string_view>;

Lines LinesOf(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.push_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

/// One line of a difference: kept, removed or added.
struct Line {
  char kind = ' ';
  std::string_view text;
};

/// The changes by a longest common subsequence between common ends.
std::vector<Line> Changes(const Lines& a, const Lines& b) {
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const size_t n = a.size() - head - tail, m = b.size() - head - tail;
  std::vector<std::vector<uint32_t>> longest(n + 1, std::vector<uint32_t>(m + 1, 0));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;)
      longest[i][j] = a[head + i] == b[head + j] ? longest[i + 1][j + 1] + 1
                                                 : std::max(longest[i + 1][j], longest[i][j + 1]);
  }
  std::vector<Line> lines;
  for (size_t i = 0; i < head; ++i) lines.push_back({' ', a[i]});
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && a[head + i] == b[head + j])
      lines.push_back({' ', a[head + i]}), ++i, ++j;
    else if (i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1]))
      lines.push_back({'-', a[head + i++]});
    else
      lines.push_back({'+', b[head + j++]});
  }
  for (size_t i = a.size() - tail; i < a.size(); ++i) lines.push_back({' ', a[i]});
  return lines;
}

void AppendHunk(const std::vector<Line>& lines, size_t begin, size_t end, std::string& diff) {
  size_t first_a = 1, first_b = 1, count_a = 0, count_b = 0;
  for (size_t i = 0; i < begin; ++i) {
    first_a += lines[i].kind != '+' ? 1 : 0;
    first_b += lines[i].kind != '-' ? 1 : 0;
  }
  std::string body;
  for (size_t i = begin; i < end; ++i) {
    count_a += lines[i].kind != '+' ? 1 : 0;
    count_b += lines[i].kind != '-' ? 1 : 0;
    body += lines[i].kind;
    body += lines[i].text;
    if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  diff += fmt::format("@@ -{},{} +{},{} @@\n{}", first_a, count_a, first_b, count_b, body);
}

}  // namespace

Result<std::string> PatchedSource(const std::string& text, const std::string& readable,
                                  const UserKernel& kernel, const Configuration& configuration) {
  const CudaSyntax syntax = ParseCuda(text);
  if (CompilableText(syntax) != kernel.source.text)
    return Fail(ErrorCode::kUnsupported,
                "headers or macros of the source were expanded, so that it cannot be changed",
                kernel.source.name);
  const KernelDefinition* definition = FindDefinition(syntax, capture::ParseSignature(readable));
  if (definition == nullptr)
    return Invalid("kernel '" + readable + "' is not defined here", kernel.source.name);
  return Applied(text, Patcher(text, syntax, kernel, configuration).Run(*definition));
}

std::string UnifiedDiff(const std::string& before, const std::string& after,
                        const std::string& file) {
  if (before == after) return "";
  constexpr size_t kContext = 3;
  const Lines a = LinesOf(before), b = LinesOf(after);
  const std::vector<Line> lines = Changes(a, b);
  std::string diff = "--- a/" + file + "\n+++ b/" + file + "\n";
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].kind == ' ') {
      ++i;
      continue;
    }
    const size_t begin = i - std::min(i, kContext);
    size_t last = i;  // of the hunk's changes; others within twice the context join
    for (size_t k = i; k < lines.size() && k <= last + 2 * kContext; ++k)
      last = lines[k].kind != ' ' ? k : last;
    const size_t end = std::min(lines.size(), last + 1 + kContext);
    AppendHunk(lines, begin, end, diff);
    i = end;
  }
  return diff;
}

}  // namespace atunner
