// A rewrite: a change of a kernel's source that removes a bottleneck. It may state a precondition
// that it checks on the tree; what it cannot prove there, the judge decides: a proposal that is
// wrong is data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/evidence/classify.h"
#include "atunner/rewrites/subject.h"

namespace atunner::rewrites {

/// The new grid is ceil(grid * times / over), by axis. Blocks keep their size.
struct GridChange {
  std::array<uint32_t, 3> times{1, 1, 1};
  std::array<uint32_t, 3> over{1, 1, 1};
  bool operator==(const GridChange&) const = default;
};

/// The source with one change.
struct Proposal {
  std::string text;
  GridChange grid;
  std::string detail;  ///< "unroll 4"; "" where the rewrite has one form
};

struct Rewrite {
  std::string_view name;    ///< "share-loop-in-warp"
  std::string_view reason;  ///< why it can help; one sentence
  std::span<const evidence::Bottleneck> removes;
  /// The proposals, at least one. kUnsupported says why it does not apply.
  Result<std::vector<Proposal>> (*apply)(const Subject& subject);
};

/// The kernel with a proposal's text and grid.
RenderedKernel With(const RenderedKernel& kernel, const Proposal& proposal);

/// The error of a rewrite that does not apply.
inline std::unexpected<Error> DoesNotApply(std::string why) {
  return Fail(ErrorCode::kUnsupported, std::move(why));
}

}  // namespace atunner::rewrites
