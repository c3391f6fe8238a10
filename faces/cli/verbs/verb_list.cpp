#include "faces/cli/verbs/verb_list.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "atunner/base/closest_name.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/render.h"

namespace atunner::cli {
namespace {

constexpr int kWrongUse = 2;

std::string CommandLine(int argc, char** argv) {
  std::string text = "atunner";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

/// Takes what stands behind `--`, a program's command line, away from the arguments. Returns how
/// many arguments are left.
int TakeProgram(int argc, char** argv, std::vector<std::string>& program) {
  char** const end = argv + argc;
  char** const dashes = std::find_if(
      argv, end, [](const char* text) { return std::string_view(text) == "--"; });
  if (dashes != end) program.assign(dashes + 1, end);
  return static_cast<int>(dashes - argv);
}

/// True if the verb takes its other defaults from elsewhere: an artifact, or a test's own plan.
bool HasOwnDefaults(const CLI::App& verb) {
  static constexpr std::string_view kVerbs[] = {"verify", "search-bench", "test"};
  return std::ranges::find(kVerbs, verb.get_name()) != std::end(kVerbs);
}

/// The option of a verb that a setting is the default of; nullptr where the verb has none, or where
/// the setting is built in.
CLI::Option* OptionOf(CLI::App& verb, const jobs::Setting& setting) {
  if (setting.built_in || (HasOwnDefaults(verb) && setting.key != "store")) return nullptr;
  std::string flag = "--" + setting.key;
  std::ranges::replace(flag, '_', '-');
  return verb.get_option_no_throw(flag);
}

std::vector<CLI::Option*> SetBySettings(CLI::App& verb,
                                        const Result<std::vector<jobs::Setting>>& settings) {
  std::vector<CLI::Option*> options;
  if (!settings) return options;
  for (const jobs::Setting& setting : *settings) {
    if (CLI::Option* option = OptionOf(verb, setting)) options.push_back(option);
  }
  return options;
}

void AddCommon(CLI::App* verb, Common& common) {
  verb->add_flag("--json", common.json, "one JSON object on standard output");
  verb->add_flag("--quiet", common.quiet, "no progress");
  verb->add_flag("--explain", common.explain, "say why, decision by decision");
  verb->add_option("--store", common.store, "file that remembers runs and trials");
}

}  // namespace

VerbList::VerbList()
    : app_(
          "atunner: give it an operator, get back a faster kernel for your GPU, verified, with the "
          "evidence"),
      settings_(jobs::LoadSettings(jobs::SettingSources::OfThisProcess())) {
  app_.set_version_flag("--version", "atunner " ATUNNER_VERSION);
  app_.require_subcommand(1);
}

CLI::App* VerbList::Add(const char* name, const char* meaning, Run run) {
  CLI::App* verb = app_.add_subcommand(name, meaning);
  AddCommon(verb, context_.common);
  verbs_.emplace_back(verb, std::move(run));
  return verb;
}

int VerbList::Execute(int argc, char** argv) {
  context_.command = CommandLine(argc, argv);
  constexpr std::array<std::string_view, 6> kWithPrograms = {
      "sanitize", "capture", "predict", "hardware-optimize", "apply", "memory"};
  if (argc > 1 && std::ranges::find(kWithPrograms, argv[1]) != kWithPrograms.end())
    argc = TakeProgram(argc, argv, context_.program);
  Relax();
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Refuse(error, argc, argv);
  }
  for (const auto& [verb, run] : verbs_) {
    if (*verb) return Finish(RunVerb(*verb, run));
  }
  return kWrongUse;  // not reached: a verb is required
}

void VerbList::Relax() {
  for (const auto& [verb, run] : verbs_) {
    for (CLI::Option* option : SetBySettings(*verb, settings_)) option->required(false);
  }
}

Status VerbList::ApplySettings(CLI::App& verb) const {
  for (const jobs::Setting& setting : *settings_) {
    CLI::Option* option = OptionOf(verb, setting);
    if (option == nullptr || option->count() > 0) continue;
    try {
      option->add_result(setting.value);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      return Invalid(error.what(), setting.source);
    }
  }
  return {};
}

Result<int> VerbList::RunVerb(CLI::App& verb, const Run& run) {
  if (!settings_) return std::unexpected(settings_.error());
  ATUNNER_RETURN_IF_ERROR(ApplySettings(verb));
  return run(context_);
}

int VerbList::Refuse(const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app_.exit(error);  // --help
  if (app_.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') return Unknown(argv[1]);
  std::fprintf(stderr, "atunner: %s\n  hint: `atunner --help` or `atunner VERB --help`\n",
               error.what());
  return kWrongUse;
}

int VerbList::Unknown(const std::string& verb) const {
  std::vector<std::string> names;
  for (const auto& [each, run] : verbs_) names.push_back(each->get_name());
  const std::string near = ClosestName(verb, names);
  std::fprintf(
      stderr, "atunner: unknown verb '%s'\n  hint: %s\n", verb.c_str(),
      near.empty() ? "`atunner --help` lists them" : ("did you mean '" + near + "'?").c_str());
  return kWrongUse;
}

int VerbList::Finish(const Result<int>& result) const {
  if (result) return *result;
  const Error error = WithFlags(result.error());
  if (context_.common.json) {
    const Json json{{"error",
                     {{"code", Name(error.code)},
                      {"what", error.what},
                      {"where", error.where},
                      {"hint", error.hint}}}};
    PrintJson(json);
  } else {
    std::fprintf(stderr, "atunner: %s\n", Printable(error.ToString()).c_str());
  }
  return ExitCode(error.code);
}

}  // namespace atunner::cli
