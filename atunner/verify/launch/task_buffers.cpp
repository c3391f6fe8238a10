#include "atunner/verify/launch/task_buffers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "atunner/verify/inputs/host_fill.h"
#include "atunner/verify/launch/poison.h"

namespace atunner {
namespace {

// As much as 1024 threads can overshoot with one 16-byte store each.
constexpr uint64_t kGuardBytes = 16384;
constexpr uint8_t kGuardByte = 0xa5;
// NaN in every float type: it spreads from a workspace that is read before it is written.
constexpr uint8_t kNanByte = 0xff;
constexpr uint64_t kSkewBytes = 256;
constexpr uint64_t kMostSkew = 1;                  // of sets that share memory
constexpr uint64_t kWorkspacePositions = 1 << 20;  // beyond those of all arguments

/// Calls `change` with the bytes from the first address of the table to the last, which `begin` is
/// the offset of, and writes them back.
template <typename Change>
Status ChangeTable(Device& device, const AddressTable& table, const Change& change) {
  if (table.values.empty()) return {};
  const uint64_t begin = table.values.front().first;
  std::vector<std::byte> bytes(table.values.back().first + sizeof(DeviceAddress) - begin);
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(bytes, table.at + begin));
  for (const auto& [offset, address] : table.values) change(bytes.data() + offset - begin, address);
  return device.CopyIn(table.at + begin, bytes);
}

}  // namespace

Status AddressTable::Put(Device& device) const {
  return ChangeTable(device, *this, [](std::byte* word, DeviceAddress address) {
    std::memcpy(word, &address, sizeof address);
  });
}

Status AddressTable::TakeOut(Device& device) const {
  return ChangeTable(device, *this, [](std::byte* word, DeviceAddress address) {
    if (std::memcmp(word, &address, sizeof address) == 0) std::memset(word, 0, sizeof address);
  });
}

Result<TaskBuffers::Tensor> TaskBuffers::AllocateTensor(const KernelSpec& spec, size_t position,
                                                        uint32_t skew) const {
  const ArgSpec& arg = spec.args[position];
  Tensor tensor;
  tensor.spec = &arg;
  tensor.position = position;
  ATUNNER_TRY(tensor.shape, ShapeOf(arg, spec, dims_));
  ATUNNER_TRY(Fill fill, BindFill(arg, spec, dims_, tensor.shape.elements));
  if (fill.kind != arg.fill.kind) {
    tensor.bound = std::make_unique<ArgSpec>(arg);
    tensor.bound->fill = std::move(fill);
    tensor.spec = tensor.bound.get();
  }
  const uint64_t lead = guard_bytes_ == 0 ? 0 : guard_bytes_ + skew * kSkewBytes;
  const uint64_t room = guard_bytes_ == 0
                            ? 0
                            : (skew < kMostSkew ? kMostSkew - skew : 0) * kSkewBytes + guard_bytes_;
  ATUNNER_TRY(tensor.memory,
              device_->Allocate(lead + static_cast<uint64_t>(tensor.shape.bytes) + room));
  tensor.address = tensor.memory->address() + lead;
  if (arg.fill.kind == Fill::Kind::kBlob) {
    ATUNNER_TRY(tensor.addresses,
                capture::AddressesOf(capture::BlobStore(arg.fill.path), arg.fill.digest));
  }
  return tensor;
}

Result<TaskBuffers> TaskBuffers::AllocateBeside(const TaskBuffers& lender, const KernelSpec& spec,
                                                uint32_t skew, Lent what) {
  TaskBuffers buffers(*lender.device_);
  buffers.dims_ = lender.dims_;
  buffers.guard_bytes_ = lender.guard_bytes_;
  for (const Tensor& lent : lender.tensors_) {
    Tensor& tensor = buffers.tensors_.emplace_back();
    if (what == Lent::kInputs && lent.spec->role != Role::kInput) {
      ATUNNER_TRY(tensor, buffers.AllocateTensor(spec, lent.position, skew));
      continue;
    }
    tensor.spec = &spec.args[lent.position];
    tensor.position = lent.position;
    tensor.shape = lent.shape;
    if (lent.bound) {
      tensor.bound = std::make_unique<ArgSpec>(*lent.bound);
      tensor.spec = tensor.bound.get();
    }
    tensor.address = lent.address + (lender.guard_bytes_ == 0 ? 0 : skew * kSkewBytes);
    tensor.addresses = lent.addresses;
  }
  return buffers;
}

