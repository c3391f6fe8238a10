#include "atunner/verify/oracle.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

/// Sums of terms that alternate err by what the order lets partial ones grow to: far more than
/// neighbours that cancel do.
constexpr double kOrders = 4;
constexpr uint64_t kSmallBytes = 8 << 20;
/// Of an output's elements, where more may be what they like the others prove too little.
constexpr double kMostUndetermined = 0.25;
// about a tenth of a second of the float64 reference on one core
constexpr double kCpuFlops = 2e8;
// with a virtual GPU the alternative is to interpret a kernel: slower still
constexpr double kCpuFlopsVirtual = 5e9;
constexpr double kCpuElements = 1e6;  // of more a float64 kernel is compiled and done before

/// √(squares / how many are finite).
double RmsOf(double squares, const CompareStats& stats) {
  return stats.finite ? std::sqrt(squares / static_cast<double>(stats.finite)) : 0.0;
}

uint64_t FreshKey() {
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) ^ entropy() ^ 1;
}

Result<std::vector<double>> DownloadWide(Device& device, const TaskBuffers::Tensor& tensor) {
  std::vector<std::byte> raw(static_cast<size_t>(tensor.shape.bytes));
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(raw, tensor.address));
  std::vector<double> wide(static_cast<size_t>(tensor.shape.elements));
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = LoadElement(tensor.spec->dtype, raw.data(), i);
  return wide;
}

}  // namespace

bool Reference::small() const { return bytes < kSmallBytes; }

bool Reference::discriminates() const {
  return !open() &&
         std::ranges::all_of(outputs, [](const Output& output) { return output.discriminates; });
}

bool Reference::open() const {
  return std::ranges::any_of(outputs, [](const Output& output) {
    return static_cast<double>(output.undetermined) >
           kMostUndetermined * static_cast<double>(output.self.finite);
  });
}

bool Reference::overflows() const {
  return std::ranges::any_of(outputs, [](const Output& output) { return output.overflows; });
}

Result<std::unique_ptr<OracleStore>> OracleStore::Make(Device& device, Compiler& compiler,
                                                       JudgeKernels& kernels,
                                                       const KernelSpec& spec) {
  std::unique_ptr<OracleStore> store(new OracleStore(device, compiler, kernels, spec));
  ATUNNER_TRY(const uint64_t free_bytes, device.FreeBytes());
  store->limit_bytes_ = free_bytes / 3;
  if (spec.oracle.kind == Oracle::Kind::kKernel) {
    if (!spec.oracle.kernel) return Invalid("the task names no reference kernel");
    ATUNNER_TRY(store->user_kernel_, store->Build(*spec.oracle.kernel));
    return store;
  }
  if (spec.oracle.kind == Oracle::Kind::kGraph) {
    if (const auto graph = GraphOf(spec); !graph) return std::unexpected(graph.error());
  }
  store->operator_ = OracleOf(spec);
  if (store->operator_ == nullptr)
    return Invalid("unknown operator '" + spec.oracle.operator_name + "'");
  store->whole_.spec = spec;
  ATUNNER_RETURN_IF_ERROR(store->TakeApart(free_bytes / 4));
  return store;
}

Result<std::unique_ptr<OracleStore::Program>> OracleStore::Build(
    const RenderedKernel& kernel) const {
  ATUNNER_TRY(const CompileOutcome outcome,
              compiler_.Compile({kernel.source, EntriesOf(kernel.plan), ArchitectureFor(device_)}));
  if (!outcome.ok())
    return Invalid("the reference does not compile: " + outcome.error, kernel.source.name);
  auto program = std::make_unique<Program>();
  ATUNNER_TRY(program->module, device_.Load(*outcome.module));
  program->plan = kernel.plan;
  return program;
}

