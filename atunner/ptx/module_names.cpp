#include "atunner/ptx/module_names.h"

#include <algorithm>

namespace atunner::ptx {

Status ModuleNames::Add(const std::string& name, const ModuleName& as) {
  const auto [known, added] = names_.try_emplace(name, as);
  if (added) return {};
  ModuleName& was = known->second;
  if (was.function != as.function)
    return tokens_.Bad("'" + name + "' is a function and a variable");
  if (was.defined && (as.defined || as.function))
    return tokens_.Bad("'" + name + "' is defined twice");
  const bool sized = was.bytes != 0 && as.bytes != 0;
  if (was.type != as.type || (sized && was.bytes != as.bytes))
    return tokens_.Bad("'" + name + "' has another type elsewhere");
  const bool foreign = was.is_extern && as.defined;
  if (foreign && (as.function || !as.visible))
    return tokens_.Bad("'" + name + "' is declared .extern, and defined in this module");
  was.defined |= as.defined;
  was.bytes = std::max(was.bytes, as.bytes);
  return {};
}

const ModuleName* ModuleNames::Find(const std::string& name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? nullptr : &at->second;
}

Status ModuleNames::AddParameters(const Function& function) {
  std::vector<uint64_t> bytes;
  for (const Variable& parameter : function.params) bytes.push_back(parameter.bytes);
  const auto [known, added] = parameter_bytes_.try_emplace(function.name, bytes);
  if (!added && known->second != bytes)
    return tokens_.Bad("'" + function.name + "' has other parameters elsewhere");
  return {};
}

const std::vector<uint64_t>* ModuleNames::ParameterBytes(const std::string& function) const {
  const auto at = parameter_bytes_.find(function);
  return at == parameter_bytes_.end() ? nullptr : &at->second;
}

}  // namespace atunner::ptx
