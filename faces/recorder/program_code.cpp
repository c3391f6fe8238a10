#include "faces/recorder/program_code.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "atunner/base/demangle.h"
#include "atunner/base/digest.h"
#include "atunner/ptx/module.h"
#include "faces/program/fat_binary.h"

namespace atunner::recorder {
namespace {

/// What nvcc's code gives to the runtime: __fatBinC_Wrapper_t.
struct Wrapper {
  uint32_t magic;
  int version;
  const char* image;
  const char* const* linked;  ///< version 2: the fat binaries that `image` was linked from
};
constexpr uint32_t kWrapperMagic = 0x466243b1;

uint32_t MagicOf(const char* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic;
}

/// End of the last section or header.
size_t BytesOfElf(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  size_t end = std::max(header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize,
                        header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS)
      end = std::max<size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

size_t BytesOfFatBinary(const char* image) {
  uint16_t header = 0;
  uint64_t entries = 0;
  std::memcpy(&header, image + 6, sizeof header);
  std::memcpy(&entries, image + 8, sizeof entries);
  return header + entries;
}

size_t BytesOfImage(const char* image) {
  if (MagicOf(image) == program::kElfMagic) return BytesOfElf(image);
  if (MagicOf(image) == program::kFatBinaryMagic) return BytesOfFatBinary(image);
  return std::strlen(image) + 1;
}

/// A text of printf or assert, which only the module itself can find.
bool IsLiteral(const std::string& name) {
  return name.starts_with('$') || name.starts_with("__unnamed_");
}

/// Adds the names that an operand names.
void AddNames(const ptx::Operand& operand, std::vector<std::string>& names) {
  if (!operand.name.empty()) names.push_back(operand.name);
  for (const ptx::Operand& element : operand.elements) AddNames(element, names);
}

/// Names of functions and variables that a kernel may reach: those that it names, and those that
/// they name.
std::set<std::string> ReachedFrom(const ptx::ValidModule& module, const std::string& kernel) {
  std::set<std::string> reached;
  std::vector<std::string> open{kernel};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!reached.insert(name).second) continue;
    if (const ptx::Function* function = module.Find(name)) {
      for (const ptx::Instruction& instruction : function->body) {
        for (const ptx::Operand& operand : instruction.operands) AddNames(operand, open);
      }
    }
    for (const auto* variables : {&module.globals(), &module.constants()}) {
      const auto variable = std::ranges::find(*variables, name, &ptx::Variable::name);
      if (variable == variables->end()) continue;
      for (const auto& [offset, other] : variable->references) open.push_back(other);
    }
  }
  return reached;
}

bool UsesTextures(const ptx::Function& function) {
  constexpr std::string_view kOpcodes[] = {"tex", "tld4", "txq", "suld", "sust", "sured", "suq"};
  return std::ranges::any_of(function.body, [&](const ptx::Instruction& instruction) {
    return std::ranges::find(kOpcodes, instruction.opcode) != std::end(kOpcodes);
  });
}

}  // namespace

ProgramModule& ProgramCode::NewModule(const void* image) {
  ProgramModule& module = modules_.emplace_back();
  const auto* bytes = static_cast<const char*>(image);
  if (bytes == nullptr) return module;
  if (MagicOf(bytes) == kWrapperMagic) {
    module.image_ = bytes;  // stays in the program
    return module;
  }
  module.copy_.assign(bytes, BytesOfImage(bytes));
  module.image_ = module.copy_.data();
  return module;
}

void ProgramCode::AddModule(Module module, const void* image) {
  ProgramModule& added = NewModule(image);
  added.module = module;
  module_of_[module] = &added;
}

void ProgramCode::AddLibrary(Library library, const void* image) {
  ProgramModule& added = NewModule(image);
  added.library = library;
  module_of_[library] = &added;
}

ProgramKernel& ProgramCode::Add(void* handle, void* module_or_library, const std::string& name) {
  const auto module = module_of_.find(module_or_library);
  ProgramModule* from = module != module_of_.end() ? module->second : &UnknownModule();
  for (ProgramKernel& kernel : kernels_) {
    if (kernel.module == from && kernel.name == name) return *(kernel_of_[handle] = &kernel);
  }
  ProgramKernel& kernel = kernels_.emplace_back();
  kernel.number = kernels_.size() - 1;
  kernel.name = name;
  kernel.readable = Demangled(name);
  kernel.module = from;
  return *(kernel_of_[handle] = &kernel);
}

