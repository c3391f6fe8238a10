// The device code of the program: which modules it loaded, and what the handles of its kernels
// mean. Not thread-safe.
//
// Example: CUDA's runtime loads a fat binary by cuLibraryLoadData, takes a kernel from it by
// cuLibraryGetKernel, and gives that handle to cuLaunchKernel. Find then tells the kernel's name,
// its PTX, and where its parameters lie.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "atunner/base/result.h"
#include "faces/recorder/cubin_symbols.h"
#include "faces/recorder/driver.h"

namespace atunner::recorder {

/// Position of a parameter in the buffer that the kernel receives.
struct ParameterPlace {
  size_t offset = 0, bytes = 0;
};

/// ProgramKernel::problem if neither the driver nor the PTX tells the parameters.
inline constexpr const char* kUnknownParameters = "its parameters are not known";

struct ProgramModule {
  std::string ptx;     ///< "" if there is none for this GPU
  std::string cubin;   ///< "" if there is none
  int arch = 0;        ///< 80 of ".target sm_80"; of the GPU without PTX
  std::string digest;  ///< of the PTX
  std::vector<ModuleSymbol> symbols;
  /// Why launches of its kernels cannot be repeated, "" if they can.
  std::string problem;
  Library library = nullptr;  ///< one of these two, nullptr after it was unloaded
  Module module = nullptr;

 private:
  friend class ProgramCode;
  const char* image_ = nullptr;  ///< until it has been read
  std::string copy_;             ///< of an image that the program may free
  std::map<std::string, std::vector<ParameterPlace>, std::less<>> parameters_;
  std::set<std::string, std::less<>> textured_;  ///< kernels that read textures or surfaces
  /// Variables that a kernel names, or that functions and variables do which it names.
  std::map<std::string, std::vector<ModuleSymbol>, std::less<>> symbols_;
};

struct ProgramKernel {
  size_t number = 0;     ///< in the order in which they were found
  std::string name;      ///< mangled
  std::string readable;  ///< demangled
  ProgramModule* module = nullptr;
  std::vector<ParameterPlace> parameters;
  /// Variables of the module that it may reach; all of them if the module has no PTX.
  std::vector<ModuleSymbol> symbols;
  std::string problem;  ///< why its launches cannot be repeated

 private:
  friend class ProgramCode;
  bool is_resolved_ = false;
};

class ProgramCode {
 public:
  explicit ProgramCode(const Driver& driver) : driver_(driver) {}

  /// `image`: PTX, a cubin, a fat binary, or the structure that nvcc makes for one.
  void AddModule(Module module, const void* image);
  void AddLibrary(Library library, const void* image);
  void AddFunction(Function function, Module module, const char* name);
  void AddKernel(Kernel kernel, Library library, const char* name);
  /// Two handles of one module or of one kernel.
  void AddAlias(void* handle, void* known);
  void Remove(void* module_or_library);

  /// The kernel of a Function or Kernel, however the program came by it.
  ProgramKernel& Find(void* handle);
  /// Where a variable of the module is in the current context; false if it is not there.
  bool FindSymbol(const ProgramModule& module, const std::string& name, DevicePointer& address,
                  size_t& bytes) const;
  /// Loads the machine code of a kernel (a Function or a Kernel). The driver otherwise does that in
  /// the first launch, which would seem to take longer.
  void LoadNow(void* handle) const;
  /// Compute capability of the current device: 90.
  int arch() const;

 private:
  ProgramModule& NewModule(const void* image);
  ProgramKernel& Add(void* handle, void* module_or_library, const std::string& name);
  /// Asks the driver.
  ProgramKernel& Identify(void* handle);
  ProgramModule& UnknownModule();
  void Resolve(ProgramKernel& kernel, void* handle);
  std::vector<ParameterPlace> ParametersFromDriver(void* handle, bool& known);
  void Read(ProgramModule& module) const;
  static void ReadPtx(ProgramModule& module);
  static void ReadCubin(ProgramModule& module);

  const Driver& driver_;
  std::deque<ProgramModule> modules_;
  std::deque<ProgramKernel> kernels_;
  std::unordered_map<void*, ProgramModule*> module_of_;
  std::unordered_map<void*, ProgramKernel*> kernel_of_;
  std::unordered_set<void*> of_library_;  ///< handles that are a Kernel
};

}  // namespace atunner::recorder
