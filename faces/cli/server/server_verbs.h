// The verbs of the server: `serve`, `token`, `worker` and `submit`.
#pragma once

namespace atunner::cli {

class VerbList;

void AddServe(VerbList& verbs);
void AddToken(VerbList& verbs);
void AddWorker(VerbList& verbs);
void AddSubmit(VerbList& verbs);

}  // namespace atunner::cli