uint64_t TaskBuffers::WrittenBytes() const {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors_)
    bytes += tensor.is_output() ? static_cast<uint64_t>(tensor.shape.bytes) : 0;
  return bytes;
}

Result<TaskBuffers> TaskBuffers::Allocate(Device& device, const KernelSpec& spec, const Dims& dims,
                                          uint32_t skew) {
  TaskBuffers buffers(device);
  buffers.dims_ = dims;
  buffers.guard_bytes_ = device.checks_bounds() ? 0 : kGuardBytes;
  for (size_t i = 0; i < spec.args.size(); ++i) {
    if (spec.args[i].role == Role::kScalar) continue;
    ATUNNER_TRY(buffers.tensors_.emplace_back(), buffers.AllocateTensor(spec, i, skew));
  }
  return buffers;
}

const TaskBuffers::Tensor* TaskBuffers::Find(std::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.spec->name == name) return &tensor;
  }
  return nullptr;
}

const TaskBuffers::Tensor* TaskBuffers::At(uint64_t position) const {
  const auto found = std::ranges::find(tensors_, position, &Tensor::position);
  return found == tensors_.end() ? nullptr : &*found;
}

namespace {

/// The addresses in a tensor's memory, which is at `at`.
Result<AddressTable> TableOf(const TaskBuffers& buffers, const TaskBuffers::Tensor& tensor,
                             DeviceAddress at, const AddressOf& elsewhere) {
  AddressTable table{at, {}, tensor.is_output()};
  for (const capture::PlacedAddress& one : tensor.addresses) {
    const TaskBuffers::Tensor* to = buffers.At(one.argument);
    const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
    if (to == nullptr || bytes < sizeof(DeviceAddress) || one.at > bytes - sizeof(DeviceAddress))
      return Invalid("the addresses in '" + tensor.spec->name + "' do not fit its task");
    const auto moved = elsewhere ? elsewhere(to->spec->name) : std::nullopt;
    table.values.emplace_back(one.at, moved.value_or(to->address) + one.offset);
  }
  return table;
}

}  // namespace

Status TaskBuffers::PutAddresses() const {
  for (const Tensor& tensor : tensors_) {
    ATUNNER_TRY(const AddressTable table, TableOf(*this, tensor, tensor.address, {}));
    ATUNNER_RETURN_IF_ERROR(table.Put(*device_));
  }
  return {};
}

Status TaskBuffers::DrawInputs(JudgeKernels& kernels, const InputInstance& instance) const {
  for (const Tensor& tensor : tensors_) {
    if (!tensor.is_input()) continue;
    ATUNNER_RETURN_IF_ERROR(kernels.FillTensor(tensor.address, *tensor.spec, tensor.elements(),
                                               tensor.position, instance));
    device_->MarkContents(tensor.address, static_cast<uint64_t>(tensor.shape.bytes), true);
  }
  return PutAddresses();
}

namespace {

/// Fills memory with poison. The virtual GPU's memory is the host's: writing it there takes a tenth
/// of executing a kernel.
Status FillWithPoison(Device& device, JudgeKernels& kernels, DeviceAddress address, DType dtype,
                      uint64_t elements, const Poison& poison) {
  constexpr uint64_t kPart = uint64_t{1} << 20;  // elements that are written at once
  if (device.evidence() != Evidence::kPredicted)
    return kernels.FillPoison(address, dtype, elements, poison);
  const uint64_t size = SizeOf(dtype);
  std::vector<std::byte> part(std::min(elements, kPart) * size);
  for (uint64_t at = 0; at < elements; at += kPart) {
    const auto some = std::span(part).first(std::min(kPart, elements - at) * size);
    WritePoison(poison, dtype, at, some);
    ATUNNER_RETURN_IF_ERROR(device.CopyIn(address + at * size, some));
  }
  return {};
}

}  // namespace

std::optional<Poison> TaskBuffers::PoisonOf(const Tensor& tensor, const Poison& poison) {
  return tensor.is_poisoned() ? std::optional(poison.Of(tensor.position)) : std::nullopt;
}

