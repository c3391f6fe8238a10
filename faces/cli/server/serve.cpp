// `serve` and `worker`: jobs from other programs and machines.
#include "faces/serve/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/base/sandbox.h"
#include "atunner/device/real_device.h"
#include "atunner/http/client.h"
#include "atunner/nats/client.h"
#include "atunner/platform/queue_link.h"
#include "atunner/platform/worker.h"
#include "faces/cli/output/render.h"
#include "faces/cli/server/server_flags.h"
#include "faces/cli/server/server_verbs.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

constexpr double kPatienceSeconds = 300;
constexpr double kQueueSeconds = 3;  // for one answer of a nats-server, well below a lease
constexpr rlim_t kLargestFile = rlim_t{8} << 30;

struct ServeFlags {
  std::string listen = "127.0.0.1:8080";
  std::string data;
  int workers = 1;
  bool require_tokens = false;
  uint64_t upload_megabytes = 64;
  double lease_seconds = 30;
  std::string tls_certificate;
  std::string tls_key;
  double requests_per_second = 100;
  std::string otlp;
  std::string queue;
  std::string advertise;
  std::string authorities;
  bool mcp_fixtures = false;
};

struct WorkerFlags {
  ServerFlags server;
  std::string name;
  std::vector<std::string> labels;
  std::string folder;
  bool shared_store = false;
  std::string sandbox = "auto";
  std::string queue;
  int most_jobs = 0;
  double most_idle_seconds = 0;
};

/// Either verb's own; the processes that compile and run candidates do not need it.
constexpr const char* kQueueVariable = "ATUNNER_QUEUE";

/// Limits what a job may do to the machine: no core files, no endless files, and temporary files in
/// the worker's own folder.
Status LimitSelf(const Path& folder) {
  const rlimit none{0, 0};
  const rlimit file{kLargestFile, kLargestFile};
  (void)::setrlimit(RLIMIT_CORE, &none);
  (void)::setrlimit(RLIMIT_FSIZE, &file);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder / "tmp"));
  ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  return {};
}

/// What a job's processes are kept from, in words. `jobs`: the folder that they may read.
Result<std::string> UseSandbox(const std::string& wanted, const Path& jobs) {
  ::unsetenv(kSandboxVariable);
  if (wanted == "off") return std::string("jobs run without a sandbox");
  const SandboxSupport support = FindSandboxSupport();
  if (wanted == "require" && !support.Full())
    return Fail(ErrorCode::kUnavailable, "the kernel gives " + support.ToString() + " only",
                "--sandbox",
                "use Linux 5.13 or later with Landlock and seccomp, or --sandbox auto");
  ::setenv(kSandboxVariable, jobs.c_str(), 1);
  return "jobs run in a sandbox of " + support.ToString();
}

Result<int> RunServe(const ServeFlags& flags, const Context& context) {
  serve::ServeOptions options;
  ATUNNER_RETURN_IF_ERROR(serve::ParseListen(flags.listen, options));
  options.store = StoreFile(context.common);
  options.data = flags.data.empty() ? serve::DataFolder(options.store) : Path(flags.data);
  options.workers = flags.workers;
  options.require_tokens = flags.require_tokens;
  options.upload_bytes = flags.upload_megabytes << 20;
  options.lease_seconds = flags.lease_seconds;
  options.tls_certificate = flags.tls_certificate;
  options.tls_key = flags.tls_key;
  options.requests_per_second = flags.requests_per_second;
  options.otlp = flags.otlp;
  options.queue = flags.queue;
  options.advertise = flags.advertise;
  options.authorities = flags.authorities;
  ::unsetenv(kQueueVariable);
  options.mcp_fixtures = flags.mcp_fixtures;
  // Kernels of coding agents (/mcp) are compiled and run by processes of this one.
  ATUNNER_TRY(const std::string sandbox, UseSandbox("auto", options.data / "work"));
  Machine machine(options.store.string());
  const std::stop_token stop = TerminationToken();
  ATUNNER_RETURN_IF_ERROR(serve::Serve(
      options, machine.services(),
      [&](const std::string& url) {
        if (context.common.json)
          PrintJson(
              {{"url", url}, {"store", options.store.string()}, {"data", options.data.string()}});
        else
          fmt::print("atunner serves on {} (store {}). Ctrl-C ends it.\n", url,
                     options.store.string());
        std::fflush(stdout);
      },
      stop));
  return 0;
}

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "worker";
}

