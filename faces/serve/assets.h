// The dashboard's files: compressed when atunner is built, and part of the program.
#pragma once

#include <optional>
#include <span>
#include <string>
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

/// The file of an asset; nullopt if its bytes are damaged.
std::optional<std::string> Unpacked(std::string_view gzip);

}  // namespace atunner::serve
