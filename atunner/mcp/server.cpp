#include "atunner/mcp/server.h"

#include <utility>

#include "atunner/mcp/prompts.h"
#include "atunner/mcp/tools/tools.h"

namespace atunner::mcp {
namespace {

constexpr size_t kSecretBytes = 32;

}  // namespace

Result<std::unique_ptr<Server>> Server::Make(jobs::Services& services, WorkbenchSettings settings) {
  ATUNNER_TRY(auto workbench, Workbench::Make(services, settings));
  return std::unique_ptr<Server>(new Server(std::move(workbench)));
}

Server::Server(std::unique_ptr<Workbench> workbench)
    : workbench_(std::move(workbench)), resources_(*workbench_) {
  offer_.name = "atunner";
  offer_.version = ATUNNER_VERSION;
  offer_.instructions = Instructions();
  AddProblemTools(*workbench_, offer_.tools);
  AddKernelTools(*workbench_, offer_.tools);
  AddTuningTools(*workbench_, offer_.tools);
  offer_.resources = &resources_;
  offer_.prompts = MakePrompts();
  offer_.values = KnownValues;
  offer_.secret = RandomId(kSecretBytes);
}

}  // namespace atunner::mcp