Status OracleStore::TakeApart(uint64_t most_bytes) {
  const auto fits = [&](const KernelSpec& spec) {
    uint64_t bytes = 0;
    const auto plan = Resolve(operator_->OracleKernel(spec).plan, spec.dims, spec.attributes);
    if (!plan) return false;
    for (const ConcreteWorkspace& workspace : plan->workspaces) bytes += workspace.bytes;
    return bytes <= most_bytes;
  };
  if (fits(spec_)) return {};
  if (auto tasks = operator_->SplitIntoEqualTasks(spec_, fits)) {
    apart_.spec = std::move(tasks->each);
    apart_.slices = tasks->count;
  }
  return {};
}

std::optional<MemoryRange> OracleStore::SliceOf(const PlainPrograms& programs, int64_t slice,
                                                const TaskBuffers& buffers,
                                                const RangeOf& elsewhere, const std::string& name) {
  std::optional<MemoryRange> range = elsewhere(name);
  const TaskBuffers::Tensor* tensor = buffers.Find(name);
  if (!range && tensor == nullptr) return std::nullopt;
  if (!range) range = {tensor->address, static_cast<uint64_t>(tensor->shape.bytes)};
  const uint64_t bytes = range->bytes / static_cast<uint64_t>(programs.slices);
  return MemoryRange{range->address + bytes * static_cast<uint64_t>(slice), bytes};
}

Status OracleStore::RunPlain(const PlainPrograms& programs, const Program& program,
                             const TaskBuffers& buffers, const RangeOf& elsewhere,
                             const char* what) {
  for (int64_t slice = 0; slice < programs.slices; ++slice) {
    const AddressOf address = [&](const std::string& name) -> std::optional<DeviceAddress> {
      const auto range = SliceOf(programs, slice, buffers, elsewhere, name);
      return range ? std::optional(range->address) : std::nullopt;
    };
    ATUNNER_TRY(const BoundPlan plan,
                BindPlan(device_, program.plan, programs.spec, buffers, address));
    ATUNNER_TRY(const LaunchOutcome outcome,
                RunPlan(device_, *program.module, plan,
                        {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
    if (!outcome.completed())
      return Fail(ErrorCode::kInternal,
                  std::string("the ") + what + " kernel failed: " + outcome.message);
  }
  return {};
}

bool OracleStore::UseCpu(const Dims& dims) const {
  if (operator_ == nullptr) return false;
  const double flops = FlopCount(spec_, dims).value_or(1e300);
  // Not bytes: a byte of packed weights takes as long as a float.
  double elements = 0;
  for (const ArgSpec& arg : spec_.args) {
    if (arg.role == Role::kScalar) continue;
    const auto shape = ShapeOf(arg, spec_, dims);
    elements += shape ? static_cast<double>(shape->elements) : 1e300;
  }
  const bool is_virtual = device_.evidence() == Evidence::kPredicted;
  return flops <= (is_virtual ? kCpuFlopsVirtual : kCpuFlops) &&
         elements <= kCpuElements * (is_virtual ? 32 : 1);
}

std::string OracleStore::Describe(const Dims& dims) const {
  if (operator_ == nullptr) return "the kernel as given";
  return UseCpu(dims) ? "float64 reference on the CPU" : "plain kernel in float64";
}

const Reference* OracleStore::Find(const Dims& dims, const InputInstance& instance) const {
  const auto found = cache_.find({dims, instance});
  return found == cache_.end() ? nullptr : &found->second;
}

Result<const Reference*> OracleStore::Get(const TaskBuffers& buffers,
                                          const InputInstance& instance) {
  if (const Reference* known = Find(buffers.dims(), instance)) return known;
  const std::pair key(buffers.dims(), instance);
  ATUNNER_TRY(Reference reference, Compute(buffers));
  ATUNNER_RETURN_IF_ERROR(Finish(buffers, instance, reference));
  ATUNNER_RETURN_IF_ERROR(SettleChoices(buffers, instance, reference));
  order_.push_back(key);
  const Reference* kept = &(cache_[key] = std::move(reference));
  Evict();
  return kept;
}

void OracleStore::Evict() {
  uint64_t total = 0;
  for (const auto& [key, reference] : cache_) total += reference.bytes;
  while (total > limit_bytes_ && order_.size() > 1) {  // the newest stays: it is about to be used
    total -= cache_[order_.front()].bytes;
    cache_.erase(order_.front());
    order_.pop_front();
  }
}

Result<Reference> OracleStore::Compute(const TaskBuffers& buffers) {
  Reference reference;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_output()) continue;
    Reference::Output output;
    output.name = tensor.spec->name;
    output.dtype = tensor.spec->dtype;
    output.elements = static_cast<uint64_t>(tensor.shape.elements);
    ATUNNER_TRY(output.masked, device_.Allocate(output.elements * sizeof(double)));
    reference.bytes += output.elements * sizeof(double);
    reference.outputs.push_back(std::move(output));
  }
  const Status computed = UseCpu(buffers.dims()) ? ComputeOnCpu(buffers, reference)
                          : operator_ != nullptr ? ComputeByOperatorKernel(buffers, reference)
                                                 : ComputeByUserKernel(buffers, reference);
  if (!computed) return std::unexpected(computed.error());
  return reference;
}

Status OracleStore::ComputeOnCpu(const TaskBuffers& buffers, Reference& reference) const {
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> outputs;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.is_input()) {
      ATUNNER_TRY(std::vector<double> wide, DownloadWide(device_, tensor));
      inputs.push_back(std::move(wide));
    }
    if (tensor.is_output()) outputs.emplace_back(static_cast<size_t>(tensor.shape.elements));
  }
  ATUNNER_RETURN_IF_ERROR(operator_->Reference(spec_, buffers.dims(), inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(reference.outputs[i].masked->address(),
                                           std::as_bytes(std::span(outputs[i]))));
  }
  return {};
}

