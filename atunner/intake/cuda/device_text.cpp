// The part of a program that is compiled for the device.
#include <algorithm>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

std::string DeviceText(const CudaSyntax& syntax) {
  std::string text(syntax.source);
  for (const TokenRange& range : syntax.host_only) {
    const std::string_view gone = syntax.Text(range);
    if (gone.empty()) continue;
    const auto start = static_cast<size_t>(gone.data() - syntax.source.data());
    // Directives stay: an #endif inside may belong to an #if outside.
    size_t at = start;
    for (size_t i = range.begin; i <= range.end; ++i) {
      const bool last = i == range.end || i >= syntax.lexed.tokens.size();
      if (!last && syntax.token(i).kind != Token::Kind::kDirective) continue;
      const size_t stop = last ? start + gone.size() : syntax.token(i).offset;
      for (; at < stop; ++at) {
        if (text[at] != '\n') text[at] = ' ';
      }
      if (last) break;
      at = std::min(syntax.token(i).offset + syntax.token(i).text.size(), start + gone.size());
    }
  }
  return text;
}

std::string CompilableText(const CudaSyntax& syntax) {
  const bool has_main = std::ranges::any_of(syntax.functions,
                                            [](const HostFunction& f) { return f.name == "main"; });
  return has_main || !syntax.launches.empty() ? DeviceText(syntax) : std::string(syntax.source);
}

}  // namespace atunner