void ProgramCode::AddFunction(Function function, Module module, const char* name) {
  of_library_.erase(function);
  Add(function, module, name);
}

void ProgramCode::AddKernel(Kernel kernel, Library library, const char* name) {
  of_library_.insert(kernel);
  Add(kernel, library, name);
}

void ProgramCode::AddAlias(void* handle, void* known) {
  if (const auto module = module_of_.find(known); module != module_of_.end())
    module_of_[handle] = module->second;
  if (const auto kernel = kernel_of_.find(known); kernel != kernel_of_.end())
    kernel_of_[handle] = kernel->second;
}

void ProgramCode::Remove(void* module_or_library) {
  const auto found = module_of_.find(module_or_library);
  if (found == module_of_.end()) return;
  ProgramModule* module = found->second;
  module->image_ = nullptr;  // it has been read if one of its kernels was launched
  module->copy_ = {};
  module->library = nullptr;
  module->module = nullptr;
  std::erase_if(module_of_, [&](const auto& item) { return item.second == module; });
  std::erase_if(kernel_of_, [&](const auto& item) { return item.second->module == module; });
}

ProgramModule& ProgramCode::UnknownModule() {
  ProgramModule& module = modules_.emplace_back();
  module.problem = "the program loaded its module in a way that is not known";
  return module;
}

void ProgramCode::LoadNow(void* handle) const {
  if (driver_.cuFuncLoad == nullptr) return;
  auto function = static_cast<Function>(handle);
  if (of_library_.contains(handle) &&
      driver_.cuKernelGetFunction(&function, static_cast<Kernel>(handle)) != cuda::kSuccess)
    return;
  (void)driver_.cuFuncLoad(function);
}

ProgramKernel& ProgramCode::Identify(void* handle) {
  const char* name = nullptr;
  const bool is_function = driver_.cuFuncGetName != nullptr &&
                           driver_.cuFuncGetName(&name, static_cast<Function>(handle)) == 0;
  if (!is_function && driver_.cuKernelGetName != nullptr &&
      driver_.cuKernelGetName(&name, static_cast<Kernel>(handle)) != 0)
    name = nullptr;
  Module module = nullptr;
  Library library = nullptr;
  if (is_function && driver_.cuFuncGetModule != nullptr)
    driver_.cuFuncGetModule(&module, static_cast<Function>(handle));
  else if (driver_.cuKernelGetLibrary != nullptr)
    driver_.cuKernelGetLibrary(&library, static_cast<Kernel>(handle));
  void* from = module != nullptr ? static_cast<void*>(module) : library;
  const std::string known = name != nullptr ? name : "a kernel without a name";
  if (!module_of_.contains(from)) {  // a function of a library's module
    for (ProgramKernel& kernel : kernels_) {
      if (kernel.name == known) return *(kernel_of_[handle] = &kernel);
    }
  }
  if (!is_function) of_library_.insert(handle);
  return Add(handle, from, known);
}

ProgramKernel& ProgramCode::Find(void* handle) {
  const auto found = kernel_of_.find(handle);
  ProgramKernel& kernel = found != kernel_of_.end() ? *found->second : Identify(handle);
  if (!kernel.is_resolved_) Resolve(kernel, handle);
  return kernel;
}

std::vector<ParameterPlace> ProgramCode::ParametersFromDriver(void* handle, bool& known) {
  constexpr int kNoSuchParameter = cuda::kInvalidValue;
  std::vector<ParameterPlace> places;
  known = false;
  if (driver_.cuFuncGetParamInfo == nullptr) return places;
  auto function = static_cast<Function>(handle);
  if (of_library_.contains(handle)) {
    if (driver_.cuKernelGetFunction(&function, static_cast<Kernel>(handle)) != 0) return places;
    AddAlias(function, handle);  // graphs tell this one
  }
  ParameterPlace place;
  int code = 0;
  while ((code = driver_.cuFuncGetParamInfo(function, places.size(), &place.offset,
                                            &place.bytes)) == 0)
    places.push_back(place);
  known = code == kNoSuchParameter;
  return places;
}

