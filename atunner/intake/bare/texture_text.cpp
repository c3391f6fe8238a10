#include "atunner/intake/bare/texture_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "atunner/intake/c_type.h"
#include "atunner/model/kernel/texture.h"

namespace atunner {
namespace {

class TextureFinder {
 public:
  TextureFinder(const CudaSyntax& syntax, const HostNumber& number)
      : syntax_(syntax), number_(number) {}

  std::optional<std::string> Run() {
    for (size_t i = 0; i + 2 < Count(); ++i) {
      const bool call = Is(i + 1, "(") || Is(i + 1, "<");
      if (call && Is(i, "cudaCreateChannelDesc")) NoteChannels(i);
      if (call && (Is(i, "cudaMallocArray") || Is(i, "cudaMalloc3DArray"))) NoteArray(i);
      if (Is(i + 1, "=") || Is(i + 1, "[")) NoteField(i);
    }
    if (buffer_bytes_) NoteBuffer();
    if (extents_.size() != 1 || channels_.size() != 1) return std::nullopt;
    const std::string text = *channels_.begin() + "[" + *extents_.begin() + "]" + Words();
    return ParseTexture(text) ? std::optional(text) : std::nullopt;
  }

 private:
  size_t Count() const { return syntax_.lexed.tokens.size(); }
  bool Is(size_t i, std::string_view text) const {
    return i < Count() && syntax_.token(i).Is(text);
  }

  /// cudaCreateChannelDesc<float4>(), cudaCreateChannelDesc(8, 8, 8, 8,
  /// cudaChannelFormatKindUnsigned)
  void NoteChannels(size_t call) {
    if (Is(call + 1, "<")) {
      const size_t close = MatchingClose(syntax_, call + 1);
      const auto type = ParseCType(syntax_.Text({call + 2, close}));
      channels_.insert(type ? Channel(type->dtype, type->lanes) : "");
      return;
    }
    const auto pieces = SplitArguments(syntax_, {call + 2, MatchingClose(syntax_, call + 1)}, true);
    if (pieces.size() != 5) return;
    int lanes = 0;
    for (size_t c = 0; c < 4; ++c) lanes += number_(pieces[c]).value_or(0) > 0;
    channels_.insert(Channel(syntax_.Text(pieces[4]), number_(pieces[0]).value_or(0), lanes));
  }

  static std::string Channel(DType dtype, int lanes) {
    return fmt::format("{}{}", Name(dtype), lanes > 1 ? fmt::format("x{}", lanes) : "");
  }
  static std::string Channel(std::string_view kind, int64_t bits, int lanes) {
    const std::string_view name = kind.ends_with("Float")      ? "float"
                                  : kind.ends_with("Unsigned") ? "uint"
                                                               : "int";
    const auto dtype = ParseDType(fmt::format("{}{}", name, bits));
    return dtype ? Channel(*dtype, std::max(lanes, 1)) : "";
  }

  /// cudaMallocArray(&array, &description, width, height), cudaMalloc3DArray(&array, &description,
  /// extent)
  void NoteArray(size_t call) {
    auto pieces = SplitArguments(syntax_, {call + 2, MatchingClose(syntax_, call + 1)}, true);
    const bool deep = Is(call, "cudaMalloc3DArray");
    if (pieces.size() < 3) return;
    if (deep) {
      // A fourth argument other than 0 means layers or a cube.
      if (pieces.size() > 3 && syntax_.Text(pieces[3]) != "0") extents_.insert("?");
      const auto extent = ExtentOf(pieces[2]);
      pieces = SplitArguments(syntax_, extent, true);
    } else {
      pieces.erase(pieces.begin(), pieces.begin() + 2);
    }
    std::string text;
    for (size_t i = 0; i < pieces.size() && i < (deep ? 3 : 2); ++i) {
      const auto size = number_(pieces[i]);
      if (!size) return void(extents_.insert("?"));
      if (*size > 0) text += fmt::format("{}{}", text.empty() ? "" : ",", *size);
    }
    extents_.insert(text);
  }

  /// The arguments of make_cudaExtent(…), in the call itself or in the variable that it names.
  TokenRange ExtentOf(TokenRange range) const {
    for (size_t i = range.begin; i + 1 < range.end; ++i) {
      if (Is(i, "make_cudaExtent")) return {i + 2, MatchingClose(syntax_, i + 1)};
    }
    const std::string_view name = syntax_.Text(range);
    for (size_t i = 0; i + 3 < Count(); ++i) {
      if (Is(i, name) && Is(i + 1, "=") && Is(i + 2, "make_cudaExtent"))
        return {i + 4, MatchingClose(syntax_, i + 3)};
    }
    return {};
  }

  /// An assignment to a field of a descriptor, e.g. desc.filterMode = cudaFilterModeLinear, or to a
  /// field of linear memory.
  void NoteField(size_t name) {
    size_t equals = Is(name + 1, "[") ? MatchingClose(syntax_, name + 1) + 1 : name + 1;
    if (!Is(equals, "=") || name == 0 || !(Is(name - 1, ".") || Is(name - 1, "->"))) return;
    size_t end = equals + 1;
    while (end < Count() && !Is(end, ";")) ++end;
    const TokenRange value{equals + 1, end};
    const std::string_view text = syntax_.Text(value);
    if (Is(name, "filterMode")) linear_ = text.ends_with("Linear");
    if (Is(name, "normalizedCoords")) unit_ = text != "0" && text != "false";
    if (Is(name, "readMode")) fractions_ = text.ends_with("NormalizedFloat");
    if (Is(name, "addressMode")) wrap_ = text;
    if (Is(name, "sizeInBytes")) buffer_bytes_ = number_(value);
    if (name < 2 || !Is(name - 2, "desc")) return;
    if (Is(name, "f")) kind_ = text;
    if (Is(name, "x")) bits_ = number_(value).value_or(0);
    for (const char* channel : {"x", "y", "z", "w"}) lanes_ += Is(name, channel) && text != "0";
  }

  void NoteBuffer() {
    if (bits_ > 0) channels_.insert(Channel(kind_, bits_, lanes_));
    if (channels_.size() != 1) return;
    const auto one = ParseTexture(*channels_.begin() + "[1]");
    if (one)
      extents_.insert(std::to_string(*buffer_bytes_ / static_cast<int64_t>(one->TexelBytes())));
  }

  std::string Words() const {
    const bool repeats = unit_ && wrap_.ends_with("Wrap");
    const bool mirrors = unit_ && wrap_.ends_with("Mirror");
    return std::string(linear_ ? " linear" : "") + (unit_ ? " unit" : "") +
           (fractions_ ? " fractions" : "") + (repeats ? " repeat" : "") +
           (mirrors ? " mirror" : "") + (wrap_.ends_with("Border") ? " border" : "") +
           (buffer_bytes_ ? " buffer" : "");
  }

  const CudaSyntax& syntax_;
  const HostNumber& number_;
  std::set<std::string> extents_, channels_;  ///< found so far; "?" and "" = not understood
  bool linear_ = false, unit_ = false, fractions_ = false;
  std::string_view wrap_, kind_;
  std::optional<int64_t> buffer_bytes_;  ///< size of a texture in linear memory
  int64_t bits_ = 0;
  int lanes_ = 0;
};

}  // namespace

bool IsTextureType(const std::string& type) {
  return type == "cudaTextureObject_t" || type == "cudaSurfaceObject_t";
}

std::optional<std::string> TextureText(const CudaSyntax& syntax, const HostNumber& number) {
  return TextureFinder(syntax, number).Run();
}

}  // namespace atunner