Status OracleStore::ComputeByOperatorKernel(const TaskBuffers& buffers, Reference& reference) {
  PlainPrograms& programs = ProgramsFor(buffers.dims());
  if (!programs.reference) {  // where the CPU computes all references it is not needed
    ATUNNER_TRY(programs.reference, Build(operator_->OracleKernel(programs.spec)));
  }
  const RangeOf wide = [&](const std::string& name) -> std::optional<MemoryRange> {
    const auto output = std::ranges::find(reference.outputs, name, &Reference::Output::name);
    if (output == reference.outputs.end()) return std::nullopt;
    return MemoryRange{output->masked->address(), output->elements * sizeof(double)};
  };
  return RunPlain(programs, *programs.reference, buffers, wide, "float64 reference");
}

Status OracleStore::ComputeByUserKernel(const TaskBuffers& buffers, Reference& reference) const {
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  ATUNNER_TRY(const BoundPlan plan, BindPlan(device_, user_kernel_->plan, spec_, buffers));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device_, *user_kernel_->module, plan));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device_, *user_kernel_->module, plan,
                      {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
  if (!outcome.completed()) {
    return Invalid(
        "the kernel as given does not run: " +
            (outcome.hazards.empty() ? outcome.message
                                     : outcome.hazards[0].where + ": " + outcome.hazards[0].detail),
        spec_.name, "check its launch, argument sizes and problem size");
  }
  for (Reference::Output& output : reference.outputs) {
    const TaskBuffers::Tensor* tensor = buffers.Find(output.name);
    ATUNNER_RETURN_IF_ERROR(
        kernels_.Widen(tensor->address, output.dtype, output.elements, output.masked->address()));
  }
  return {};
}