void ProgramCode::Resolve(ProgramKernel& kernel, void* handle) {
  kernel.is_resolved_ = true;
  ProgramModule& module = *kernel.module;
  if (module.image_ != nullptr) Read(module);
  bool known = false;
  kernel.parameters = ParametersFromDriver(handle, known);
  if (const auto of_ptx = module.parameters_.find(kernel.name);
      !known && of_ptx != module.parameters_.end()) {
    kernel.parameters = of_ptx->second;
    known = true;
  }
  const auto symbols = module.symbols_.find(kernel.name);
  kernel.symbols = symbols != module.symbols_.end() ? symbols->second : module.symbols;
  kernel.problem = module.problem;
  if (module.textured_.contains(kernel.name)) kernel.problem = "it reads textures or surfaces";
  if (!known) kernel.problem = kUnknownParameters;
}

void ProgramCode::Read(ProgramModule& module) const {
  const char* image = std::exchange(module.image_, nullptr);
  const char* const* linked = nullptr;
  if (MagicOf(image) == kWrapperMagic) {
    const auto& wrapper = *reinterpret_cast<const Wrapper*>(image);
    if (wrapper.version == 2) linked = wrapper.linked;
    image = wrapper.image;
  }
  module.arch = arch();
  if (MagicOf(image) == program::kElfMagic) {
    module.cubin.assign(image, BytesOfElf(image));
  } else if (MagicOf(image) == program::kFatBinaryMagic) {
    module.cubin = program::ChooseCubin(image, module.arch).value_or("");
    const auto binary = program::ReadFatBinary(image);
    auto ptx = binary ? program::ChoosePtx(*binary, module.arch) : std::unexpected(binary.error());
    if (!ptx && linked != nullptr) ptx = program::LinkedPtx(linked, module.arch);
    if (ptx) module.ptx = *std::move(ptx);
  } else {
    module.ptx = image;
  }
  module.copy_ = {};
  if (!module.ptx.empty())
    ReadPtx(module);
  else
    ReadCubin(module);
}

void ProgramCode::ReadCubin(ProgramModule& module) {
  auto symbols = SymbolsOfCubin(module.cubin);
  if (symbols)
    module.symbols = *std::move(symbols);
  else
    module.problem = "its module has no code that can be read: " + symbols.error().ToString();
}

void ProgramCode::ReadPtx(ProgramModule& module) {
  module.digest = DigestOf(module.ptx).ToHex();
  const auto parsed = ptx::Parse(module.ptx);
  if (!parsed) {
    module.problem = "the PTX of its module cannot be read: " + parsed.error().ToString();
    return;
  }
  if (const size_t digits = parsed->target().find_first_of("0123456789");
      digits != std::string::npos)
    module.arch = std::atoi(parsed->target().c_str() + digits);
  for (const ptx::Variable& variable : parsed->globals()) {
    if (!IsLiteral(variable.name)) module.symbols.push_back({variable.name, false});
  }
  for (const ptx::Variable& variable : parsed->constants())
    module.symbols.push_back({variable.name, true});
  for (const ptx::Function& function : parsed->functions()) {
    if (!function.is_entry) continue;
    auto& places = module.parameters_[function.name];
    for (const ptx::Variable& parameter : function.params)
      places.push_back({parameter.offset, parameter.bytes});
    if (UsesTextures(function)) module.textured_.insert(function.name);
    const std::set<std::string> reached = ReachedFrom(*parsed, function.name);
    std::ranges::copy_if(module.symbols, std::back_inserter(module.symbols_[function.name]),
                         [&](const ModuleSymbol& symbol) { return reached.contains(symbol.name); });
  }
}

bool ProgramCode::FindSymbol(const ProgramModule& module, const std::string& name,
                             DevicePointer& address, size_t& bytes) const {
  if (module.library != nullptr && driver_.cuLibraryGetGlobal != nullptr)
    return driver_.cuLibraryGetGlobal(&address, &bytes, module.library, name.c_str()) == 0 ||
           driver_.cuLibraryGetManaged(&address, &bytes, module.library, name.c_str()) == 0;
  if (module.module != nullptr && driver_.cuModuleGetGlobal_v2 != nullptr)
    return driver_.cuModuleGetGlobal_v2(&address, &bytes, module.module, name.c_str()) == 0;
  return false;
}

int ProgramCode::arch() const {
  int device = 0, major = 0, minor = 0;
  if (driver_.cuCtxGetDevice == nullptr || driver_.cuCtxGetDevice(&device) != 0) return 0;
  driver_.cuDeviceGetAttribute(&major, kComputeCapabilityMajor, device);
  driver_.cuDeviceGetAttribute(&minor, kComputeCapabilityMinor, device);
  return major * 10 + minor;
}

}  // namespace atunner::recorder
