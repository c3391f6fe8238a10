// `knowledge`: the handbook, the user's documents and the rules.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/knowledge/document_index.h"
#include "atunner/knowledge/rule.h"
#include "faces/cli/flows/flow_verbs.h"
#include "faces/cli/output/render.h"
#include "faces/wiring/flows.h"

namespace atunner::cli {
namespace {

struct KnowledgeFlags {
  std::string action;
  std::vector<std::string> words;
  size_t most = 5;
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Result<int> Search(const KnowledgeFlags& flags, const Context& context,
                   knowledge::DocumentIndex& index) {
  if (flags.words.empty()) return Invalid("nothing to search for", "", "give some words");
  ATUNNER_TRY(const auto found, index.Search(Joined(flags.words), flags.most));
  Json json = Json::array();
  for (const knowledge::Found& one : found) {
    if (context.common.json)
      json.push_back({{"document", one.document},
                      {"heading", one.heading},
                      {"text", one.text},
                      {"score", one.score}});
    else
      fmt::print("{}",
                 Printable(fmt::format("--- {} ({})\n{}\n", one.heading, one.document, one.text)));
  }
  if (context.common.json) PrintJson(json);
  if (!context.common.json && found.empty()) fmt::print("nothing was found\n");
  return found.empty() ? 1 : 0;
}

Result<int> Add(const KnowledgeFlags& flags, const Context& context,
                knowledge::DocumentIndex& index) {
  if (flags.words.empty()) return Invalid("nothing to add", "", "name a folder or a file");
  int64_t documents = 0;
  for (const std::string& path : flags.words) {
    ATUNNER_TRY(const int64_t added, index.Add(path));
    documents += added;
  }
  if (context.common.json)
    PrintJson({{"documents", documents}});
  else
    fmt::print("{} documents\n", documents);
  return 0;
}

Result<int> List(const Context& context, knowledge::DocumentIndex& index) {
  ATUNNER_TRY(const auto documents, index.Documents());
  Json json{{"documents", Json::array()}, {"rules", Json::array()}};
  for (const knowledge::Document& one : documents) {
    json["documents"].push_back(
        {{"document", one.name}, {"chunks", one.chunks}, {"bytes", one.bytes}});
    if (!context.common.json)
      fmt::print("{}", Printable(fmt::format("{:>4} pieces {:>8} bytes  {}\n", one.chunks,
                                             one.bytes, one.name)));
  }
  for (const knowledge::Rule& rule : knowledge::Rules()) {
    json["rules"].push_back(ToJson(rule));
    if (!context.common.json)
      fmt::print("rule {:<24} {} (against {}; handbook/{})\n", rule.id, rule.idea, rule.when,
                 rule.page);
  }
  if (context.common.json) PrintJson(json);
  return 0;
}

Result<int> Knowledge(const KnowledgeFlags& flags, const Context& context) {
  ATUNNER_TRY(const auto index, OpenKnowledge());
  if (flags.action == "search") return Search(flags, context, *index);
  if (flags.action == "add") return Add(flags, context, *index);
  if (flags.action == "list") return List(context, *index);
  ATUNNER_TRY(const Json all, index->Export());
  PrintJson(all);
  return 0;
}

}  // namespace

void AddKnowledge(VerbList& verbs) {
  const auto flags = std::make_shared<KnowledgeFlags>();
  CLI::App* verb = verbs.Add("knowledge", "the handbook, your documents, and the rules for ideas",
                             [flags](const Context& c) { return Knowledge(*flags, c); });
  verb->add_option("action", flags->action, "search, add, list or export")
      ->required()
      ->check(CLI::IsMember({"search", "add", "list", "export"}));
  verb->add_option("words", flags->words, "search: words; add: folders or files");
  verb->add_option("--most", flags->most, "search: how many pieces");
}

}  // namespace atunner::cli
