// atunner.h over the classes of kernels: arguments checked, results turned into codes and a
// message.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/model/expr/expr.h"
#include "runtime/artifact_set.h"
#include "runtime/c_guard.h"
#include "runtime/include/atunner.h"

using atunner::Result;
using atunner::Status;

/// The handle's text outlives the calls that return pointers to it.
struct atunner_set {
  explicit atunner_set(std::string libcuda) : set(std::move(libcuda)) {}
  atunner::loader::ArtifactSet set;
};

struct atunner_kernel {
  std::unique_ptr<atunner::loader::LoadedKernel> kernel;
};

namespace atunner::loader {
namespace {

static_assert(kTensorAlignment == ATUNNER_ALIGNMENT);
static_assert(static_cast<int>(MatchQuality::kExact) == ATUNNER_MATCH_EXACT);
static_assert(static_cast<int>(MatchQuality::kDevice) == ATUNNER_MATCH_DEVICE);
static_assert(static_cast<int>(MatchQuality::kArchitecture) == ATUNNER_MATCH_ARCHITECTURE);
static_assert(static_cast<int>(MatchQuality::kCompatible) == ATUNNER_MATCH_COMPATIBLE);

Result<Value> ParseValue(const std::string& text) {
  const auto parsed = Expr::Parse(text);
  if (parsed && parsed->Names().empty()) {
    if (auto value = parsed->Evaluate({})) return *value;
  }
  if (text == "true" || text == "True") return Value(true);
  if (text == "false" || text == "False") return Value(false);
  return Value(text);
}

Result<Problem> ReadProblem(const atunner_problem& raw) {
  Problem problem;
  if (raw.name != nullptr) problem.name = raw.name;
  if (raw.dtype != nullptr) {
    problem.dtype = ParseDType(raw.dtype);
    if (!problem.dtype)
      return Invalid("unknown dtype '" + std::string(raw.dtype) + "'", "",
                     "the types are " + DTypeNames());
  }
  if (raw.dim_count > 0 && raw.dims == nullptr) return NullArgument("problem->dims");
  for (size_t i = 0; i < raw.dim_count; ++i) {
    if (raw.dims[i].name == nullptr) return NullArgument("a dim's name");
    if (!problem.dims.emplace(raw.dims[i].name, raw.dims[i].value).second)
      return Invalid("dim '" + std::string(raw.dims[i].name) + "' is given twice");
  }
  if (raw.attribute_count > 0 && raw.attributes == nullptr)
    return NullArgument("problem->attributes");
  for (size_t i = 0; i < raw.attribute_count; ++i) {
    const atunner_attribute& attribute = raw.attributes[i];
    if (attribute.name == nullptr || attribute.value == nullptr)
      return NullArgument("an attribute's name or value");
    ATUNNER_TRY(problem.attributes[attribute.name], ParseValue(attribute.value));
  }
  return problem;
}

/// Addresses in the order of the arguments, from either form.
Result<std::vector<cuda::DevicePointer>> ReadTensors(const LoadedKernel& kernel,
                                                     const atunner_launch_info& launch) {
  std::vector<cuda::DevicePointer> tensors;
  if (launch.tensor_count > 0 && launch.named_count > 0)
    return Invalid("tensors are given in order and by name");
  if (launch.named_count == 0) {
    if (launch.tensor_count > 0 && launch.tensors == nullptr)
      return NullArgument("launch->tensors");
    tensors.assign(launch.tensors, launch.tensors + launch.tensor_count);
    return tensors;
  }
  if (launch.named == nullptr) return NullArgument("launch->named");
  tensors.assign(kernel.arguments().size(), 0);
  for (size_t i = 0; i < launch.named_count; ++i) {
    const char* name = launch.named[i].name;
    if (name == nullptr) return NullArgument("a tensor's name");
    size_t at = 0;
    while (at < tensors.size() && kernel.arguments()[at].name != name) ++at;
    if (at == tensors.size())
      return Invalid("the kernel has no argument '" + std::string(name) + "'");
    if (tensors[at] != 0) return Invalid("argument '" + std::string(name) + "' is given twice");
    tensors[at] = launch.named[i].address;
  }
  return tensors;
}

void Describe(const ArtifactSet::Entry& entry, atunner_artifact_info& info) {
  const Artifact& artifact = entry.artifact;
  info.name = artifact.name.c_str();
  info.dtype = entry.dtype_text.c_str();
  info.folder = entry.folder_text.c_str();
  info.device = artifact.device.c_str();
  info.arch = artifact.arch.c_str();
  info.compiler = artifact.compiler.c_str();
  info.run = artifact.run.c_str();
  info.cc_major = artifact.cc_major;
  info.cc_minor = artifact.cc_minor;
  info.evidence = artifact.evidence == Evidence::kMeasured ? ATUNNER_MEASURED : ATUNNER_PREDICTED;
  info.time_ns = artifact.trial.ObjectiveNs().value_or(0);
  info.dims = entry.dims_text.c_str();
  info.free_dims = entry.free_dims_text.c_str();
}

atunner_role RoleOf(Role role) {
  return role == Role::kInput    ? ATUNNER_INPUT
         : role == Role::kOutput ? ATUNNER_OUTPUT
                                 : ATUNNER_INOUT;
}

Status InfoInto(const atunner_set* set, size_t index, atunner_artifact_info* info) {
  if (set == nullptr) return NullArgument("set");
  if (info == nullptr) return NullArgument("info");
  ATUNNER_RETURN_IF_ERROR(CheckSize(info->struct_size, sizeof *info, "atunner_artifact_info"));
  if (index >= set->set.size())
    return Invalid("there is no artifact " + std::to_string(index) + ", the set holds " +
                   std::to_string(set->set.size()));
  Describe(set->set.entry(index), *info);
  return {};
}

Status ArgumentInto(const atunner_kernel* kernel, size_t index, atunner_argument* argument) {
  if (kernel == nullptr) return NullArgument("kernel");
  if (argument == nullptr) return NullArgument("argument");
  ATUNNER_RETURN_IF_ERROR(CheckSize(argument->struct_size, sizeof *argument, "atunner_argument"));
  const auto& arguments = kernel->kernel->arguments();
  if (index >= arguments.size())
    return Invalid("there is no argument " + std::to_string(index) + ", the kernel takes " +
                   std::to_string(arguments.size()));
  const Argument& found = arguments[index];
  argument->name = found.name.c_str();
  argument->dtype = found.dtype_text.c_str();
  argument->role = RoleOf(found.role);
  argument->rank = found.shape.extents.size();
  argument->extents = found.shape.extents.data();
  argument->bytes = static_cast<uint64_t>(found.shape.bytes);
  return {};
}

Status ChooseInto(atunner_set* set, const atunner_problem* raw, int device,
                  atunner_kernel** kernel) {
  if (kernel == nullptr) return NullArgument("kernel");
  *kernel = nullptr;
  if (set == nullptr) return NullArgument("set");
  if (raw == nullptr) return NullArgument("problem");
  ATUNNER_RETURN_IF_ERROR(CheckSize(raw->struct_size, sizeof *raw, "atunner_problem"));
  if (raw->least < ATUNNER_MATCH_NONE || raw->least > ATUNNER_MATCH_EXACT)
    return Invalid("problem->least is no match");
  if (device < ATUNNER_CURRENT_CONTEXT) return Invalid("there is no GPU " + std::to_string(device));
  ATUNNER_TRY(const Problem problem, ReadProblem(*raw));
  ATUNNER_TRY(auto loaded, set->set.Choose(problem, device, static_cast<MatchQuality>(raw->least)));
  *kernel = new atunner_kernel{std::move(loaded)};
  return {};
}

Status LaunchFrom(const atunner_kernel* kernel, const atunner_launch_info* launch) {
  if (kernel == nullptr) return NullArgument("kernel");
  if (launch == nullptr) return NullArgument("launch");
  ATUNNER_RETURN_IF_ERROR(CheckSize(launch->struct_size, sizeof *launch, "atunner_launch_info"));
  ATUNNER_TRY(const auto tensors, ReadTensors(*kernel->kernel, *launch));
  return kernel->kernel->Launch({static_cast<cuda::Stream>(launch->stream), tensors,
                                 launch->workspace, launch->workspace_bytes});
}

}  // namespace
}  // namespace atunner::loader

