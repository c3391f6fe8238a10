// `run`: one launch of a kernel with the arguments of the command line, on the virtual GPU with all
// checks or on the GPU of this machine; afterwards what is in its memory.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/device/real_device.h"
#include "atunner/jobs/kernels/hazard_checks.h"
#include "atunner/jobs/kernels/loaded_kernel.h"
#include "atunner/ptx/module.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/flags/launch_argument.h"
#include "faces/cli/output/hazard_text.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// One launch with arguments of the command line.
struct RunFlags {
  std::string file;    ///< .ptx or .cu
  std::string kernel;  ///< which one of the file
  std::string grid = "1", block = "1", cluster = "1";
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::string> arguments;  ///< see launch_argument.h
  std::string target = "auto";
  bool real = false;  ///< on the GPU of this machine
  std::string checks = "memory,init,race,sync";
  double timeout_seconds = 60;
  uint64_t max_instructions = uint64_t{1} << 28;
  size_t show = 16;  ///< elements of each memory
};

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

/// The kernel with the name that was given: its own or the compiler's. Without a name, the only
/// kernel.
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

/// The arguments of a launch, and the memory and textures behind them.
struct Bound {
  std::vector<LaunchArgument> arguments;
  std::vector<std::unique_ptr<Buffer>> memory;  ///< of each argument, null for values
  std::vector<std::unique_ptr<Texture>> textures;
  std::vector<KernelArg> args;
};

/// Allocates the memory of one argument and writes its content.
Result<std::unique_ptr<Buffer>> MemoryOf(Device& device, const LaunchArgument& argument) {
  ATUNNER_TRY(auto memory, device.Allocate(argument.elements * SizeOf(*argument.dtype)));
  if (!argument.content.empty())
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(memory->address(), argument.content));
  return memory;
}

/// Appends one argument, with what stands behind it, to `bound`.
Status BindOne(Device& device, LaunchArgument argument, const Parameter& parameter, Bound& bound) {
  if ((argument.texture || argument.memory) && parameter.bytes != 8)
    return Invalid(fmt::format("the parameter has {} bytes and is no {}", parameter.bytes,
                               argument.texture ? "texture or surface" : "address"),
                   "--arg " + argument.text);
  std::unique_ptr<Buffer> memory;
  if (argument.texture) {
    ATUNNER_TRY(auto texture, device.CreateTexture(*argument.texture, argument.content));
    bound.args.push_back(
        KernelArg::Address(argument.surface ? texture->surface() : texture->texture()));
    bound.textures.push_back(std::move(texture));
  } else if (argument.memory) {
    ATUNNER_TRY(memory, MemoryOf(device, argument));
    bound.args.push_back(KernelArg::Address(memory->address()));
  } else {
    ATUNNER_TRY(const std::vector<std::byte> bytes, ValueBytes(argument, parameter));
    bound.args.push_back(KernelArg::Value(bytes));
  }
  bound.memory.push_back(std::move(memory));
  bound.arguments.push_back(std::move(argument));
  return {};
}

