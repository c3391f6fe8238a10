// `submit`: a job for a server, and with --wait its result and artifact.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"
#include "atunner/http/client.h"
#include "atunner/model/trial/trial.h"
#include "atunner/platform/job_client.h"
#include "faces/cli/flags/parse.h"
#include "faces/cli/output/render.h"
#include "faces/cli/server/server_flags.h"
#include "faces/cli/server/server_verbs.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

constexpr double kLookSeconds = 0.5;

struct SubmitFlags {
  ServerFlags server;
  std::string file;
  std::string operator_name;
  std::vector<std::string> shapes;
  std::string dtype;
  std::vector<std::string> attributes;
  std::vector<std::string> dims;
  std::string accuracy;
  std::string kernel;
  std::string target = "auto";
  std::string budget = "60 trials";
  uint64_t seed = 1;
  std::string strategy;
  std::vector<std::string> where;
  std::string name;
  int priority = 0;
  std::vector<std::string> labels;
  std::string key;
  bool fresh = false;
  bool wait = false;
  std::string out = "best";
};

Json JsonOf(const Value& value) {
  return std::visit([](const auto& one) { return Json(one); }, value);
}

Status AddOperatorJson(const SubmitFlags& flags, Json& request) {
  request["kind"] = "operator";
  request["operator"] = flags.operator_name;
  request["shapes"] = Json::array();
  for (const std::string& text : flags.shapes) {
    ATUNNER_TRY(const std::vector<int64_t> shape, ParseShape(text, "--input-shape"));
    request["shapes"].push_back(shape);
  }
  if (!flags.dtype.empty()) request["dtype"] = flags.dtype;
  ATUNNER_TRY(const Attributes attributes, ParseAttributes(flags.attributes));
  for (const auto& [name, value] : attributes) request["attributes"][name] = JsonOf(value);
  return {};
}

Status AddFileJson(const SubmitFlags& flags, platform::JobClient& client, Json& request) {
  const bool source = flags.file.ends_with(".cu");
  request["kind"] = source ? "source" : "graph";
  if (!flags.kernel.empty()) request["kernel"] = flags.kernel;
  for (const std::string& dim : flags.dims) {
    ATUNNER_TRY(const auto parsed, ParseDim(dim));
    request["dims"][parsed.first] = parsed.second;
  }
  ATUNNER_TRY(request["upload"], client.Upload(flags.file));
  return {};
}

Status AddLabels(const SubmitFlags& flags, Json& request) {
  for (const std::string& label : flags.labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return Invalid("'" + label + "' has no value", "--label", "write key=value");
    request["labels"][label.substr(0, equals)] = label.substr(equals + 1);
  }
  return {};
}

Status AddTuningJson(const SubmitFlags& flags, Json& request) {
  ATUNNER_TRY(const Budget budget, Budget::Parse(flags.budget));
  request["target_gpu"] = flags.target;
  request["budget"] = Json::object();
  if (budget.trials) request["budget"]["trials"] = *budget.trials;
  if (budget.seconds) request["budget"]["seconds"] = *budget.seconds;
  request["seed"] = flags.seed;
  if (!flags.strategy.empty()) request["strategy"] = flags.strategy;
  if (!flags.where.empty()) request["where"] = flags.where;
  if (!flags.accuracy.empty()) request["accuracy"] = flags.accuracy;
  if (!flags.name.empty()) request["name"] = flags.name;
  if (flags.priority != 0) request["priority"] = flags.priority;
  if (flags.fresh) request["fresh"] = true;
  return AddLabels(flags, request);
}

std::string BestText(const Json& job) {
  const Json best = job.value("best", Json());
  if (!best.is_object()) return "";
  const Json speedup = job.value("speedup", Json());
  return fmt::format(
      " {:.0f} ns {}{}", best.value("time_ns", 0.0),
      job.value("evidence", Json()).is_string() ? job["evidence"].get<std::string>() : "",
      speedup.is_number() ? fmt::format(", {:.2f}x", speedup.get<double>()) : "");
}

std::string LineOf(const Json& job) {
  const Json budget = job.value("budget", Json::object());
  return fmt::format("{} {}: {} trials,{}", job.value("id", ""), job.value("state", ""),
                     budget.value("used_trials", 0), BestText(job));
}

/// Shows what changes until the job ends. Ctrl-C cancels the job, and then waits for its best.
Result<Json> WaitFor(platform::JobClient& client, Json job, bool quiet) {
  const std::stop_token stop = InterruptToken();
  bool cancelled = false;
  for (std::string last; !platform::HasEnded(job);) {
    if (const std::string line = LineOf(job); !quiet && line != last) {
      fmt::print(stderr, "{}\n", Printable(line));
      last = line;
    }
    SystemClock().Sleep(kLookSeconds);
    if (stop.stop_requested() && !cancelled) {
      ATUNNER_RETURN_IF_ERROR(client.Cancel(job.value("id", "")));
      cancelled = true;
    }
    ATUNNER_TRY(job, client.Find(job.value("id", "")));
  }
  return job;
}