namespace loader = atunner::loader;

extern "C" {

uint32_t atunner_abi_version(void) { return ATUNNER_ABI_VERSION; }
const char* atunner_version(void) { return ATUNNER_VERSION; }
const char* atunner_last_error(void) { return loader::LastError().c_str(); }

atunner_status atunner_set_create(const char* libcuda, atunner_set** set) {
  return loader::Guarded([&]() -> Status {
    if (set == nullptr) return loader::NullArgument("set");
    *set = new atunner_set(libcuda == nullptr ? "" : libcuda);
    return {};
  });
}

void atunner_set_destroy(atunner_set* set) { delete set; }

atunner_status atunner_set_add(atunner_set* set, const char* folder) {
  return loader::Guarded([&]() -> Status {
    if (set == nullptr) return loader::NullArgument("set");
    if (folder == nullptr) return loader::NullArgument("folder");
    return set->set.Add(folder);
  });
}

size_t atunner_set_size(const atunner_set* set) { return set == nullptr ? 0 : set->set.size(); }

atunner_status atunner_set_info(const atunner_set* set, size_t index, atunner_artifact_info* info) {
  return loader::Guarded([&] { return loader::InfoInto(set, index, info); });
}

atunner_status atunner_choose(atunner_set* set, const atunner_problem* problem, int device,
                              atunner_kernel** kernel) {
  return loader::Guarded([&] { return loader::ChooseInto(set, problem, device, kernel); });
}

void atunner_kernel_destroy(atunner_kernel* kernel) { delete kernel; }

atunner_match atunner_kernel_match(const atunner_kernel* kernel) {
  if (kernel == nullptr) return ATUNNER_MATCH_NONE;
  return static_cast<atunner_match>(kernel->kernel->choice().match.quality);
}

const char* atunner_kernel_match_text(const atunner_kernel* kernel) {
  return kernel == nullptr ? "" : kernel->kernel->choice().match.text.c_str();
}

size_t atunner_kernel_artifact(const atunner_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel->choice().index;
}

size_t atunner_kernel_argument_count(const atunner_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel->arguments().size();
}

atunner_status atunner_kernel_argument(const atunner_kernel* kernel, size_t index,
                                       atunner_argument* argument) {
  return loader::Guarded([&] { return loader::ArgumentInto(kernel, index, argument); });
}

uint64_t atunner_kernel_workspace_bytes(const atunner_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel->workspace_bytes();
}

atunner_status atunner_launch(const atunner_kernel* kernel, const atunner_launch_info* launch) {
  return loader::Guarded([&] { return loader::LaunchFrom(kernel, launch); });
}

}  // extern "C"