Status TaskBuffers::PoisonOutputs(JudgeKernels& kernels, const Poison& poison) const {
  for (const Tensor& tensor : tensors_) {
    const auto own = PoisonOf(tensor, poison);
    if (!own) continue;
    ATUNNER_RETURN_IF_ERROR(FillWithPoison(*device_, kernels, tensor.address, tensor.spec->dtype,
                                           tensor.elements(), *own));
    device_->MarkContents(tensor.address, static_cast<uint64_t>(tensor.shape.bytes), false);
  }
  return {};
}

Status TaskBuffers::ArmGuards() const {
  if (guard_bytes_ == 0) return {};
  for (const Tensor& tensor : tensors_) {
    const DeviceAddress end = tensor.address + static_cast<uint64_t>(tensor.shape.bytes);
    ATUNNER_RETURN_IF_ERROR(device_->Fill(tensor.address - guard_bytes_, kGuardByte, guard_bytes_));
    ATUNNER_RETURN_IF_ERROR(device_->Fill(end, kGuardByte, guard_bytes_));
  }
  return {};
}

Result<std::optional<std::string>> TaskBuffers::BrokenGuard(JudgeKernels& kernels) const {
  if (guard_bytes_ == 0) return std::nullopt;
  std::vector<DeviceAddress> zones;
  for (const Tensor& tensor : tensors_) {
    zones.push_back(tensor.address - guard_bytes_);
    zones.push_back(tensor.address + static_cast<uint64_t>(tensor.shape.bytes));
  }
  ATUNNER_TRY(const auto changes, kernels.FirstChanges(zones, guard_bytes_, kGuardByte));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& before = changes[2 * i];
    const auto& after = changes[2 * i + 1];
    const std::string& name = tensors_[i].spec->name;
    if (before)
      return name + ", " + std::to_string(guard_bytes_ - *before) + " bytes before its start";
    if (after) return name + ", " + std::to_string(*after) + " bytes after its end";
  }
  return std::nullopt;
}

namespace {

/// A pointer or tensor-map argument for memory at `address`.
Result<KernelArg> Pointing(Device& device, const ConcreteArg& arg, DeviceAddress address) {
  if (!IsMap(arg.kind)) return KernelArg::Address(address);
  TensorMapSpec spec = arg.map;
  spec.address = address;
  ATUNNER_TRY(const TensorMap map, device.EncodeTensorMap(spec));
  return KernelArg::Map(map);
}

/// A texture or surface argument; the new texture is kept in `bound`.
Result<KernelArg> Textured(Device& device, const ConcreteArg& arg, BoundPlan& bound) {
  ATUNNER_TRY(const TextureSpec spec, ParseTexture(arg.name));
  ATUNNER_TRY(bound.textures.emplace_back(), device.CreateTexture(spec, RandomTexels(spec)));
  const Texture& made = *bound.textures.back();
  return KernelArg::Address(arg.kind == ArgBinding::Kind::kSurface ? made.surface()
                                                                   : made.texture());
}

}  // namespace

Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers, Workspaces workspaces) {
  return BindPlan(
      device, plan, spec, buffers, [](const std::string&) { return std::nullopt; }, workspaces);
}

namespace {

/// Addresses of a plan's workspaces and tensors while it is bound.
struct Addresses {
  const TaskBuffers& buffers;
  const AddressOf& elsewhere;
  std::map<std::string, DeviceAddress> workspaces;

