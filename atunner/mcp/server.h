// A server: the workbench with everything that it offers, for one transport.
#pragma once

#include <memory>

#include "atunner/jobs/requests/services.h"
#include "atunner/mcp/protocol/offer.h"
#include "atunner/mcp/resources.h"
#include "atunner/mcp/workbench/workbench.h"

namespace atunner::mcp {

class Server {
 public:
  /// `services` must outlive the server.
  static Result<std::unique_ptr<Server>> Make(jobs::Services& services, WorkbenchSettings settings);
  const Offer& offer() const { return offer_; }
  Workbench& workbench() { return *workbench_; }

 private:
  explicit Server(std::unique_ptr<Workbench> workbench);

  std::unique_ptr<Workbench> workbench_;
  WorkbenchResources resources_;
  Offer offer_;
};

}  // namespace atunner::mcp