Result<Bound> Bind(Device& device, const RunFlags& flags, const LoadedText& kernel) {
  if (flags.arguments.size() != kernel.parameters.size())
    return Invalid(fmt::format("'{}' takes {} arguments, given are {}", kernel.entry,
                               kernel.parameters.size(), flags.arguments.size()),
                   "--arg", "one --arg for each, in order");
  Bound bound;
  for (size_t i = 0; i < flags.arguments.size(); ++i) {
    ATUNNER_TRY(LaunchArgument argument, ParseLaunchArgument(flags.arguments[i]));
    ATUNNER_RETURN_IF_ERROR(BindOne(device, std::move(argument), kernel.parameters[i], bound));
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

/// Copies the memory of all arguments back.
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

/// The outcome of a launch and the contents of its memory.
struct Launched {
  std::string where;  ///< "virtual A100"
  LaunchOutcome outcome;
  std::vector<Content> contents;
};

void PrintRun(const LoadedText& kernel, const Bound& bound, const Launched& run,
              const RunFlags& flags, SourceLines& source) {
  fmt::print("{}", run.outcome.printed);
  for (const Hazard& hazard : run.outcome.hazards) PrintHazard(hazard, source);
  for (const LaunchArgument& argument : bound.arguments) {
    if (argument.texture) fmt::print("{}: its texels are random\n", argument.text);
  }
  for (const Content& content : run.contents) PrintContent(content, flags.show);
  fmt::print("{}: {}, {}\n", kernel.entry, HazardSummary(run.outcome, !flags.real), run.where);
}

Json RunJson(const LoadedText& kernel, const Launched& run, const RunFlags& flags,
             SourceLines& source) {
  const LaunchOutcome& outcome = run.outcome;
  Json json{
      {"kernel", kernel.entry},     {"where", run.where},
      {"message", outcome.message}, {"blocks", outcome.blocks_executed},
      {"printed", outcome.printed}, {"completed", outcome.kind == LaunchOutcome::Kind::kCompleted},
      {"checked", !flags.real},     {"hazards", Json::array()},
      {"memory", Json::array()}};
  for (const Hazard& hazard : outcome.hazards)
    json["hazards"].push_back(HazardJson(hazard, source));
  for (const Content& content : run.contents)
    json["memory"].push_back(ContentJson(content, flags.show));
  return json;
}

/// The device of the flags: the GPU of this machine, or the model of a virtual one.
Result<Target> TargetOfRun(const RunFlags& flags, jobs::Devices& devices) {
  if (!flags.real) {
    jobs::KernelRequest named;
    named.gpu = flags.target;
    return jobs::TargetOf(named, devices);
  }
  ATUNNER_TRY(const Target target,
              flags.target == "auto" ? ThisGpu("--real") : ChooseTarget({flags.target, false}));
  if (!target.real_index)
    return Fail(ErrorCode::kUnavailable, target.profile.name + " is not in this machine", "--real");
  return target;
}

Result<Launched> LaunchOn(const Opened& opened, const LoadedText& kernel, const Bound& bound,
                          const LaunchShape& shape, const LaunchOptions& options) {
  Launched run;
  ATUNNER_TRY(const auto module, opened.device->Load(kernel.module));
  if (opened.virtual_gpu != nullptr) NameMemory(*opened.virtual_gpu, bound);
  ATUNNER_TRY(run.outcome,
              opened.device->Launch(*module, kernel.entry, shape, bound.args, options));
  jobs::JoinSides(run.outcome.hazards);
  // A real GPU loses its memory with the context of a kernel that failed.
  const bool lost = opened.virtual_gpu == nullptr && !run.outcome.completed();
  if (!lost) {
    ATUNNER_TRY(run.contents, ReadBack(*opened.device, bound));
  }
  return run;
}

bool WasRefused(const LaunchOutcome& outcome) {
  return outcome.kind == LaunchOutcome::Kind::kRefused ||
         outcome.kind == LaunchOutcome::Kind::kUnsupported;
}

Result<int> RunKernel(const RunFlags& flags, const Context& context) {
  Machine machine(context.common.store);
  ATUNNER_TRY(const Target target, TargetOfRun(flags, machine.services().devices));
  ATUNNER_TRY(const LaunchShape shape, ShapeOf(flags));
  ATUNNER_TRY(const uint8_t groups, jobs::ParseChecks(flags.checks));
  const LaunchOptions options = jobs::OptionsOfChecks(groups, flags.timeout_seconds,
                                                      flags.max_instructions);
  ATUNNER_TRY(const LoadedText kernel, ReadKernel(flags, target));
  ATUNNER_TRY(const Opened opened, Open(flags, target));
  ATUNNER_TRY(const Bound bound, Bind(*opened.device, flags, kernel));
  ATUNNER_TRY(Launched run, LaunchOn(opened, kernel, bound, shape, options));
  if (WasRefused(run.outcome))
    return Invalid("'" + kernel.entry + "' cannot be launched: " + run.outcome.message, flags.file);
  run.where = (flags.real ? "" : "virtual ") + target.profile.name;
  SourceLines source(kernel.source_name, kernel.source, Path(flags.file).parent_path());
  if (context.common.json)
    PrintJson(RunJson(kernel, run, flags, source));
  else
    PrintRun(kernel, bound, run, flags, source);
  return run.outcome.completed() ? 0 : 1;
}

void AddChecks(CLI::App* verb, RunFlags& flags) {
  verb->add_option("--check", flags.checks,
                   "any of memory,init,race,sync; memory is always among them");
  verb->add_option("--timeout", flags.timeout_seconds, "seconds the launch may take")
      ->check(Positive());
  verb->add_option("--max-instructions", flags.max_instructions,
                   "warp instructions after which a block counts as endless")
      ->check(Positive());
  verb->add_option("--show", flags.show, "elements of each memory to show");
}

}  // namespace

void AddRunKernel(VerbList& verbs) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* verb = verbs.Add(
      "run", "launch a kernel of a .ptx or .cu once, with these arguments, and show its memory",
      [flags](const Context& c) { return RunKernel(*flags, c); });
  verb->add_option("file", flags->file, ".ptx or .cu")->required();
  verb->add_option("--kernel", flags->kernel, "which kernel of the file");
  verb->add_option("--grid", flags->grid, "blocks: x, x,y or x,y,z")->capture_default_str();
  verb->add_option("--block", flags->block, "threads of a block: x, x,y or x,y,z")
      ->capture_default_str();
  verb->add_option("--cluster", flags->cluster, "blocks of a cluster: x, x,y or x,y,z")
      ->capture_default_str();
  verb->add_option("--shared", flags->shared_bytes, "bytes of dynamic shared memory");
  verb->add_flag("--cooperative", flags->cooperative, "all blocks at once");
  verb->add_option("--arg", flags->arguments,
                   "one for each parameter: 5, f32=1.5, f32:1,2,3 (memory), f32[100] "
                   "(unwritten), f32[100]:0, f32@file")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--target-gpu", flags->target,
                   "GPU to compile for and to be; auto: the one here, or A100");
  verb->add_flag("--real", flags->real,
                 "on the GPU of this machine, without checks, instead of the virtual one");
  AddChecks(verb, *flags);
}

}  // namespace atunner::cli
