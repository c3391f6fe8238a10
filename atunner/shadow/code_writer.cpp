#include "atunner/shadow/code_writer.h"

#include <algorithm>

namespace atunner::shadow {
namespace {

constexpr std::array<std::string_view, 5> kPoolNames = {"%atunner_d", "%atunner_w", "%atunner_h",
                                                        "%atunner_q", "%atunner_p"};
constexpr std::array<std::string_view, 5> kPoolTypes = {".f64", ".b32", ".b16", ".b64", ".pred"};

}  // namespace

void CodeWriter::Begin(const ptx::TextInstruction& instruction) {
  instruction_ = &instruction;
  before_.clear();
  after_.clear();
  out_ = &before_;
  used_ = {};
}

void CodeWriter::Line(std::string_view text) {
  *out_ += '\t';
  *out_ += text;
  *out_ += text == "}" || text.ends_with(':') ? "\n" : ";\n";
}

std::string CodeWriter::Temporary(size_t pool) {
  const int number = used_[pool]++;
  most_[pool] = std::max(most_[pool], used_[pool]);
  return fmt::format("{}{}", kPoolNames[pool], number);
}

std::string CodeWriter::Temporaries() const {
  std::string text;
  for (size_t pool = 0; pool < kPools; ++pool) {
    if (most_[pool] > 0)
      text += fmt::format("\t.reg {} {}<{}>;\n", kPoolTypes[pool], kPoolNames[pool], most_[pool]);
  }
  return text;
}

}  // namespace atunner::shadow