Status OracleStore::Finish(const TaskBuffers& buffers, const InputInstance& instance,
                           Reference& reference) {
  for (Reference::Output& output : reference.outputs) {
    CompareRequest self{output.masked->address(), DType::kFloat64, output.masked->address(),
                        output.elements};
    self.poison_counts = false;
    ATUNNER_TRY(output.self, kernels_.Compare(self));
    const double rms = RmsOf(output.self.squared_reference, output.self);
    output.scale = ElementScale(spec_.tolerance, rms);
    output.budget = DefaultBudget(output.dtype, spec_.tolerance, rms);
    output.key = FreshKey();
    ATUNNER_RETURN_IF_ERROR(kernels_.Mask(output.masked->address(), output.elements, output.key));
  }
  if (operator_ != nullptr) ATUNNER_RETURN_IF_ERROR(MeasureHonest(buffers, instance, reference));
  for (Reference::Output& output : reference.outputs)
    ATUNNER_RETURN_IF_ERROR(TestNullCandidates(buffers, output));
  return {};
}

Result<OracleStore::PlainPrograms*> OracleStore::YardstickFor(const Dims& dims) {
  PlainPrograms& programs = ProgramsFor(dims);
  if (!programs.yardstick) {
    ATUNNER_TRY(programs.yardstick, Build(operator_->ErrorBaseline(programs.spec)));
  }
  return &programs;
}

Result<OracleStore::PlainPrograms*> OracleStore::ChoosingFor(const Dims& dims) {
  PlainPrograms& programs = ProgramsFor(dims);
  if (!std::exchange(programs.asked_for_choices, true)) {
    programs.choices = operator_->Decisions(programs.spec);
    if (programs.choices) {
      ATUNNER_TRY(programs.choosing, Build(programs.choices->kernel));
    }
  }
  return &programs;
}

Result<std::vector<CompareStats>> OracleStore::RunHonest(const TaskBuffers& buffers,
                                                         const Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  ATUNNER_TRY(const PlainPrograms* programs, YardstickFor(buffers.dims()));
  const RangeOf in_place = [](const std::string&) { return std::nullopt; };
  ATUNNER_RETURN_IF_ERROR(RunPlain(*programs, *programs->yardstick, buffers, in_place, "plain"));
  std::vector<CompareStats> stats;
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(const CompareStats one, CompareWith(output, buffers.Find(output.name)->address));
    stats.push_back(one);
  }
  return stats;
}

Result<CompareStats> OracleStore::CompareWith(const Reference::Output& output, DeviceAddress data,
                                              double element_bound) {
  CompareRequest request{data,       output.dtype, output.masked->address(), output.elements,
                         output.key, output.scale};
  request.element_bound = element_bound;
  request.choices = output.choices;
  return kernels_.Compare(request);
}

Status OracleStore::NudgeInputs(const TaskBuffers& buffers, uint64_t seed) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    const DType dtype = tensor.spec->dtype;
    if (tensor.spec->role != Role::kInput || (dtype != DType::kFloat32 && dtype != DType::kFloat64))
      continue;
    ATUNNER_RETURN_IF_ERROR(kernels_.Nudge(tensor.address, dtype,
                                           static_cast<uint64_t>(tensor.shape.elements),
                                           seed + tensor.position));
  }
  return {};
}

Result<std::vector<CompareStats>> OracleStore::RunHonestNudged(const TaskBuffers& buffers,
                                                               const Reference& reference,
                                                               uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
  ATUNNER_TRY(auto stats, RunHonest(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
  return stats;
}

Result<std::vector<CompareStats>> OracleStore::RunHonestNarrow(const TaskBuffers& buffers,
                                                               const InputInstance& instance,
                                                               const Reference& reference) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput) continue;
    ATUNNER_RETURN_IF_ERROR(kernels_.Narrow(tensor.address, tensor.spec->dtype,
                                            static_cast<uint64_t>(tensor.shape.elements)));
  }
  ATUNNER_TRY(auto stats, RunHonest(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(kernels_, instance));
  return stats;
}

namespace {
/// The larger error of two runs, output by output, the other's `times` over.
void TakeLarger(const std::vector<CompareStats>& other, std::vector<CompareStats>& worst,
                double times = 1) {
  for (size_t i = 0; i < worst.size(); ++i) worst[i].TakeLarger(other[i], times);
}
}  // namespace

