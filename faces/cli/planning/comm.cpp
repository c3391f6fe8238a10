// `comm tune`: how collectives run fastest on the GPUs of this machine, as rules for NCCL.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/measure/collective_sweep.h"
#include "atunner/measure/nccl_runner.h"
#include "atunner/planning/comm/comm_choice.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/output/render.h"
#include "faces/cli/planning/planning_verbs.h"

namespace atunner::cli {
namespace {

constexpr char kPlugin[] = "libatunner_nccl.so";

struct CommFlags {
  std::string what;
  std::string from;
  std::string out;
  std::string nccl;
  std::vector<std::string> collectives;
  int gpus = 2;
  int64_t smallest = 1024;
  int64_t largest = int64_t{256} << 20;
  double seconds = 120;
};

Result<Path> PluginFile() {
  const Path self = SelfExecutable().parent_path();
  for (const Path& folder : {self, self.parent_path() / "lib"})
    if (Exists(folder / kPlugin)) return folder / kPlugin;
  return Fail(ErrorCode::kNotFound, fmt::format("{} is not there", kPlugin), self.string(),
              "it is built with atunner and belongs beside it, or into ../lib");
}

Result<std::vector<planning::Collective>> CollectivesOf(const std::vector<std::string>& names) {
  std::vector<planning::Collective> collectives;
  for (const std::string& name : names) {
    const auto collective = planning::CollectiveOf(name);
    if (!collective)
      return Invalid(fmt::format("'{}' is no collective", name), "--collective",
                     "allreduce, allgather or reducescatter");
    collectives.push_back(*collective);
  }
  return collectives;
}

Result<planning::CommTable> Measure(const CommFlags& flags, const Path& plugin, bool quiet) {
  CollectiveSweep sweep{
      .smallest = flags.smallest, .largest = flags.largest, .seconds = flags.seconds};
  ATUNNER_TRY(auto collectives, CollectivesOf(flags.collectives));
  if (!collectives.empty()) sweep.collectives = std::move(collectives);
  ATUNNER_TRY(const auto runner, NcclRunner::Open({.gpus = flags.gpus,
                                                   .plugin = plugin,
                                                   .library = flags.nccl,
                                                   .most_bytes = flags.largest}));
  planning::CommTable table{
      .device = runner->device(), .nccl = runner->version(), .gpus = flags.gpus};
  const auto progress = [quiet](const planning::CommRow& own, double done) {
    if (quiet) return;
    fmt::print(stderr, "\r{:3.0f} %  {} {} bytes: {:.1f} us by default      ", 100 * done,
               Name(own.collective), own.bytes, planning::MedianUs(own));
    if (done >= 1) fmt::print(stderr, "\n");
  };
  ATUNNER_RETURN_IF_ERROR(SweepCollectives(sweep, *runner, SystemClock(), progress, table));
  return table;
}

Result<planning::CommTable> TableOf(const CommFlags& flags, const Path& plugin, bool quiet) {
  if (flags.from.empty()) return Measure(flags, plugin, quiet);
  ATUNNER_TRY(const std::string text, ReadFile(flags.from));
  auto table = planning::ReadCommTable(text);
  if (!table) return Invalid(table.error().ToString(), flags.from);
  return table;
}

Status Write(const Path& folder, const planning::CommTable& table, const Path& plugin,
             const std::vector<planning::TunerRule>& rules) {
  ATUNNER_TRY(const std::string library, ReadFile(plugin));
  ATUNNER_RETURN_IF_ERROR(
      WriteFileAtomic(folder / "table.json", DumpJson(planning::ToJson(table)) + "\n"));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / kPlugin, library));
  return WriteFileAtomic(folder / "nccl_tuner.conf",
                         fmt::format("# measured: {} x {}, NCCL {}\n{}", table.gpus, table.device,
                                     table.nccl, planning::TunerRulesText(rules)));
}

void Print(const planning::CommTable& table, const std::vector<planning::CommDecision>& decisions,
           size_t rules, const std::string& out) {
  fmt::print("{} x {}, NCCL {} (measured)\n", table.gpus, Printable(table.device),
             Printable(table.nccl));
  for (const std::string& note : table.notes) fmt::print("note: {}\n", Printable(note));
  fmt::print("{}", planning::TextOf(decisions));
  fmt::print("{} rules\n", rules);
  if (out.empty()) return;
  const Path folder = std::filesystem::absolute(out).lexically_normal();
  fmt::print("use them: NCCL_TUNER_PLUGIN={} NCCL_TUNER_CONFIG_FILE={}\n",
             (folder / kPlugin).string(), (folder / "nccl_tuner.conf").string());
}

Result<int> TuneComm(const CommFlags& flags, const Context& context) {
  ATUNNER_TRY(const Path plugin, PluginFile());
  const bool quiet = context.common.quiet || context.common.json;
  ATUNNER_TRY(const planning::CommTable table, TableOf(flags, plugin, quiet));
  ATUNNER_TRY(const auto decisions, planning::ChooseComm(table));
  const auto rules = planning::RulesOf(decisions, table.gpus);
  if (!flags.out.empty()) ATUNNER_RETURN_IF_ERROR(Write(flags.out, table, plugin, rules));
  if (!context.common.json) {
    Print(table, decisions, rules.size(), flags.out);
    return 0;
  }
  Json json{{"device", table.device},
            {"nccl", table.nccl},
            {"gpus", table.gpus},
            {"notes", table.notes},
            {"decisions", Json::array()}};
  for (const auto& decision : decisions) json["decisions"].push_back(planning::ToJson(decision));
  json["rules"] = planning::TunerRulesText(rules);
  PrintJson(json);
  return 0;
}

}  // namespace

void AddComm(VerbList& verbs) {
  const auto flags = std::make_shared<CommFlags>();
  CLI::App* verb = verbs.Add("comm", "tune: rules by which NCCL's collectives run fastest",
                             [flags](const Context& c) { return TuneComm(*flags, c); });
  verb->footer(
      "atunner comm tune --gpus 2 --out tuned/\n"
      "atunner comm tune --from tuned/table.json --out again/    # without a GPU\n"
      "Then run programs with NCCL_TUNER_PLUGIN=…/libatunner_nccl.so and\n"
      "NCCL_TUNER_CONFIG_FILE=…/nccl_tuner.conf. NVLink multicast (NVLS) is not measured.");
  verb->add_option("what", flags->what, "tune")->required()->check(CLI::IsMember({"tune"}));
  verb->add_option("--gpus", flags->gpus, "GPUs of this machine, 2 to 16");
  verb->add_option("--from", flags->from, "choose from a table that was measured before");
  verb->add_option("--out", flags->out,
                   "folder for table.json, nccl_tuner.conf and libatunner_nccl.so");
  verb->add_option("--collective", flags->collectives,
                   "allreduce, allgather, reducescatter; all three without it");
  verb->add_option("--smallest", flags->smallest, "bytes; sizes double from here")
      ->check(Positive());
  verb->add_option("--largest", flags->largest, "bytes")->check(Positive());
  verb->add_option("--seconds", flags->seconds, "of measuring, at most")->check(Positive());
  verb->add_option("--nccl", flags->nccl,
                   "libnccl.so.2 to measure; by default that of CUDA or pip");
}

}  // namespace atunner::cli
