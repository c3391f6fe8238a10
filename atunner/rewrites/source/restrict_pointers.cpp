#include "atunner/rewrites/source/restrict_pointers.h"

#include <algorithm>

#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

/// The token of a parameter's name in the kernel's head.
size_t TokenOf(const Subject& subject, const KernelParameter& parameter) {
  const TokenRange head = subject.kernel().head;
  for (size_t i = head.end; i-- > head.begin;) {
    if (subject.syntax().token(i).text == parameter.name) return i;
  }
  return 0;
}

/// The first token of the parameter that `name` ends: behind a comma or the parenthesis.
size_t BeginOf(const CudaSyntax& syntax, size_t name) {
  size_t i = name;
  while (i > 0 && !syntax.token(i - 1).Is(",") && !syntax.token(i - 1).Is("(")) --i;
  return i;
}

}  // namespace

Result<std::vector<Proposal>> RestrictPointers(const Subject& subject) {
  if (!subject.has_distinct_buffers())
    return DoesNotApply("the launch does not show that the pointers are to different buffers");
  const CudaSyntax& syntax = subject.syntax();
  TextEdits edits(syntax);
  for (const KernelParameter& parameter : subject.kernel().parameters) {
    if (!parameter.pointer) continue;
    const size_t name = TokenOf(subject, parameter);
    if (name == 0 || !syntax.token(name - 1).Is("*")) continue;  // restricted already
    edits.InsertBefore(name, " __restrict__ ");
    if (!parameter.is_const && RoleOf(syntax, subject.kernel(), parameter) == Role::kInput)
      edits.InsertBefore(BeginOf(syntax, name), "const ");
  }
  if (edits.empty()) return DoesNotApply("no pointer is without __restrict__");
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