Status FetchInto(platform::JobClient& client, const Json& job, const Path& out, Json& shown) {
  if (!job.value("artifact", Json()).is_object()) return {};
  ATUNNER_TRY(const int files, client.Fetch(job.value("id", ""), out));
  shown["out"] = out.string();
  shown["files"] = files;
  return {};
}

Result<int> Ended(platform::JobClient& client, const SubmitFlags& flags, const Json& job,
                  bool json) {
  Json shown = job;
  ATUNNER_RETURN_IF_ERROR(FetchInto(client, job, flags.out, shown));
  const std::string state = job.value("state", "");
  if (json) {
    PrintJson(shown);
  } else {
    fmt::print("{}\n", Printable(LineOf(job)));
    const Json error = job.value("error", Json());
    if (error.is_object()) fmt::print("{}\n", Printable(error.value("detail", "")));
    if (shown.contains("out")) fmt::print("artifact in {}\n", flags.out);
  }
  return state == "succeeded" || (state == "cancelled" && job["best"].is_object()) ? 0 : 1;
}

Status CheckFlags(const SubmitFlags& flags) {
  if (flags.file.empty() == flags.operator_name.empty())
    return Invalid("a job is either a file or an operator", "submit",
                   "atunner submit kernel.cu, or atunner submit --operator softmax "
                   "--input-shape 8192,4096");
  return {};
}

Result<int> Submit(const SubmitFlags& flags, const Context& context) {
  ATUNNER_RETURN_IF_ERROR(CheckFlags(flags));
  ATUNNER_TRY(const http::Origin origin, flags.server.Origin());
  ATUNNER_TRY(const std::string token, flags.server.Token());
  platform::JobClient client(origin, token);
  Json request = Json::object();
  ATUNNER_RETURN_IF_ERROR(AddTuningJson(flags, request));
  if (flags.file.empty())
    ATUNNER_RETURN_IF_ERROR(AddOperatorJson(flags, request));
  else
    ATUNNER_RETURN_IF_ERROR(AddFileJson(flags, client, request));
  ATUNNER_TRY(Json job, client.Submit(request, flags.key));
  if (flags.wait) {
    ATUNNER_TRY(job, WaitFor(client, std::move(job), context.common.quiet));
    return Ended(client, flags, job, context.common.json);
  }
  if (context.common.json)
    PrintJson(job);
  else
    fmt::print("{}\n", job.value("id", ""));
  return 0;
}

void AddTask(CLI::App* verb, SubmitFlags& flags) {
  verb->add_option("file", flags.file, "kernel.cu, graph.atg, model.pt2 or model.json");
  verb->add_option("--operator", flags.operator_name, "operator to compute, in place of a file");
  verb->add_option("--input-shape", flags.shapes, "shapes, as the operator asks for them");
  verb->add_option("--dtype", flags.dtype, "float32, float16 or bfloat16");
  verb->add_option("--attr", flags.attributes, "operator attribute, key=value");
  verb->add_option("--dim", flags.dims, "size of a graph's symbol, B=4096");
  verb->add_option("--accuracy", flags.accuracy, "strict, default or fast");
  verb->add_option("--kernel", flags.kernel, "which kernel of a .cu");
}

}  // namespace

void AddSubmit(VerbList& verbs) {
  const auto flags = std::make_shared<SubmitFlags>();
  CLI::App* verb = verbs.Add("submit", "give a job to a server; --wait brings its artifact back",
                             [flags](const Context& c) { return Submit(*flags, c); });
  flags->server.AddTo(verb);
  AddTask(verb, *flags);
  verb->add_option("--target-gpu", flags->target,
                   "a GPU of `atunner devices`, or auto: the worker's");
  verb->add_option("--budget", flags->budget, "90s, 5m, 200 (trials), or both: 200,5m")
      ->capture_default_str();
  verb->add_option("--seed", flags->seed, "seed of search and inputs");
  verb->add_option("--strategy", flags->strategy, "search strategy");
  verb->add_option("--where", flags->where, "only configurations for which this holds");
  verb->add_flag("--fresh", flags->fresh, "forget what an earlier run of the same request found");
  verb->add_option("--name", flags->name, "what lists call the job");
  verb->add_option("--priority", flags->priority, "larger ones first")
      ->check(CLI::Range(-100, 100));
  verb->add_option("--label", flags->labels, "key=value that the worker must have");
  verb->add_option("--key", flags->key, "idempotency key: the same job if it is sent again");
  verb->add_flag("--wait", flags->wait, "wait for the end, and fetch the artifact");
  verb->add_option("--out", flags->out, "with --wait: folder for the artifact")
      ->capture_default_str();
}

}  // namespace atunner::cli
