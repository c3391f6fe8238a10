#include "atunner/judge/runner_judge.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

// Messages are JSON in both directions. A request is followed by a zero byte and the cubins, each
// with its length.

/// A request to be sent. Tens of kilobytes of cubin are not put into the JSON as base64: encoding
/// and decoding them would take longer than judging many a kernel.
struct Request {
  Json json;
  std::string cubins;

  void Add(const char* name, const CandidateKernel& candidate, bool binary_only);
  std::string Text() const { return DumpJson(json) + '\0' + cubins; }
};

Json Encode(const CandidateKernel& candidate, bool binary_only) {
  Json dims = Json::array();
  for (const Dims& each : candidate.check_dims) dims.push_back(each);
  CompiledModule module = candidate.module;
  if (binary_only && !module.cubin.empty()) module.ptx.clear();
  module.cubin.clear();
  return {{"module", ToJson(module)}, {"plan", ToJson(candidate.plan)}, {"check_dims", dims}};
}

void Request::Add(const char* name, const CandidateKernel& candidate, bool binary_only) {
  const uint64_t size = candidate.module.cubin.size();
  cubins.append(reinterpret_cast<const char*>(&size), sizeof size);
  cubins += candidate.module.cubin;
  json[name] = Encode(candidate, binary_only);
}

/// Takes the next cubin off the front. kInvalidInput when it is cut off.
Result<std::string> TakeCubin(std::string_view& cubins) {
  uint64_t size = 0;
  if (cubins.size() < sizeof size) return Invalid("the request lacks a cubin");
  std::memcpy(&size, cubins.data(), sizeof size);
  cubins.remove_prefix(sizeof size);
  if (size > cubins.size()) return Invalid("the request's cubin is cut off");
  std::string cubin(cubins.substr(0, size));
  cubins.remove_prefix(size);
  return cubin;
}

Result<CandidateKernel> DecodeCandidate(const Json& json, std::string_view& cubins) {
  CandidateKernel candidate;
  ATUNNER_TRY(candidate.module, FromJson<CompiledModule>(json.at("module")));
  ATUNNER_TRY(candidate.module.cubin, TakeCubin(cubins));
  ATUNNER_TRY(candidate.plan, FromJson<LaunchPlan>(json.at("plan")));
  for (const Json& dims : json.at("check_dims")) candidate.check_dims.push_back(dims.get<Dims>());
  return candidate;
}

Json Encode(const JudgeAnswer& answer) {
  Json json{{"verdict", ToJson(answer.verdict)},
            {"note", answer.note},
            {"verify_seconds", answer.verify_seconds},
            {"timing_seconds", answer.timing_seconds}};
  if (answer.measurement) json["measurement"] = ToJson(*answer.measurement);
  if (answer.estimate) json["estimate"] = ToJson(*answer.estimate);
  return json;
}

Result<JudgeAnswer> DecodeAnswer(const Json& json) {
  JudgeAnswer answer;
  ATUNNER_TRY(answer.verdict, FromJson<Verdict>(json.at("verdict")));
  (void)json["verdict"].at("kind");  // an empty object is no acquittal
  answer.note = json.value("note", "");
  answer.verify_seconds = json.value("verify_seconds", 0.0);
  answer.timing_seconds = json.value("timing_seconds", 0.0);
  if (json.contains("measurement")) {
    ATUNNER_TRY(answer.measurement, FromJson<Measurement>(json["measurement"]));
  }
  if (json.contains("estimate")) {
    ATUNNER_TRY(answer.estimate, FromJson<Estimate>(json["estimate"]));
  }
  return answer;
}

// A missing field keeps its default, so what must be there is asked for by name.
Result<Comparison> DecodeComparison(const Json& json) {
  (void)json.at("ratio");
  return FromJson<Comparison>(json);
}

Result<Baseline> DecodeBaseline(const Json& json) {
  (void)json.at("name");
  return FromJson<Baseline>(json);
}

Json Encode(const std::vector<LaunchMetrics>& launches) {
  Json list = Json::array();
  for (const LaunchMetrics& launch : launches) {
    Json& metrics = list.emplace_back(Json::object());
    for (const auto& [name, value] : launch) metrics[name] = value;
  }
  return {{"launches", list}};
}

Result<std::vector<LaunchMetrics>> DecodeMetrics(const Json& json) {
  std::vector<LaunchMetrics> launches;
  for (const Json& metrics : json.at("launches")) {
    LaunchMetrics& launch = launches.emplace_back();
    for (const auto& [name, value] : metrics.items()) launch[name] = value.get<double>();
  }
  return launches;
}

Json EncodeError(const Error& error) {
  return {{"error",
           {{"code", static_cast<int>(error.code)},
            {"what", error.what},
            {"where", error.where},
            {"hint", error.hint}}}};
}

Error DecodeError(const Json& json) {
  const int code = json.at("code");
  if (code < 0 || code > static_cast<int>(ErrorCode::kInternal))
    throw std::out_of_range("error code");
  return {static_cast<ErrorCode>(code), json.at("what"), json.at("where"), json.at("hint")};
}

