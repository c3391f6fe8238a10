// The dashboard's files: compressed when atunner is built, and part of the program.
#pragma once

#include <span>
#include <string_view>

namespace atunner::serve {

struct Asset {
  std::string_view path;  ///< "/index.html"
  std::string_view type;  ///< "text/html; charset=utf-8"
  std::string_view etag;  ///< with its quotes
  std::string_view gzip;  ///< the file, compressed
};

/// All files of faces/serve/web/dist, or of faces/serve/web/fallback if npm did not build them.
std::span<const Asset> Assets();

const Asset* FindAsset(std::string_view path);

}  // namespace atunner::serve
