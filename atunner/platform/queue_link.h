// The worker's end of the queue of messages.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "atunner/base/clock.h"
#include "atunner/nats/client.h"
#include "atunner/platform/server_link.h"

namespace atunner::platform {

struct QueueLinkOptions {
  std::string server;             ///< "": the address in a job's message
  double patience_seconds = 300;  ///< for a nats-server that does not answer
  /// How often a known server is asked for a job without a message: it then lists this worker, and
  /// a job of a class that has no consumer is found.
  double ask_seconds = 20;
};

/// Opens a link to the server of this address.
using LinkMaker = std::function<Result<std::unique_ptr<ServerLink>>(const std::string& server)>;

/// Jobs are found by messages of a stream and leased from the server, to which all else goes. A
/// message is acknowledged when its job has ended here, or waits no longer. While the nats-server
/// does not answer, a known server is asked instead. `client` and `clock` must outlive the link.
/// kInvalidInput for an address that `make` refuses.
Result<std::unique_ptr<ServerLink>> MakeQueueLink(nats::Client& client, Clock& clock,
                                                  const QueueLinkOptions& options, LinkMaker make);

}  // namespace atunner::platform
