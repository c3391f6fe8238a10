// `run`: one launch of a kernel with the arguments of the command line, on the virtual GPU with all
// checks or on the GPU of this machine; afterwards what is in its memory.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/device/real_device.h"
#include "atunner/ptx/module.h"
#include "faces/cli/hazard_text.h"
#include "faces/cli/launch_argument.h"

namespace atunner::cli {
namespace {

struct LoadedText {
  CompiledModule module;
  std::string entry;  ///< as the module names it
  std::vector<Parameter> parameters;
  std::string source_name;  ///< as hazards name the file; "" = they name lines of the PTX
  std::string source;
};

Result<CompiledModule> Compiled(const RunFlags& flags, const std::string& text,
                                const Target& target) {
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  CompileRequest request;
  request.source.name = flags.file;
  request.source.text = text;
  if (!flags.kernel.empty()) request.entries = {flags.kernel};
  request.arch = target.profile.Arch();
  ATUNNER_TRY(CompileOutcome outcome, compiler->Compile(request));
  // a name that says nothing there
  if (!outcome.ok() && outcome.error.find("__nv_name_map") != std::string::npos) {
    request.entries.clear();
    ATUNNER_TRY(outcome, compiler->Compile(request));
  }
  if (!outcome.ok()) return Invalid("the kernel does not compile: " + outcome.error, flags.file);
  return *std::move(outcome.module);
}

/// The kernel that is meant: by its name, by the compiler's name for it, or because there is no
/// other.
Result<const ptx::Function*> Chosen(const ptx::ValidModule& ptx, const CompiledModule& module,
                                    const RunFlags& flags) {
  std::string names;
  std::vector<const ptx::Function*> entries;
  for (const ptx::Function& function : ptx.functions()) {
    if (!function.is_entry) continue;
    const KernelResources* known = module.Find(function.name);
    if (function.name == flags.kernel || (known != nullptr && known->entry == flags.kernel))
      return &function;
    entries.push_back(&function);
    names += (names.empty() ? "" : ", ") + function.name;
  }
  if (entries.size() == 1 && flags.kernel.empty()) return entries[0];
  if (entries.empty()) return Invalid("there is no kernel in it", flags.file);
  return Invalid(flags.kernel.empty() ? "which kernel to run is not clear"
                                      : "there is no kernel '" + flags.kernel + "'",
                 flags.file, "name one by --kernel: " + names);
}

Parameter::Kind KindOf(const ptx::Variable& variable) {
  using enum ptx::Type;
  switch (variable.type) {
    case kF16:
    case kF32:
    case kF64:
      return Parameter::Kind::kFloat;
    case kU8:
    case kU16:
    case kU32:
    case kU64:
    case kS8:
    case kS16:
    case kS32:
    case kS64:
      return Parameter::Kind::kInteger;
    default:
      return Parameter::Kind::kBits;
  }
}

Result<LoadedText> ReadKernel(const RunFlags& flags, const Target& target) {
  LoadedText read;
  ATUNNER_TRY(const std::string text, ReadFile(flags.file));
  if (flags.file.ends_with(".ptx")) {
    read.module.arch = target.profile.Arch();
    read.module.ptx = read.source = text;
  } else {
    ATUNNER_TRY(read.module, Compiled(flags, text, target));
    read.source_name = flags.file;
    read.source = text;
  }
  ATUNNER_TRY(const ptx::ValidModule ptx, ptx::Parse(read.module.ptx));
  ATUNNER_TRY(const ptx::Function* kernel, Chosen(ptx, read.module, flags));
  read.entry = kernel->name;
  if (read.module.Find(read.entry) == nullptr) {
    KernelResources unknown;  // what was not compiled here has no resources to tell
    unknown.entry = unknown.mangled = read.entry;
    read.module.kernels.push_back(unknown);
  }
  for (const ptx::Variable& parameter : kernel->params)
    read.parameters.push_back({parameter.bytes, KindOf(parameter)});
  return read;
}

/// What the kernel is launched with.
struct Bound {
  std::vector<LaunchArgument> arguments;
  std::vector<std::unique_ptr<Buffer>> memory;  ///< of each argument, null for values
  std::vector<std::unique_ptr<Texture>> textures;
  std::vector<KernelArg> args;
};

Result<Bound> Bind(Device& device, const RunFlags& flags, const LoadedText& kernel) {
  Bound bound;
  if (flags.arguments.size() != kernel.parameters.size())
    return Invalid(fmt::format("'{}' takes {} arguments, given are {}", kernel.entry,
                               kernel.parameters.size(), flags.arguments.size()),
                   "--arg", "one --arg for each, in order");
  for (size_t i = 0; i < flags.arguments.size(); ++i) {
    ATUNNER_TRY(LaunchArgument argument, ParseLaunchArgument(flags.arguments[i]));
    std::unique_ptr<Buffer> memory;
    if ((argument.texture || argument.memory) && kernel.parameters[i].bytes != 8)
      return Invalid(
          fmt::format("the parameter has {} bytes and is no {}", kernel.parameters[i].bytes,
                      argument.texture ? "texture or surface" : "address"),
          "--arg " + argument.text);
    if (argument.texture) {
      ATUNNER_TRY(auto texture, device.CreateTexture(*argument.texture, argument.content));
      bound.args.push_back(
          KernelArg::Address(argument.surface ? texture->surface() : texture->texture()));
      bound.textures.push_back(std::move(texture));
    } else if (argument.memory) {
      ATUNNER_TRY(memory, device.Allocate(argument.elements * SizeOf(*argument.dtype)));
      if (!argument.content.empty())
        ATUNNER_RETURN_IF_ERROR(device.CopyIn(memory->address(), argument.content));
      bound.args.push_back(KernelArg::Address(memory->address()));
    } else {
      ATUNNER_TRY(const std::vector<std::byte> bytes, ValueBytes(argument, kernel.parameters[i]));
      bound.args.push_back(KernelArg::Value(bytes));
    }
    bound.memory.push_back(std::move(memory));
    bound.arguments.push_back(std::move(argument));
  }
  return bound;
}

Result<LaunchShape> ShapeOf(const RunFlags& flags) {
  LaunchShape shape;
  ATUNNER_TRY(shape.grid, ParseDim3("--grid", flags.grid));
  ATUNNER_TRY(shape.block, ParseDim3("--block", flags.block));
  ATUNNER_TRY(shape.cluster, ParseDim3("--cluster", flags.cluster));
  shape.dynamic_shared_bytes = flags.shared_bytes;
  shape.cooperative = flags.cooperative;
  return shape;
}

struct Content {
  size_t argument = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::byte> bytes;
};

/// What the kernel left in its arguments' memory.
Result<std::vector<Content>> ReadBack(Device& device, const Bound& bound) {
  std::vector<Content> contents;
  for (size_t i = 0; i < bound.memory.size(); ++i) {
    if (!bound.memory[i]) continue;
    contents.push_back(
        {i, *bound.arguments[i].dtype, std::vector<std::byte>(bound.memory[i]->bytes())});
    ATUNNER_RETURN_IF_ERROR(device.CopyOut(contents.back().bytes, bound.memory[i]->address()));
  }
  return contents;
}

void PrintContent(const Content& content, size_t most) {
  const size_t elements = content.bytes.size() / SizeOf(content.dtype);
  fmt::print("argument {}, {}[{}]:", content.argument, Name(content.dtype), elements);
  for (size_t i = 0; i < std::min(elements, most); ++i)
    fmt::print(" {}", ElementText(content.dtype, content.bytes, i));
  fmt::print("{}\n", elements > most ? " …" : "");
}

Json ContentJson(const Content& content, size_t most) {
  const size_t elements = content.bytes.size() / SizeOf(content.dtype);
  Json values = Json::array();
  for (size_t i = 0; i < std::min(elements, most); ++i)
    values.push_back(ElementJson(content.dtype, content.bytes, i));
  return {{"argument", content.argument},
          {"dtype", Name(content.dtype)},
          {"elements", elements},
          {"values", values}};
}

/// The device, and the same as a virtual one where it is that.
struct Opened {
  std::unique_ptr<Device> device;
  vgpu::VirtualGpu* virtual_gpu = nullptr;
};

Result<Opened> Open(const RunFlags& flags, const Target& target) {
  if (flags.real) {
    ATUNNER_TRY(auto real, OpenRealDevice(target.real_index.value_or(0)));
    return Opened{std::move(real), nullptr};
  }
  auto made = std::make_unique<vgpu::VirtualGpu>(target.profile);
  made->TrackMemory();
  vgpu::VirtualGpu* const gpu = made.get();
  return Opened{std::move(made), gpu};
}

void NameMemory(vgpu::VirtualGpu& gpu, const Bound& bound) {
  for (size_t i = 0; i < bound.memory.size(); ++i) {
    if (bound.memory[i]) gpu.SetName(bound.memory[i]->address(), "argument " + std::to_string(i));
  }
}

void PrintRun(const LoadedText& kernel, const Bound& bound, const std::string& where,
              const LaunchOutcome& outcome, const std::vector<Content>& contents, size_t most,
              bool checked, SourceLines& source) {
  fmt::print("{}", outcome.printed);
  for (const Hazard& hazard : outcome.hazards) PrintHazard(hazard, source);
  for (const LaunchArgument& argument : bound.arguments) {
    if (argument.texture) fmt::print("{}: its texels are random\n", argument.text);
  }
  for (const Content& content : contents) PrintContent(content, most);
  fmt::print("{}: {}, {}\n", kernel.entry, Verdict(outcome, checked), where);
}

Json RunJson(const LoadedText& kernel, const std::string& where, const LaunchOutcome& outcome,
             const std::vector<Content>& contents, size_t most, bool checked, SourceLines& source) {
  Json json{
      {"kernel", kernel.entry},     {"where", where},
      {"message", outcome.message}, {"blocks", outcome.blocks_executed},
      {"printed", outcome.printed}, {"completed", outcome.kind == LaunchOutcome::Kind::kCompleted},
      {"checked", checked},         {"hazards", Json::array()},
      {"memory", Json::array()}};
  for (const Hazard& hazard : outcome.hazards)
    json["hazards"].push_back(HazardJson(hazard, source));
  for (const Content& content : contents) json["memory"].push_back(ContentJson(content, most));
  return json;
}

}  // namespace

Result<int> RunKernel(const RunFlags& flags, const Common& common) {
  SubjectFlags named;
  named.target = flags.target;
  const bool here = flags.real && flags.target == "auto";
  ATUNNER_TRY(const Target target, here         ? ThisGpu("--real")
                                   : flags.real ? ChooseTarget(flags.target, false)
                                                : TargetOf(named));
  if (flags.real && !target.real_index)
    return Fail(ErrorCode::kUnavailable, target.profile.name + " is not in this machine", "--real");
  ATUNNER_TRY(const LaunchShape shape, ShapeOf(flags));
  ATUNNER_TRY(const uint8_t groups, ParseChecks(flags.checks));
  const LaunchOptions options = OptionsOfChecks(groups, flags.timeout_seconds,
                                                flags.max_instructions);
  ATUNNER_TRY(const LoadedText kernel, ReadKernel(flags, target));
  ATUNNER_TRY(const Opened opened, Open(flags, target));
  ATUNNER_TRY(const auto module, opened.device->Load(kernel.module));
  ATUNNER_TRY(const Bound bound, Bind(*opened.device, flags, kernel));
  if (opened.virtual_gpu != nullptr) NameMemory(*opened.virtual_gpu, bound);
  ATUNNER_TRY(LaunchOutcome outcome,
              opened.device->Launch(*module, kernel.entry, shape, bound.args, options));
  if (outcome.kind == LaunchOutcome::Kind::kRefused ||
      outcome.kind == LaunchOutcome::Kind::kUnsupported)
    return Invalid("'" + kernel.entry + "' cannot be launched: " + outcome.message, flags.file);
  JoinSides(outcome.hazards);
  // with the context, its memory
  const bool lost = opened.virtual_gpu == nullptr && !outcome.completed();
  std::vector<Content> contents;
  if (!lost) {
    ATUNNER_TRY(contents, ReadBack(*opened.device, bound));
  }
  const std::string where = (flags.real ? "" : "virtual ") + target.profile.name;
  SourceLines source(kernel.source_name, kernel.source, Path(flags.file).parent_path());
  if (common.json) {
    PrintJson(RunJson(kernel, where, outcome, contents, flags.show, !flags.real, source));
  } else {
    PrintRun(kernel, bound, where, outcome, contents, flags.show, !flags.real, source);
  }
  return outcome.completed() ? 0 : 1;
}

}  // namespace atunner::cli
