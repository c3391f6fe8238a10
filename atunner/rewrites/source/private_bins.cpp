#include "atunner/rewrites/source/private_bins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

constexpr int64_t kMostBins = 8192;  // of 4 bytes: 32 KiB of shared memory
constexpr std::array<uint32_t, 3> kElementsPerThread = {4, 16, 64};

/// The array that all atomic additions of the body update, and nothing else uses.
struct Bins {
  std::string name, type;
  int64_t count = 0;
};

/// The array of `&bins[e]`, `&(bins[e])` or `bins + e`; "" for another address.
std::string ArrayOf(const Subject& subject, TokenRange address) {
  const CudaSyntax& syntax = subject.syntax();
  const bool reference = syntax.token(address.begin).Is("&");
  size_t at = address.begin + (reference ? 1 : 0);
  if (reference && syntax.token(at).Is("(")) ++at;
  const bool fits = syntax.token(at + 1).Is(reference ? "[" : "+");
  return fits ? std::string(syntax.token(at).text) : "";
}

Result<Bins> FindBins(const Subject& subject) {
  const CudaSyntax& syntax = subject.syntax();
  const TokenRange body = subject.kernel().body;
  Bins bins;
  size_t updates = 0;
  for (size_t i = body.begin; i + 1 < body.end; ++i) {
    if (!syntax.token(i).Is("atomicAdd") || !syntax.token(i + 1).Is("(")) continue;
    const auto arguments = SplitArguments(syntax, {i + 2, MatchingClose(syntax, i + 1)}, false);
    const bool statement = syntax.token(MatchingClose(syntax, i + 1) + 1).Is(";") &&
                           !syntax.token(i - 1).Is("=");
    const std::string array = arguments.size() == 2 && statement ? ArrayOf(subject, arguments[0])
                                                                 : "";
    if (array.empty() || (!bins.name.empty() && array != bins.name))
      return DoesNotApply("an atomic addition updates no element of one array");
    bins.name = array;
    ++updates;
  }
  const KernelParameter* parameter = subject.FindParameter(bins.name);
  if (updates == 0 || parameter == nullptr || !parameter->pointer)
    return DoesNotApply("no atomic addition updates an element of an array");
  if (CountMentions(subject, body, bins.name) != updates)
    return DoesNotApply("'" + bins.name + "' is used in other ways, too");
  bins.type = parameter->type;
  bins.count = subject.ElementsOf(bins.name).value_or(0);
  if (bins.count <= 1 || bins.count > kMostBins)
    return DoesNotApply(
        fmt::format("'{}' has {} elements, and 2 to {} fit", bins.name, bins.count, kMostBins));
  return bins;
}

std::string AroundBins(const Subject& subject, const Bins& bins, const std::string& part,
                       const std::string& inner) {
  const std::string indent = IndentAt(subject.syntax(), subject.body()[0].range.begin);
  const std::string thread = subject.launch().block.y * subject.launch().block.z == 1
                                 ? "threadIdx.x"
                                 : "threadIdx.x + blockDim.x * threadIdx.y";
  const std::string threads = thread == "threadIdx.x" ? "blockDim.x" : "blockDim.x * blockDim.y";
  const std::string bin = subject.FreshName("bin");
  return fmt::format(
      "__shared__ {1} {2}[{3}];\n"
      "{0}for (int {4} = {5}; {4} < {3}; {4} += {6}) {2}[{4}] = 0;\n"
      "{0}__syncthreads();\n"
      "{7}"
      "{0}__syncthreads();\n"
      "{0}for (int {4} = {5}; {4} < {3}; {4} += {6}) {{\n"
      "{0}  if ({2}[{4}] != 0) atomicAdd(&{8}[{4}], {2}[{4}]);\n"
      "{0}}}",
      indent, bins.type, part, bins.count, bin, thread, threads, inner, bins.name);
}

Proposal WithBody(const Subject& subject, const std::string& body, uint32_t elements) {
  TextEdits edits(subject.syntax());
  edits.Replace(subject.kernel().body, body);
  return {edits.Apply(),
          {{1, 1, 1}, {elements, 1, 1}},
          elements == 1 ? "" : fmt::format("{} elements a thread", elements)};
}

}  // namespace

Result<std::vector<Proposal>> PrivateBins(const Subject& subject) {
  if (subject.BodyMentions("__shared__"))
    return DoesNotApply("the kernel has shared memory already");
  if (subject.launch().block.z != 1) return DoesNotApply("the block has three axes");
  ATUNNER_TRY(const Bins bins, FindBins(subject));
  const std::string part = subject.FreshName(bins.name + "_of_block");
  std::vector<Proposal> proposals;
  if (const auto row = AsRowBody(subject)) {
    const std::string indent = IndentAt(subject.syntax(), subject.body()[0].range.begin);
    const std::string loop = GridStride(*row, Renamed(subject, row->range, bins.name, part),
                                        indent);
    for (const uint32_t elements : kElementsPerThread) {
      if (subject.launch().grid.x < elements) break;
      proposals.push_back(WithBody(subject, AroundBins(subject, bins, part, loop), elements));
    }
  }
  if (!proposals.empty()) return proposals;
  if (subject.BodyMentions("return") || subject.BodyMentions("__syncthreads"))
    return DoesNotApply("threads may return before the counters are added");
  const TokenRange body{subject.body().front().range.begin, subject.body().back().range.end};
  const std::string inner = IndentAt(subject.syntax(), body.begin) +
                            Renamed(subject, body, bins.name, part) + "\n";
  return std::vector{WithBody(subject, AroundBins(subject, bins, part, inner), 1)};
}

}  // namespace atunner::rewrites
