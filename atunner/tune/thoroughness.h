// How much a tuning session does for its result.
#pragma once

#include <cstdint>

namespace atunner {

enum class Thoroughness : uint8_t {
  kSearch,      ///< a search; the best are verified again with new inputs and compared
  kFirstRight,  ///< the first proposal that is right, verified once; on a GPU it is not timed
  kUnchecked,   ///< the first proposal that compiles; its verdict says that nothing was checked
};

}  // namespace atunner