/// The runner's reply: what `decode` makes of it, or the error it reports. A candidate may have
/// corrupted the process that wrote it, so a reply that makes no sense is kInternal and nothing
/// worse.
template <class T>
Result<T> DecodeReply(const std::string& text, Result<T> (*decode)(const Json&)) {
  const auto garbage = [](const std::string& what) {
    return Fail(ErrorCode::kInternal, "the runner's answer makes no sense: " + what);
  };
  const auto json = ParseJson(text, "the runner's answer");
  if (!json) return garbage(json.error().what);
  try {
    if (json->contains("error")) return std::unexpected(DecodeError((*json)["error"]));
    if (!json->is_object()) return garbage("not an object");
    Result<T> value = decode(*json);
    if (!value) return garbage(value.error().what);
    return value;
  } catch (const std::exception& error) {
    return garbage(error.what());
  }
}

Result<Json> ServeBegin(Judge& judge, const Json& request) {
  JudgeTask task;
  ATUNNER_TRY(task.spec, FromJson<KernelSpec>(request.at("spec")));
  task.seed = request.at("seed");
  task.launch_timeout_seconds = request.at("launch_timeout");
  task.reproducible = request.at("reproducible");
  ATUNNER_RETURN_IF_ERROR(judge.Begin(task));
  return Json::object();
}

Json Encode(const JudgeOrder& order) {
  Json json{{"op", "examine"},      {"time", order.time},         {"energy", order.energy},
            {"plain", order.plain}, {"thorough", order.thorough}, {"seed", order.seed}};
  if (order.incumbent_ns) json["incumbent_ns"] = *order.incumbent_ns;
  if (order.time_limit_seconds) json["time_limit"] = *order.time_limit_seconds;
  return json;
}

JudgeOrder DecodeOrder(const Json& json) {
  JudgeOrder order;
  order.time = json.at("time");
  order.thorough = json.at("thorough");
  order.seed = json.at("seed");
  order.energy = json.value("energy", false);
  order.plain = json.value("plain", false);
  if (json.contains("incumbent_ns")) order.incumbent_ns = json["incumbent_ns"].get<double>();
  if (json.contains("time_limit")) order.time_limit_seconds = json["time_limit"].get<double>();
  return order;
}

Result<Json> Serve(Judge& judge, const Json& request, std::string_view cubins) {
  const std::string op = request.at("op");
  if (op == "begin") return ServeBegin(judge, request);
  ATUNNER_TRY(const CandidateKernel candidate, DecodeCandidate(request.at("candidate"), cubins));
  if (op == "examine") {
    ATUNNER_TRY(const JudgeAnswer answer, judge.Examine(candidate, DecodeOrder(request)));
    return Encode(answer);
  }
  const uint64_t seed = request.at("seed");
  if (op == "count") {
    const auto metrics = request.at("metrics").get<std::vector<std::string>>();
    ATUNNER_TRY(const auto launches, judge.Count(candidate, metrics, seed));
    return Encode(launches);
  }
  const int pairs = request.at("pairs");
  if (op == "compare") {
    ATUNNER_TRY(const CandidateKernel baseline, DecodeCandidate(request.at("baseline"), cubins));
    ATUNNER_TRY(const Comparison comparison, judge.Compare(baseline, candidate, pairs, seed));
    return ToJson(comparison);
  }
  ATUNNER_TRY(const Baseline vendor,
              judge.CompareVendor(request.at("name"), candidate, pairs, seed));
  return ToJson(vendor);
}

/// A fault on a real GPU makes the CUDA context unusable, so the runner is replaced.
bool LosesTheContext(VerdictKind kind) {
  return kind == VerdictKind::kCrash || kind == VerdictKind::kOutOfBounds ||
         kind == VerdictKind::kDeadlock || kind == VerdictKind::kTimeout;
}

/// A request that was wrong, as opposed to a device that failed.
bool IsRequestError(const Error& error) {
  return error.code == ErrorCode::kInvalidInput || error.code == ErrorCode::kUnsupported;
}

JudgeAnswer Refused(VerdictKind kind, std::string reason) {
  JudgeAnswer answer;
  answer.verdict.kind = kind;
  answer.verdict.reason = std::move(reason);
  return answer;
}

}  // namespace

int ServeJudge(Judge& judge) {
  WorkerChannel channel;
  while (const std::optional<std::string> message = channel.Receive()) {
    Json reply;
    try {
      const size_t end = std::min(message->find('\0'), message->size());
      auto request = ParseJson(message->substr(0, end), "request");
      const std::string_view cubins = std::string_view(*message).substr(
          std::min(end + 1, message->size()));
      auto answer = request ? Serve(judge, *request, cubins)
                            : Result<Json>(std::unexpected(request.error()));
      reply = answer ? *answer : EncodeError(answer.error());
    } catch (const std::exception& error) {
      reply = EncodeError(
          {ErrorCode::kInternal, std::string("malformed request: ") + error.what(), "", ""});
    }
    if (!channel.Send(DumpJson(reply))) return 0;
  }
  return 0;
}

