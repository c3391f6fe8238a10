// `mcp`: a server of the Model Context Protocol over standard input and output.
#include <iostream>

#include "atunner/mcp/server.h"
#include "atunner/mcp/transport/stdio.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

Result<int> Serve(const Context& context) {
  Machine machine(context.common.store);
  ATUNNER_TRY(const auto server, mcp::Server::Make(machine.services(), {.files = true}));
  mcp::ServeLines(server->offer(), std::cin, std::cout, InterruptToken());
  return 0;
}

}  // namespace

void AddMcp(VerbList& verbs) {
  CLI::App* verb = verbs.Add(
      "mcp", "serve coding agents over standard input and output (Model Context Protocol)", Serve);
  verb->footer("One JSON a line, revisions 2025-11-25 and 2026-07-28 (docs/how-to/mcp.md).");
}

}  // namespace atunner::cli