  std::optional<DeviceAddress> Of(const ConcreteArg& arg) const {
    if (InWorkspace(arg.kind)) {
      const auto found = workspaces.find(arg.name);
      return found == workspaces.end() ? std::nullopt : std::optional(found->second);
    }
    if (const auto address = elsewhere(arg.name)) return address;
    const TaskBuffers::Tensor* tensor = buffers.Find(arg.name);
    return tensor ? std::optional(tensor->address) : std::nullopt;
  }
};

Result<DeviceAddress> AddWorkspace(Device& device, const ConcreteWorkspace& workspace,
                                   Workspaces contents, const AddressOf& workspace_at,
                                   BoundPlan& bound) {
  const uint64_t bytes = std::max<uint64_t>(workspace.bytes, 16);
  if (const auto at = workspace_at ? workspace_at(workspace.name) : std::nullopt) {
    if (contents == Workspaces::kPoisoned)
      ATUNNER_RETURN_IF_ERROR(device.Fill(*at, kNanByte, bytes));
    return *at;
  }
  ATUNNER_TRY(auto memory, device.Allocate(bytes));
  if (contents == Workspaces::kPoisoned)
    ATUNNER_RETURN_IF_ERROR(device.Fill(memory->address(), kNanByte, bytes));
  return bound.workspaces.emplace_back(std::move(memory))->address();
}

std::unexpected<Error> UnknownArgument(const ConcreteStep& step, const std::string& name) {
  return Invalid("the launch of '" + step.entry + "' names the unknown argument '" + name + "'");
}

/// A parameter given byte by byte, with the addresses in it.
Result<KernelArg> Addressed(const ConcreteStep& step, const ParameterBytes& raw,
                            const Addresses& addresses) {
  std::string bytes = raw.bytes;
  for (const ParameterBytes::Pointer& pointer : raw.pointers) {
    const auto base = addresses.Of({ArgBinding::Kind::kTensor, pointer.name, {}});
    if (!base) return UnknownArgument(step, pointer.name);
    const DeviceAddress address = *base + pointer.offset;
    std::memcpy(bytes.data() + pointer.at, &address, sizeof address);
  }
  return KernelArg::Value(std::as_bytes(std::span(bytes)));
}

Result<KernelArg> BindArg(Device& device, const ConcreteStep& step, const ConcreteArg& arg,
                          const Addresses& addresses, BoundPlan& bound) {
  if (arg.kind == ArgBinding::Kind::kScalar) return KernelArg::Scalar(arg.scalar);
  if (arg.kind == ArgBinding::Kind::kBytes) return Addressed(step, arg.raw, addresses);
  if (IsTexture(arg.kind)) return Textured(device, arg, bound);
  const auto address = addresses.Of(arg);
  if (!address) return UnknownArgument(step, arg.name);
  return Pointing(device, arg, *address);
}

Status AddSymbolCopy(const SymbolCopy& copy, const Addresses& addresses, BoundPlan& bound) {
  const TaskBuffers::Tensor* tensor = addresses.buffers.Find(copy.tensor);
  if (!tensor)
    return Invalid("the symbol '" + copy.symbol + "' copies the unknown argument '" + copy.tensor +
                   "'");
  const auto address = addresses.Of({ArgBinding::Kind::kTensor, copy.tensor, {}});
  bound.symbol_copies.push_back({copy.symbol, address.value_or(tensor->address),
                                 static_cast<uint64_t>(tensor->shape.bytes), tensor->is_output()});
  return {};
}

Status AddTables(const Addresses& addresses, BoundPlan& bound) {
  for (const TaskBuffers::Tensor& tensor : addresses.buffers.tensors()) {
    if (tensor.addresses.empty()) continue;
    const auto at = addresses.Of({ArgBinding::Kind::kTensor, tensor.spec->name, {}});
    ATUNNER_TRY(
        bound.tables.emplace_back(),
        TableOf(addresses.buffers, tensor, at.value_or(tensor.address), addresses.elsewhere));
  }
  return {};
}

}  // namespace

Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers, const AddressOf& elsewhere,
                           Workspaces contents, const AddressOf& workspace_at) {
  ATUNNER_TRY(const ConcretePlan concrete, Resolve(plan, buffers.dims(), spec.attributes));
  BoundPlan bound;
  Addresses addresses{buffers, elsewhere, {}};
  for (const ConcreteWorkspace& workspace : concrete.workspaces) {
    ATUNNER_TRY(addresses.workspaces[workspace.name],
                AddWorkspace(device, workspace, contents, workspace_at, bound));
  }
  for (const ConcreteStep& step : concrete.steps) {
    const LaunchShape shape{step.grid,         step.block,       step.cluster,
                            step.shared_bytes, step.cooperative, step.programmatic};
    BoundStep& out = bound.steps.emplace_back(BoundStep{step.entry, shape, {}});
    for (const ConcreteArg& arg : step.args) {
      ATUNNER_TRY(out.args.emplace_back(), BindArg(device, step, arg, addresses, bound));
    }
  }
  for (const SymbolCopy& copy : concrete.symbols)
    ATUNNER_RETURN_IF_ERROR(AddSymbolCopy(copy, addresses, bound));
  ATUNNER_RETURN_IF_ERROR(AddTables(addresses, bound));
  return bound;
}