Result<platform::WorkerDescription> DescriptionOf(const WorkerFlags& flags) {
  platform::WorkerDescription worker;
  worker.name = flags.name.empty() ? fmt::format("{}-{}", HostName(), ::getpid()) : flags.name;
  for (const std::string& label : flags.labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return Invalid("'" + label + "' has no value", "--label", "write key=value");
    worker.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (const auto gpus = ListRealDevices()) {
    for (const RealDeviceInfo& gpu : *gpus) worker.gpus.push_back(gpu.profile.name);
  }
  return worker;
}

/// How a worker finds jobs.
struct WorkerLink {
  std::unique_ptr<nats::Client> client;  ///< null without --queue
  std::unique_ptr<platform::ServerLink> link;
  std::string asked;  ///< whom it asks, in words
};

Result<WorkerLink> LinkOf(const WorkerFlags& flags, const std::string& token) {
  WorkerLink made;
  const auto open = [server = flags.server, token](
                        const std::string& url) -> Result<std::unique_ptr<platform::ServerLink>> {
    ServerFlags one = server;
    one.server = url;
    ATUNNER_TRY(const http::Origin origin, one.Origin());
    return platform::MakeHttpLink(origin, token, SystemClock(), kPatienceSeconds);
  };
  made.asked = flags.server.Url();
  if (flags.queue.empty()) {
    ATUNNER_TRY(made.link, open(made.asked));
    return made;
  }
  ATUNNER_TRY(nats::Url url, nats::ParseUrl(flags.queue));
  made.asked = url.Text() + (flags.server.IsGiven() ? " and " + made.asked : "");
  ATUNNER_TRY(const http::Origin origin, flags.server.Origin());
  made.client = std::make_unique<nats::Client>(
      std::move(url),
      nats::ClientOptions{
          .name = "atunner worker", .authorities = origin.authorities, .seconds = kQueueSeconds});
  ATUNNER_TRY(made.link,
              platform::MakeQueueLink(*made.client, SystemClock(),
                                      {.server = flags.server.IsGiven() ? flags.server.Url() : "",
                                       .patience_seconds = kPatienceSeconds},
                                      open));
  return made;
}

Result<int> RunWorker(const WorkerFlags& flags, const Context& context) {
  ATUNNER_TRY(const std::string token, flags.server.Token());
  ::unsetenv(kTokenVariable);  // the processes that compile and run candidates do not need it
  ::unsetenv(kQueueVariable);
  platform::WorkerOptions options;
  ATUNNER_TRY(options.description, DescriptionOf(flags));
  const Path folder = std::filesystem::absolute(
      flags.folder.empty() ? UserDataDirectory() / "worker" / options.description.name
                           : Path(flags.folder));
  options.folder = folder / "jobs";
  options.shares_store = flags.shared_store;
  options.most_jobs = flags.most_jobs;
  options.most_idle_seconds = flags.most_idle_seconds;
  ATUNNER_RETURN_IF_ERROR(LimitSelf(folder));
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(options.folder));
  ATUNNER_TRY(const std::string sandbox, UseSandbox(flags.sandbox, options.folder));
  // A worker on another machine remembers its own trials: the same job there goes on from them.
  const bool own = !flags.shared_store && context.common.store.empty();
  Machine machine(own ? (folder / "atunner.db").string() : context.common.store);
  ATUNNER_TRY(const WorkerLink link, LinkOf(flags, token));
  const platform::WorkerLog log = [&](const std::string& line) {
    if (!context.common.quiet) fmt::print(stderr, "atunner worker: {}\n", Printable(line));
  };
  log("asks " + link.asked + " for jobs; " + sandbox);
  platform::Worker worker(options, *link.link, machine.services(), log);
  ATUNNER_RETURN_IF_ERROR(worker.Run(TerminationToken()));
  return 0;
}

}  // namespace

