#include "faces/serve/assets.h"

#include <algorithm>

namespace atunner::serve {

const Asset* FindAsset(std::string_view path) {
  const auto all = Assets();
  const auto found = std::ranges::find(all, path, &Asset::path);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace atunner::serve