Result<std::string> RunnerJudge::Call(const std::string& message, double timeout) {
  return worker_->Call(message, timeout);
}

Status RunnerJudge::EnsureRunning() {
  if (worker_ && worker_->alive()) return {};
  if (worker_) ++restarts_;
  ATUNNER_TRY(worker_, WorkerProcess::Start(options_.worker));
  return task_ ? BeginThere() : Status{};
}

Status RunnerJudge::BeginThere() {
  const Json begin{{"op", "begin"},
                   {"spec", ToJson(task_->spec)},
                   {"seed", task_->seed},
                   {"launch_timeout", task_->launch_timeout_seconds},
                   {"reproducible", task_->reproducible}};
  auto reply = Call(DumpJson(begin), options_.begin_timeout_seconds);
  if (!reply) {
    const std::string words = worker_->death() ? worker_->death()->last_words : "";
    return Fail(reply.error().code, "the runner could not begin: " + reply.error().what +
                                        (words.empty() ? "" : "\n" + words));
  }
  ATUNNER_TRY(const bool begun,
              DecodeReply<bool>(*reply, [](const Json&) -> Result<bool> { return true; }));
  (void)begun;
  return {};
}

Status RunnerJudge::Begin(const JudgeTask& task) {
  task_ = task;
  if (worker_ && worker_->alive() && options_.one_for_all_tasks) {
    if (const Status begun = BeginThere(); begun) return begun;  // or else in a fresh one
  }
  if (worker_) worker_->Kill();
  worker_.reset();
  return EnsureRunning();
}

namespace {

/// True for tasks whose candidates are searched for constants, which become inputs.
bool MinesCandidates(const std::optional<JudgeTask>& task) {
  return task && task->spec.oracle.kind == Oracle::Kind::kKernel;
}

}  // namespace

Result<JudgeAnswer> RunnerJudge::Examine(const CandidateKernel& candidate,
                                         const JudgeOrder& order) {
  ATUNNER_RETURN_IF_ERROR(EnsureRunning());
  Request request{Encode(order), {}};
  request.Add("candidate", candidate, options_.binary_only && !MinesCandidates(task_));
  const auto reply = Call(request.Text(), options_.examine_timeout_seconds);
  if (!reply) {
    const WorkerDeath& death = *worker_->death();
    return Refused(death.timed_out ? VerdictKind::kTimeout : VerdictKind::kCrash,
                   "the runner " + death.ToString());
  }
  auto answer = DecodeReply<JudgeAnswer>(*reply, DecodeAnswer);
  // When the device fails while it runs a candidate, the candidate is probably the cause.
  if (!answer && !IsRequestError(answer.error())) {
    worker_->Kill();
    return Refused(VerdictKind::kCrash, "the device failed: " + answer.error().ToString());
  }
  if (answer && LosesTheContext(answer->verdict.kind)) worker_->Kill();
  return answer;
}

Result<Comparison> RunnerJudge::Compare(const CandidateKernel& baseline,
                                        const CandidateKernel& candidate, int pairs,
                                        uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(EnsureRunning());
  Request request{{{"op", "compare"}, {"pairs", pairs}, {"seed", seed}}, {}};
  // in the order in which they are taken off
  request.Add("candidate", candidate, options_.binary_only);
  request.Add("baseline", baseline, options_.binary_only);
  ATUNNER_TRY(const std::string reply, Call(request.Text(), 2 * options_.examine_timeout_seconds));
  return DecodeReply<Comparison>(reply, DecodeComparison);
}

Result<std::vector<LaunchMetrics>> RunnerJudge::Count(const CandidateKernel& candidate,
                                                      std::span<const std::string> metrics,
                                                      uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(EnsureRunning());
  Request request{{{"op", "count"}, {"seed", seed}, {"metrics", metrics}}, {}};
  request.Add("candidate", candidate, options_.binary_only);
  const auto reply = Call(request.Text(), options_.examine_timeout_seconds);
  if (!reply)
    return Fail(ErrorCode::kUnavailable,
                "the runner " + worker_->death()->ToString() + " while it read counters");
  return DecodeReply<std::vector<LaunchMetrics>>(*reply, DecodeMetrics);
}

Result<Baseline> RunnerJudge::CompareVendor(const std::string& name,
                                            const CandidateKernel& candidate, int pairs,
                                            uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(EnsureRunning());
  Request request{{{"op", "vendor"}, {"name", name}, {"pairs", pairs}, {"seed", seed}}, {}};
  request.Add("candidate", candidate, options_.binary_only);
  ATUNNER_TRY(const std::string reply, Call(request.Text(), 2 * options_.examine_timeout_seconds));
  return DecodeReply<Baseline>(reply, DecodeBaseline);
}

}  // namespace atunner
