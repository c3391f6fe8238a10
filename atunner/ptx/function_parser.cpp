#include "atunner/ptx/function_parser.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace atunner::ptx {

Result<std::optional<Function>> FunctionParser::Parse(const ModuleShared& shared, Linkage linkage) {
  Function function;
  ATUNNER_RETURN_IF_ERROR(Head(function));
  ATUNNER_RETURN_IF_ERROR(module_names_.AddParameters(function));
  const bool declared = tokens_.Accept(";");
  ATUNNER_RETURN_IF_ERROR(module_names_.Add(
      function.name, {.function = true, .defined = !declared, .is_extern = linkage.is_extern}));
  if (declared) return std::nullopt;
  if (!tokens_.Accept("{")) return tokens_.Bad("expected '{'");
  ATUNNER_RETURN_IF_ERROR(Body(function, shared));
  return std::optional(std::move(function));
}

Status FunctionParser::Head(Function& function) {
  function.is_entry = tokens_.Next() == ".entry";
  register_parameters_.Reset();
  if (tokens_.Accept("(")) {
    uint64_t bytes = 0;
    ATUNNER_RETURN_IF_ERROR(Parameters(function.returns, bytes));
    register_parameters_.MarkResults();
  }
  function.name = std::string(tokens_.Next());
  if (tokens_.Accept("("))
    ATUNNER_RETURN_IF_ERROR(Parameters(function.params, function.param_bytes));
  Directives(function);
  return {};
}

Status FunctionParser::Parameters(std::vector<Variable>& list, uint64_t& bytes) {
  while (!tokens_.Accept(")")) {
    const std::string_view space = tokens_.Next();
    if (space != ".param" && space != ".reg") return tokens_.Bad("expected '.param'");
    ATUNNER_TRY(Variable variable, variables_.Declaration());
    if (space == ".reg") register_parameters_.Add(variable);
    Place(variable, bytes);
    list.push_back(std::move(variable));
    tokens_.Accept(",");
    if (tokens_.End()) return tokens_.Bad("parameter list without end");
  }
  return {};
}

void FunctionParser::Directives(Function& function) {
  while (tokens_.Peek().starts_with('.')) {
    const std::string_view directive = tokens_.Next();
    std::array<uint32_t, 3> extents = {1, 1, 1};
    size_t count = 0;
    while (!tokens_.End() && tokens_.Peek() != "{" && tokens_.Peek() != ";" &&
           !tokens_.Peek().starts_with('.')) {
      const std::string token(tokens_.Next());
      if (std::isdigit(static_cast<unsigned char>(token[0])) && count < extents.size())
        extents[count++] = static_cast<uint32_t>(std::strtoul(token.c_str(), nullptr, 0));
    }
    if (directive == ".reqntid") function.required_threads = extents[0] * extents[1] * extents[2];
    if (directive == ".reqnctapercluster") function.required_cluster = extents;
  }
}

namespace {

void CollectNames(const std::vector<Operand>& operands, std::set<std::string_view>& names) {
  for (const Operand& operand : operands) {
    names.insert(operand.name);
    CollectNames(operand.elements, names);
  }
}

/// A function has those of the module's shared variables, its first `count`, that it names: ptxas
/// allocates no others.
void KeepNamedShared(Function& function, size_t count) {
  if (count == 0) return;
  std::set<std::string_view> named;
  for (const Instruction& instruction : function.body) CollectNames(instruction.operands, named);
  std::vector<Variable> kept;
  for (size_t i = 0; i < function.shared.size(); ++i) {
    if (i >= count || named.contains(function.shared[i].name)) kept.push_back(function.shared[i]);
  }
  function.shared = std::move(kept);
  function.shared_bytes = 0;
  for (Variable& variable : function.shared) Place(variable, function.shared_bytes);
}

}  // namespace

Status FunctionParser::Body(Function& function, const ModuleShared& shared) {
  function.shared = shared.variables;
  for (Variable& variable : function.shared) Place(variable, function.shared_bytes);
  function.extern_shared = shared.dynamic;
  function.extern_shared_align = std::max<uint32_t>(16, shared.dynamic_align);
  names_.Reset();
  for (const auto* list : {&function.returns, &function.params}) {
    for (const Variable& parameter : *list) ATUNNER_RETURN_IF_ERROR(names_.Declare(parameter.name));
  }
  ATUNNER_RETURN_IF_ERROR(register_parameters_.Load(function));
  BodyParser body(tokens_, module_names_, names_, variables_, register_parameters_, statics_);
  ATUNNER_RETURN_IF_ERROR(body.Parse(function));
  register_parameters_.StoreResults(function, Instruction{});
  KeepNamedShared(function, shared.variables.size());
  return names_.ResolveLabels(function);
}

}  // namespace atunner::ptx