Status PoisonWorkspaces(Device& device, JudgeKernels& kernels, const BoundPlan& plan,
                        const Poison& poison) {
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    const Buffer& memory = *plan.workspaces[i];
    // Nobody knows the types of a workspace's contents. Of float32, most words are also large
    // integers, and pairs of large 16-bit floats.
    const Poison own = poison.Of(kWorkspacePositions + i);
    const uint64_t words = memory.bytes() / sizeof(float), rest = memory.bytes() % sizeof(float);
    ATUNNER_RETURN_IF_ERROR(
        FillWithPoison(device, kernels, memory.address(), DType::kFloat32, words, own));
    if (rest != 0)
      ATUNNER_RETURN_IF_ERROR(FillWithPoison(device, kernels,
                                             memory.address() + words * sizeof(float),
                                             DType::kUInt8, rest, own.Of(0)));
    device.MarkContents(memory.address(), memory.bytes(), false);
  }
  return {};
}

namespace {

Status PutTables(Device& device, const BoundPlan& plan) {
  for (const AddressTable& table : plan.tables) ATUNNER_RETURN_IF_ERROR(table.Put(device));
  return {};
}

/// Exchanges the contents of a symbol and of its tensor.
Status Exchange(Device& device, LoadedModule& module, const BoundPlan::Copy& copy) {
  ATUNNER_TRY(const auto found, device.FindSymbol(module, copy.symbol));
  std::vector<std::byte> tensor(copy.bytes), symbol(copy.bytes);
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(tensor, copy.from));
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(symbol, found.first));
  ATUNNER_RETURN_IF_ERROR(device.CopyIn(copy.from, symbol));
  return device.CopyIn(found.first, tensor);
}

/// Results of a completed run go where they are compared. The module's variables get their old
/// contents: whatever else of its state has changed would be carried over to the next launch.
Status FetchOutputs(Device& device, LoadedModule& module, const BoundPlan& plan) {
  for (const BoundPlan::Copy& copy : plan.symbol_copies) {
    if (copy.is_output) ATUNNER_RETURN_IF_ERROR(Exchange(device, module, copy));
  }
  for (const AddressTable& table : plan.tables) {
    if (table.is_output) ATUNNER_RETURN_IF_ERROR(table.TakeOut(device));
  }
  return {};
}

}  // namespace

Status CopySymbols(Device& device, LoadedModule& module, const BoundPlan& plan) {
  if (!plan.symbol_copies.empty()) ATUNNER_RETURN_IF_ERROR(PutTables(device, plan));
  for (const BoundPlan::Copy& copy : plan.symbol_copies) {
    ATUNNER_TRY(const auto found, device.FindSymbol(module, copy.symbol));
    if (found.second < copy.bytes) {
      return Invalid("symbol '" + copy.symbol + "' holds " + std::to_string(found.second) +
                     " bytes, the argument has " + std::to_string(copy.bytes));
    }
    ATUNNER_RETURN_IF_ERROR(device.CopyWithin(found.first, copy.from, copy.bytes));
  }
  return {};
}

namespace {

/// What a later launch of a plan adds to the outcome of the earlier ones: its own end, and the sums
/// and writes of all.
void Append(LaunchOutcome later, LaunchOutcome& all) {
  later.blocks_executed += all.blocks_executed;
  later.warp_instructions += all.warp_instructions;
  later.printed.insert(0, all.printed);
  std::vector<AddressRange>& written = later.written;
  written.insert(written.end(), all.written.begin(), all.written.end());
  std::ranges::sort(written, {}, &AddressRange::begin);
  size_t kept = 0;
  for (const AddressRange& range : written) {
    if (kept > 0 && range.begin <= written[kept - 1].end)
      written[kept - 1].end = std::max(written[kept - 1].end, range.end);
    else
      written[kept++] = range;
  }
  written.resize(kept);
  all = std::move(later);
}

}  // namespace

Result<LaunchOutcome> RunPlan(Device& device, LoadedModule& module, const BoundPlan& plan,
                              const LaunchOptions& options) {
  ATUNNER_RETURN_IF_ERROR(PutTables(device, plan));
  LaunchOutcome all;
  for (const BoundStep& step : plan.steps) {
    ATUNNER_TRY(LaunchOutcome outcome,
                device.Launch(module, step.entry, step.shape, step.args, options));
    Append(std::move(outcome), all);
    if (!all.completed()) break;
  }
  if (all.completed()) ATUNNER_RETURN_IF_ERROR(FetchOutputs(device, module, plan));
  return all;
}

}  // namespace atunner
