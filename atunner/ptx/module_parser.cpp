// Modules: the directives, variables and functions of a text.
#include <algorithm>
#include <cstdlib>

#include "atunner/ptx/function_parser.h"

namespace atunner::ptx {
namespace {

constexpr std::string_view kArchitectures[] = {
    "sm_10",   "sm_11",   "sm_12",  "sm_13",   "sm_20",   "sm_21",  "sm_30",   "sm_32",   "sm_35",
    "sm_37",   "sm_50",   "sm_52",  "sm_53",   "sm_60",   "sm_61",  "sm_62",   "sm_70",   "sm_72",
    "sm_75",   "sm_80",   "sm_86",  "sm_87",   "sm_88",   "sm_89",  "sm_90",   "sm_90a",  "sm_100",
    "sm_100a", "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103", "sm_103a", "sm_103f", "sm_110",
    "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f"};

}  // namespace

/// Names are resolved while they are read, labels at the end of each function.
class ModuleParser {
 public:
  explicit ModuleParser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)),
        names_(tokens_),
        variables_(tokens_),
        functions_(tokens_, names_, variables_) {}

  Result<ValidModule> Run() {
    while (!tokens_.End()) {
      ATUNNER_RETURN_IF_ERROR(TopLevel());
    }
    if (module_.target_.empty()) return Invalid("there is no .target: this is not PTX", "PTX");
    std::ranges::copy(functions_.statics().globals, std::back_inserter(module_.globals_));
    std::ranges::copy(functions_.statics().constants, std::back_inserter(module_.constants_));
    return std::move(module_);
  }

 private:
  Status TopLevel();
  Linkage ReadLinkage();
  Status AddressSize();
  Status Target();
  Status File();
  Status SkipBraces();
  Status ParseVariable(Linkage linkage);
  void AddShared(Variable variable, Linkage linkage);
  Status ParseFunction(Linkage linkage);

  TokenStream tokens_;
  ModuleNames names_;
  VariableParser variables_;
  FunctionParser functions_;
  ValidModule module_;
  ModuleShared shared_;
};

Status ModuleParser::TopLevel() {
  const std::string_view word = tokens_.Peek();
  if (word == ".version") return tokens_.Skip(2), Status{};
  if (word == ".address_size") return AddressSize();
  if (word == ".target") return Target();
  if (word == ".file") return File();
  if (word == ".section") return SkipBraces();
  if (word == ".pragma" || word == ".alias") return tokens_.SkipPast(";"), Status{};
  const Linkage linkage = ReadLinkage();
  const std::string_view kind = tokens_.Peek();
  if (kind == ".entry" || kind == ".func") return ParseFunction(linkage);
  if (kind == ".global" || kind == ".const" || kind == ".shared") return ParseVariable(linkage);
  if (kind == ".alias") return tokens_.SkipPast(";"), Status{};
  return tokens_.Bad("unexpected '" + std::string(kind) + "'");
}

Linkage ModuleParser::ReadLinkage() {
  Linkage linkage;
  for (std::string_view word = tokens_.Peek();
       word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
       word = tokens_.Peek())
    linkage = {.is_extern = tokens_.Next() == ".extern", .visible = true};
  return linkage;
}

Status ModuleParser::AddressSize() {
  tokens_.Next();
  return tokens_.Next() == "64" ? Status{} : tokens_.Bad("addresses of 32 bits are not supported");
}

Status ModuleParser::Target() {
  tokens_.Next();
  const std::string_view target = tokens_.Peek();
  if (std::ranges::find(kArchitectures, target) == std::end(kArchitectures))
    return tokens_.Bad("'.target " + std::string(target) +
                       "': there is no such architecture; known ones are " +
                       std::string(kArchitectures[0]) + " to " +
                       std::string(*std::prev(std::end(kArchitectures))));
  module_.target_ = std::string(tokens_.Next());
  while (tokens_.Accept(",")) tokens_.Next();
  return {};
}

Status ModuleParser::File() {
  tokens_.Next();
  const std::string number(tokens_.Next());
  const auto index = static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 10));
  std::string_view name = tokens_.Next();
  if (name.size() >= 2) name = name.substr(1, name.size() - 2);
  module_.files_[index] = std::string(name);
  while (tokens_.Accept(",")) tokens_.Next();
  return {};
}

Status ModuleParser::SkipBraces() {
  while (!tokens_.End() && tokens_.Peek() != "{") tokens_.Next();
  int depth = 0;
  do {
    const std::string_view token = tokens_.Next();
    depth += token == "{" ? 1 : token == "}" ? -1 : 0;
  } while (depth > 0 && !tokens_.End());
  return {};
}

Status ModuleParser::ParseVariable(Linkage linkage) {
  const std::string space(tokens_.Next());
  ATUNNER_TRY(Variable variable, variables_.Declaration());
  const ModuleName name{.defined = !linkage.is_extern,
                        .is_extern = linkage.is_extern,
                        .visible = linkage.visible,
                        .type = variable.type,
                        .bytes = variable.bytes};
  ATUNNER_RETURN_IF_ERROR(variables_.Finish(variable));
  const ModuleName* known = names_.Find(variable.name);
  const bool declared = known != nullptr;
  const bool defined = declared && known->defined;
  ATUNNER_RETURN_IF_ERROR(names_.Add(variable.name, name));
  if (linkage.is_extern && defined) return {};
  if (space == ".shared") return AddShared(std::move(variable), linkage), Status{};
  std::vector<Variable>& list = space == ".const" ? module_.constants_ : module_.globals_;
  if (declared)
    std::erase_if(list, [&](const Variable& before) { return before.name == variable.name; });
  list.push_back(std::move(variable));
  return {};
}

void ModuleParser::AddShared(Variable variable, Linkage linkage) {
  if (variable.bytes == 0 || linkage.is_extern) {
    shared_.dynamic.push_back(variable.name);
    shared_.dynamic_align = std::max(shared_.dynamic_align, variable.align);
  } else {
    shared_.variables.push_back(std::move(variable));
  }
}

Status ModuleParser::ParseFunction(Linkage linkage) {
  ATUNNER_TRY(std::optional<Function> function, functions_.Parse(shared_, linkage));
  if (function) module_.functions_.push_back(*std::move(function));
  return {};
}

Result<ValidModule> Parse(std::string_view text) {
  ATUNNER_TRY(std::vector<Token> tokens, Tokens(text));
  return ModuleParser(std::move(tokens)).Run();
}

}  // namespace atunner::ptx
