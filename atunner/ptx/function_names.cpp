#include "atunner/ptx/function_names.h"

namespace atunner::ptx {
namespace {
constexpr std::string_view kElements = "xyzw";
constexpr std::string_view kColours = "rgba";  // other names of the same elements
}  // namespace

void FunctionNames::Reset() {
  scope_ = 0;
  scope_parents_.assign(1, 0);
  hidden_.clear();
  hidden_starts_.clear();
  renamed_.clear();
  registers_.clear();
  register_scopes_.clear();
  declared_.clear();
  vectors_.clear();
}

void FunctionNames::OpenScope() {
  scope_parents_.push_back(scope_);
  scope_ = static_cast<uint32_t>(scope_parents_.size() - 1);
  hidden_starts_.push_back(hidden_.size());
}

void FunctionNames::CloseScope() {
  for (size_t i = hidden_.size(); i > hidden_starts_.back(); --i) {
    const Hidden& hidden = hidden_[i - 1];
    if (hidden.is_register && hidden.reg >= 0) registers_[hidden.name] = hidden.reg;
    if (!hidden.is_register && hidden.variable.empty()) renamed_.erase(hidden.name);
    if (!hidden.is_register && !hidden.variable.empty()) renamed_[hidden.name] = hidden.variable;
  }
  hidden_.resize(hidden_starts_.back());
  hidden_starts_.pop_back();
  scope_ = scope_parents_[scope_];
}

bool FunctionNames::IsRegisterOfScope(const std::string& name) const {
  const auto known = registers_.find(name);
  return known != registers_.end() &&
         register_scopes_[static_cast<size_t>(known->second)] == scope_;
}

Status FunctionNames::DefineRegister(Function& function, std::string name, Type type) {
  if (IsRegisterOfScope(name) || declared_.contains(Label(name)))
    return tokens_.Bad("'" + name + "' is declared twice");
  if (scope_ != 0) hidden_.push_back({name, FindRegister(name), true, {}});
  registers_[name] = static_cast<int>(function.registers.size());
  register_scopes_.push_back(scope_);
  function.registers.push_back({std::move(name), type});
  return {};
}

Status FunctionNames::DefineVector(Function& function, const std::string& name, Type type,
                                   int lanes) {
  if (lanes == 1) return DefineRegister(function, name, type);
  vectors_[name] = lanes;
  for (size_t i = 0; i < static_cast<size_t>(lanes); ++i) {
    ATUNNER_RETURN_IF_ERROR(DefineRegister(function, name + "." + kElements[i], type));
    registers_[name + "." + kColours[i]] = static_cast<int>(function.registers.size()) - 1;
  }
  return {};
}

int FunctionNames::FindRegister(std::string_view name) const {
  const auto at = registers_.find(std::string(name));
  return at == registers_.end() ? -1 : at->second;
}

std::optional<Operand> FunctionNames::VectorRegister(std::string_view name) const {
  const auto vector = vectors_.find(std::string(name));
  if (vector == vectors_.end()) return std::nullopt;
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  for (size_t i = 0; i < static_cast<size_t>(vector->second); ++i) {
    operand.elements.emplace_back();
    operand.elements.back().kind = Operand::Kind::kRegister;
    operand.elements.back().reg = registers_.at(std::string(name) + "." + kElements[i]);
  }
  return operand;
}

Status FunctionNames::Declare(const std::string& name) {
  if (IsRegisterOfScope(name) || !declared_.insert(Label(name)).second)
    return tokens_.Bad("'" + name + "' is declared twice");
  return {};
}

void FunctionNames::Rename(std::string& name, const std::string& owner) {
  const auto known = renamed_.find(name);
  hidden_.push_back({name, -1, false, known == renamed_.end() ? "" : known->second});
  std::string unique = InScope(owner.empty() ? name : name + "#" + owner, scope_);
  renamed_[name] = unique;
  name = std::move(unique);
}

std::string FunctionNames::Renamed(std::string_view name) const {
  if (renamed_.empty()) return std::string(name);
  const auto at = renamed_.find(std::string(name));
  return at == renamed_.end() ? std::string(name) : at->second;
}

std::string FunctionNames::InScope(const std::string& label, uint32_t scope) {
  return scope == 0 ? label : label + "#" + std::to_string(scope);
}

void FunctionNames::NoteBranch(size_t index) {
  if (scope_ != 0) branches_.emplace_back(index, scope_);
}

void FunctionNames::NoteBranchList(const std::string& list) {
  if (scope_ != 0) branch_lists_.emplace_back(list, scope_);
}

template <class Map>
std::string FunctionNames::Nearest(const std::string& name, uint32_t scope,
                                   const Map& known) const {
  while (scope != 0 && !known.contains(InScope(name, scope))) scope = scope_parents_[scope];
  return InScope(name, scope);
}

void FunctionNames::ResolveBranches(Function& function) {
  for (const auto& [index, scope] : branches_) {
    Instruction& branch = function.body[index];
    if (branch.opcode == "brx") {
      std::string& list = branch.operands[1].name;
      list = Nearest(list, scope, function.branch_targets);
    } else {
      std::string& label = branch.operands[0].name;
      label = Nearest(label, scope, function.labels);
    }
  }
  branches_.clear();
  for (const auto& [list, scope] : branch_lists_) {
    for (std::string& target : function.branch_targets[list])
      target = Nearest(target, scope, function.labels);
  }
  branch_lists_.clear();
}

Status FunctionNames::ResolveLabels(Function& function) {
  ResolveBranches(function);
  for (const Instruction& branch : function.body) {
    if (branch.opcode != "bra") continue;
    if (branch.operands.size() != 1 || !function.labels.contains(branch.operands[0].name))
      return TokenStream::BadAt(branch.line, "branch to an unknown label");
  }
  return {};
}

}  // namespace atunner::ptx
