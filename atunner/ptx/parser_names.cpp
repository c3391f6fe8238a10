// Names of a module and of a function: what is declared where, and what is declared twice.
#include <algorithm>

#include "atunner/ptx/parser.h"

namespace atunner::ptx {

Status Parser::AddName(const std::string& name, const ModuleName& as) {
  const auto [known, added] = module_names_.try_emplace(name, as);
  if (added) return {};
  ModuleName& was = known->second;
  if (was.function != as.function) return Bad("'" + name + "' is a function and a variable");
  if (was.defined && (as.defined || as.function)) return Bad("'" + name + "' is defined twice");
  const bool sized = was.bytes != 0 && as.bytes != 0;
  if (was.type != as.type || (sized && was.bytes != as.bytes))
    return Bad("'" + name + "' has another type elsewhere");
  const bool foreign = was.of_extern && as.defined;
  if (foreign && (as.function || !linked_))
    return Bad("'" + name + "' is another module's, and defined in this one");
  was.defined |= as.defined;
  was.bytes = std::max(was.bytes, as.bytes);
  return {};
}

Status Parser::Define(Function& function, std::string name, Type type) {
  const auto known = registers_.find(name);
  const bool again = known != registers_.end() &&
                     register_scopes_[static_cast<size_t>(known->second)] == scope_;
  if (again || declared_.contains(InScope(name, scope_)))
    return Bad("'" + name + "' is declared twice");
  if (scope_ != 0)
    undo_.push_back({name, known == registers_.end() ? -1 : known->second, true, {}});
  registers_[name] = static_cast<int>(function.registers.size());
  register_scopes_.push_back(scope_);
  function.registers.push_back({std::move(name), type});
  return {};
}

Status Parser::Declare(const std::string& name) {
  const auto known = registers_.find(name);
  const bool again = known != registers_.end() &&
                     register_scopes_[static_cast<size_t>(known->second)] == scope_;
  if (again || !declared_.insert(InScope(name, scope_)).second)
    return Bad("'" + name + "' is declared twice");
  return {};
}

void Parser::StartScopes() {
  scope_ = 0;
  scope_parents_.assign(1, 0);
  undo_.clear();
  undo_starts_.clear();
  renamed_.clear();
  registers_.clear();
  register_scopes_.clear();
  declared_.clear();
  vectors_.clear();
}

void Parser::OpenScope() {
  scope_parents_.push_back(scope_);
  scope_ = static_cast<uint32_t>(scope_parents_.size() - 1);
  undo_starts_.push_back(undo_.size());
}

void Parser::CloseScope() {
  for (size_t i = undo_.size(); i > undo_starts_.back(); --i) {
    const Hidden& hidden = undo_[i - 1];
    if (hidden.is_register && hidden.reg >= 0) registers_[hidden.name] = hidden.reg;
    if (!hidden.is_register && hidden.variable.empty()) renamed_.erase(hidden.name);
    if (!hidden.is_register && !hidden.variable.empty()) renamed_[hidden.name] = hidden.variable;
  }
  undo_.resize(undo_starts_.back());
  undo_starts_.pop_back();
  scope_ = scope_parents_[scope_];
}

void Parser::Rename(std::string& name) {
  const auto known = renamed_.find(name);
  undo_.push_back({name, -1, false, known == renamed_.end() ? "" : known->second});
  std::string unique = name + "#" + std::to_string(scope_);
  renamed_[name] = unique;
  name = std::move(unique);
}

std::string Parser::Renamed(std::string_view name) const {
  if (renamed_.empty()) return std::string(name);
  const auto at = renamed_.find(std::string(name));
  return at == renamed_.end() ? std::string(name) : at->second;
}

std::string Parser::InScope(const std::string& label, uint32_t scope) {
  return scope == 0 ? label : label + "#" + std::to_string(scope);
}

Status Parser::ResolveLabels(Function& function) {
  const auto resolve = [&](std::string& name, uint32_t scope, const auto& known) {
    while (scope != 0 && !known.contains(InScope(name, scope))) scope = scope_parents_[scope];
    name = InScope(name, scope);
  };
  for (const auto& [index, scope] : branches_) {
    Instruction& branch = function.body[index];
    if (branch.opcode == "brx")
      resolve(branch.operands[1].name, scope, function.branch_targets);
    else
      resolve(branch.operands[0].name, scope, function.labels);
  }
  branches_.clear();
  for (const auto& [list, scope] : branch_lists_) {
    for (std::string& target : function.branch_targets[list])
      resolve(target, scope, function.labels);
  }
  branch_lists_.clear();
  for (const Instruction& instruction : function.body) {
    if (instruction.opcode != "bra") continue;
    if (instruction.operands.size() != 1 ||
        !function.labels.contains(instruction.operands[0].name)) {
      return Invalid("branch to an unknown label", "PTX line " + std::to_string(instruction.line));
    }
  }
  return {};
}

}  // namespace atunner::ptx
