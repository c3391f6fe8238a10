// Documents in pieces that a search can return.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace atunner::knowledge {

struct Chunk {
  std::string heading;  ///< the headings that it stands under, "Title > Section"
  std::string text;
};

/// Divides Markdown at its headings, and long sections at blank lines into pieces of about
/// `bytes` bytes.
std::vector<Chunk> ChunksOfMarkdown(std::string_view text, size_t bytes = 1500);

/// The text of an HTML page: tags, scripts and styles removed, headings as Markdown, the usual
/// entities replaced. Never fails; damaged HTML gives less text.
std::string TextOfHtml(std::string_view html);

}  // namespace atunner::knowledge