Status OracleStore::MeasureHonest(const TaskBuffers& buffers, const InputInstance& instance,
                                  Reference& reference) {
  ATUNNER_TRY(std::vector<CompareStats> worst, RunHonest(buffers, reference));
  // Exponentials of large numbers amplify every rounding, sums of what cancels do, and in a small
  // task differences beside a spike or of a probability near one and one; how much of it one run
  // shows is luck. What the last bit of the inputs changes is what no algorithm of this precision
  // can promise.
  const bool small = reference.small();
  const bool cancels = instance.family == InputFamily::kCancelling;
  const bool spiked = instance.family == InputFamily::kNeedle ||
                      instance.family == InputFamily::kHeavyTail;
  const bool amplifies = cancels || instance.family == InputFamily::kLargeLogits ||
                         (small && spiked);
  const int draws = !amplifies ? 0 : small ? 4 : 1;
  for (int draw = 0; draw < draws; ++draw) {
    ATUNNER_TRY(const auto nudged,
                RunHonestNudged(buffers, reference, Mix64(instance.seed + draw)));
    TakeLarger(nudged, worst, cancels ? kOrders : 1);
  }
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    output.budget.honest_norm = worst[i].RelativeNorm();
    output.budget.honest_element = worst[i].worst;
    output.overflows = instance.family != InputFamily::kNan &&
                       (worst[i].unwritten || worst[i].new_nonfinite);
  }
  if (AccuracyOf(spec_) == Accuracy::kFast) {
    ATUNNER_TRY(const auto narrow, RunHonestNarrow(buffers, instance, reference));
    TakeLarger(narrow, worst);
  }
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    reference.outputs[i].honest = worst[i];
    SetBudget(buffers, reference.outputs[i]);
  }
  return {};
}

void OracleStore::SetBudget(const TaskBuffers& buffers, Reference::Output& output) const {
  TermCounts terms;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors())
    terms.elements = std::max(terms.elements, static_cast<double>(tensor.shape.elements));
  terms.products = operator_->ProductsSummed(spec_, buffers.dims(), output.name);
  terms.few_sums = operator_->TermsOfFewSums(spec_, buffers.dims(), output.name, kFewElements);
  const ErrorBudget before = output.budget;
  output.budget = BudgetFromHonest(output.honest, output.dtype, spec_.tolerance, AccuracyOf(spec_),
                                   terms);
  output.budget.honest_norm = before.honest_norm;
  output.budget.honest_element = before.honest_element;
}

Status OracleStore::TestNullCandidates(const TaskBuffers& buffers, Reference::Output& output) {
  const CompareStats& self = output.self;
  const double bound = output.budget.norm;
  output.discriminates = !output.overflows;
  if (!(self.squared_reference > 0)) {  // the right answer is zero everywhere: zeros would pass
    output.discriminates = false;
    return {};
  }
  const auto n = static_cast<double>(self.finite);
  const double mean = self.sum_reference / n;
  const double constant = std::sqrt(std::max(0.0, 1.0 - n * mean * mean / self.squared_reference));
  const double half = std::sqrt(self.squared_reference_second_half / self.squared_reference);
  // Zeros err by 1, the best constant by `constant`, an output whose second half is zero by `half`.
  if (1.0 <= bound || (constant <= bound && output.elements > 1) ||
      (half <= bound && output.elements > 1))
    output.discriminates = false;
  // Of many tensors, each has to do with few.
  const auto sources = SourcesOf(spec_, output.name);
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput ||
        static_cast<uint64_t>(tensor.shape.elements) != output.elements)
      continue;
    if (sources && std::ranges::find(*sources, tensor.spec->name) == sources->end()) continue;
    CompareRequest copy{tensor.address,  tensor.spec->dtype, output.masked->address(),
                        output.elements, output.key,         output.scale};
    copy.poison_counts = false;
    ATUNNER_TRY(const CompareStats stats, kernels_.Compare(copy));
    if (stats.RelativeNorm() <= bound) output.discriminates = false;
  }
  return {};
}

}  // namespace atunner
