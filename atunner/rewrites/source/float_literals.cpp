#include "atunner/rewrites/source/float_literals.h"

#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

bool IsDouble(const Token& token) {
  if (token.kind != Token::Kind::kNumber || token.text.starts_with("0x")) return false;
  const char last = token.text.back();
  return token.text.find_first_of(".eE") != std::string_view::npos && last != 'f' && last != 'F' &&
         last != 'l' && last != 'L';
}

}  // namespace

Result<std::vector<Proposal>> FloatLiterals(const Subject& subject) {
  const TokenRange body = subject.kernel().body;
  if (subject.Mentions(subject.kernel().head, "double") || subject.BodyMentions("double"))
    return DoesNotApply("the kernel asks for double itself");
  TextEdits edits(subject.syntax());
  for (size_t i = body.begin; i < body.end; ++i) {
    const Token& token = subject.syntax().token(i);
    if (IsDouble(token)) edits.InsertBehind(i, token.text.back() == '.' ? "0f" : "f");
  }
  if (edits.empty()) return DoesNotApply("there is no literal of type double");
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
