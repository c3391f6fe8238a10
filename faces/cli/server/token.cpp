// `token`: who may use a server. Works on the server's folder, so it needs no running server.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/platform/access.h"
#include "faces/cli/output/render.h"
#include "faces/cli/server/server_flags.h"
#include "faces/cli/server/server_verbs.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/serve/serve.h"

namespace atunner::cli {
namespace {

struct TokenFlags {
  std::string action;
  std::string id;
  std::string name;
  std::string scopes = "submit,read";
  std::string expires;
  std::string data;
};

Json TokenJson(const platform::Token& token) {
  return {{"id", token.id},
          {"name", token.name},
          {"scopes", platform::ScopeNames(token.scopes)},
          {"created", token.created},
          {"expires", token.expires},
          {"last_used", token.last_used}};
}

/// "30d" to 30.
Result<std::optional<int>> DaysOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t digits = text.find_first_not_of("0123456789");
  const bool days = digits > 0 && digits <= 5 && text.substr(std::min(digits, text.size())) == "d";
  const int count = days ? std::stoi(text.substr(0, digits)) : 0;
  if (count < 1 || count > 36500)
    return Invalid("'" + text + "' is no number of days", "--expires", "for example 30d");
  return count;
}

Result<int> CreateToken(const TokenFlags& flags, platform::Tokens& tokens, bool json) {
  const auto scopes = platform::ParseScopes(flags.scopes);
  if (!scopes) return Invalid(scopes.error().what, "--scope", scopes.error().hint);
  ATUNNER_TRY(const std::optional<int> days, DaysOf(flags.expires));
  if (flags.name.empty()) return Invalid("a token needs a name", "--name", "--name ci");
  ATUNNER_TRY(const platform::NewToken made, tokens.Create(flags.name, *scopes, days));
  if (json) {
    Json shown = TokenJson(made.token);
    shown["token"] = made.secret;
    PrintJson(shown);
  } else {
    fmt::print("{}\n", made.secret);
    fmt::print(stderr, "token {} ({}, {}): it is shown this once; put it into $ATUNNER_TOKEN\n",
               made.token.id, flags.name, flags.scopes);
  }
  return 0;
}

Result<int> ListTokens(platform::Tokens& tokens, bool json) {
  ATUNNER_TRY(const std::vector<platform::Token> all, tokens.List());
  Json list = Json::array();
  for (const platform::Token& token : all) {
    list.push_back(TokenJson(token));
    if (!json)
      fmt::print("{:<16} {:<20} {:<24} expires {:<22} last used {}\n", token.id,
                 Printable(token.name),
                 fmt::format("{}", fmt::join(platform::ScopeNames(token.scopes), ",")),
                 token.expires.empty() ? "never" : token.expires,
                 token.last_used.empty() ? "never" : token.last_used);
  }
  if (json) PrintJson(list);
  if (!json && all.empty()) fmt::print("no tokens\n");
  return 0;
}

Result<int> RunToken(const TokenFlags& flags, const Context& context) {
  const Path data = flags.data.empty() ? serve::DataFolder(StoreFile(context.common))
                                       : Path(flags.data);
  ATUNNER_TRY(const auto tokens, platform::Tokens::Open(data / "tokens.db"));
  if (flags.action == "create") return CreateToken(flags, *tokens, context.common.json);
  if (flags.action == "list") return ListTokens(*tokens, context.common.json);
  if (flags.id.empty())
    return Invalid("which token?", "token revoke", "give the id or the name of `token list`");
  ATUNNER_TRY(const int revoked, tokens->Revoke(flags.id));
  if (context.common.json)
    PrintJson({{"revoked", revoked}});
  else
    fmt::print("revoked {}\n", revoked);
  return 0;
}

}  // namespace

void AddToken(VerbList& verbs) {
  const auto flags = std::make_shared<TokenFlags>();
  CLI::App* verb = verbs.Add("token", "make, list and revoke the tokens of a server",
                             [flags](const Context& c) { return RunToken(*flags, c); });
  verb->add_option("action", flags->action, "create, list or revoke")
      ->required()
      ->check(CLI::IsMember({"create", "list", "revoke"}));
  verb->add_option("token", flags->id, "revoke: its id or name");
  verb->add_option("--name", flags->name, "create: what lists and logs call it");
  verb->add_option("--scope", flags->scopes, "create: of read, submit, work and admin")
      ->capture_default_str();
  verb->add_option("--expires", flags->expires, "create: days, as 30d; else it never expires");
  verb->add_option("--data", flags->data, "the server's folder; else STORE.serve");
}

}  // namespace atunner::cli
