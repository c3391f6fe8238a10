// Lexical analysis of PTX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::ptx {

/// One lexical piece. `text` points into the module's text.
struct Token {
  std::string_view text;
  uint32_t line = 0;
};

/// All tokens; an error with its line for a character that belongs to no token.
Result<std::vector<Token>> Tokens(std::string_view text);
/// True if a name, a register or a directive may begin with this character.
bool IsWordStart(char c);
/// "ld.global.nc" → "ld", "global", "nc".
std::vector<std::string> SplitDots(std::string_view word);

}  // namespace atunner::ptx