void AddServe(VerbList& verbs) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* verb = verbs.Add(
      "serve", "serve jobs over HTTP: API, dashboard, queue, workers, coding agents (/mcp)",
      [flags](const Context& c) { return RunServe(*flags, c); });
  verb->add_option("--listen", flags->listen,
                   "address and port; beyond this machine tokens are needed")
      ->capture_default_str();
  verb->add_option("--data", flags->data,
                   "folder of queue, tokens, uploads and artifacts; else STORE.serve");
  verb->add_option("--workers", flags->workers, "worker processes on this machine; 0: only others")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  verb->add_flag("--require-tokens", flags->require_tokens, "ask for tokens on this machine too");
  verb->add_option("--upload-megabytes", flags->upload_megabytes, "largest upload")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--lease-seconds", flags->lease_seconds,
                   "a worker that is silent for so long loses its job")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  verb->add_option("--tls-cert", flags->tls_certificate,
                   "PEM file of the server's certificate and its chain; then it speaks HTTPS only");
  verb->add_option("--tls-key", flags->tls_key, "PEM file of the certificate's private key");
  verb->add_option("--requests-per-second", flags->requests_per_second,
                   "most requests of one token, on average; 0: any number")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb->add_option("--otlp", flags->otlp,
                   "send spans of requests and jobs to this collector of OpenTelemetry (OTLP over "
                   "HTTP), for example http://127.0.0.1:4318")
      ->envname("OTEL_EXPORTER_OTLP_ENDPOINT");
  verb->add_option("--queue", flags->queue,
                   "announce jobs on a nats-server with JetStream: nats://HOST:PORT[/NAME], or "
                   "tls://; servers need different names")
      ->envname(kQueueVariable);
  verb->add_option("--advertise", flags->advertise,
                   "URL at which workers of --queue reach this server; else the one it listens on")
      ->needs("--queue");
  verb->add_option("--ca", flags->authorities,
                   "PEM file with the authority of the nats-server's certificate; else $ATUNNER_CA")
      ->envname(kAuthoritiesVariable);
  verb->add_flag("--mcp-conformance-fixtures", flags->mcp_fixtures,
                 "/mcp offers what the protocol's conformance suite asks for, not kernels");
}

void AddWorker(VerbList& verbs) {
  const auto flags = std::make_shared<WorkerFlags>();
  CLI::App* verb = verbs.Add("worker", "run the jobs of a server on this machine",
                             [flags](const Context& c) { return RunWorker(*flags, c); });
  flags->server.AddTo(verb);
  verb->add_option("--queue", flags->queue,
                   "find jobs by messages of a nats-server: the --queue of the server, whose "
                   "address the messages name unless --server does")
      ->envname(kQueueVariable);
  verb->add_option("--jobs", flags->most_jobs, "end after so many jobs; 0: never")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--idle-seconds", flags->most_idle_seconds,
                   "end after so long without a job; 0: never")
      ->check(CLI::Range(0.0, 1e9));
  verb->add_option("--name", flags->name,
                   "what the server calls this worker; else host and process");
  verb->add_option("--label", flags->labels, "key=value that jobs can ask for");
  verb->add_option("--folder", flags->folder, "folder for its work");
  verb->add_flag("--shared-store", flags->shared_store,
                 "--store is the server's own file: nothing need be sent");
  verb->add_option("--sandbox", flags->sandbox,
                   "keep jobs from files, network and processes: auto as far as the kernel can, "
                   "require all, or off")
      ->check(CLI::IsMember({"auto", "require", "off"}))
      ->capture_default_str();
}

}  // namespace atunner::cli
