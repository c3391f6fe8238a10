#include "atunner/verify/oracle.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

/// Factor on errors of nudged runs with cancelling inputs: in another order of summation partial
/// sums of alternating terms grow far more than where neighbours cancel.
constexpr double kSummationOrders = 4;
constexpr uint64_t kSmallBytes = 8 << 20;
/// Share of an output's elements that may be undetermined; beyond it the others prove too little.
constexpr double kMostUndetermined = 0.25;
// FLOP of the float64 reference on one core in about a tenth of a second
constexpr double kCpuFlops = 2e8;
// With a virtual GPU the alternative, interpreting a kernel, is slower still.
constexpr double kCpuFlopsVirtual = 5e9;
// For larger tensors compiling and running a float64 kernel is faster.
constexpr double kCpuElements = 1e6;

/// √(squares / finite elements).
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
  return !mostly_undetermined() &&
         std::ranges::all_of(outputs, [](const Output& output) { return output.discriminates; });
}

bool Reference::mostly_undetermined() const {
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
  ATUNNER_RETURN_IF_ERROR(store->SplitIntoSlices(free_bytes / 4));
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

Status OracleStore::SplitIntoSlices(uint64_t most_bytes) {
  const auto fits = [&](const KernelSpec& spec) {
    uint64_t bytes = 0;
    const auto plan = Resolve(operator_->OracleKernel(spec).plan, spec.dims, spec.attributes);
    if (!plan) return false;
    for (const ConcreteWorkspace& workspace : plan->workspaces) bytes += workspace.bytes;
    return bytes <= most_bytes;
  };
  if (fits(spec_)) return {};
  if (auto tasks = operator_->SplitIntoEqualTasks(spec_, fits)) {
    sliced_.spec = std::move(tasks->each);
    sliced_.slices = tasks->count;
  }
  return {};
}

std::optional<MemoryRange> OracleStore::SliceOf(const BaselinePrograms& programs, int64_t slice,
                                                const TaskBuffers& buffers,
                                                const RangeOf& elsewhere, const std::string& name) {
  std::optional<MemoryRange> range = elsewhere(name);
  const TaskBuffers::Tensor* tensor = buffers.Find(name);
  if (!range && tensor == nullptr) return std::nullopt;
  if (!range) range = {tensor->address, static_cast<uint64_t>(tensor->shape.bytes)};
  const uint64_t bytes = range->bytes / static_cast<uint64_t>(programs.slices);
  return MemoryRange{range->address + bytes * static_cast<uint64_t>(slice), bytes};
}

Status OracleStore::RunBaselineProgram(const BaselinePrograms& programs, const Program& program,
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
  // Elements and not bytes, because a packed 4-bit weight takes as long as a float.
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
  ATUNNER_RETURN_IF_ERROR(SampleBaselineDecisions(buffers, instance, reference));
  order_.push_back(key);
  const Reference* kept = &(cache_[key] = std::move(reference));
  Evict();
  return kept;
}

void OracleStore::Evict() {
  uint64_t total = 0;
  for (const auto& [key, reference] : cache_) total += reference.bytes;
  while (total > limit_bytes_ && order_.size() > 1) {  // the newest is about to be used
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
  BaselinePrograms& programs = ProgramsFor(buffers.dims());
  if (!programs.reference) {  // built late: not needed if the CPU computes all references
    ATUNNER_TRY(programs.reference, Build(operator_->OracleKernel(programs.spec)));
  }
  const RangeOf wide = [&](const std::string& name) -> std::optional<MemoryRange> {
    const auto output = std::ranges::find(reference.outputs, name, &Reference::Output::name);
    if (output == reference.outputs.end()) return std::nullopt;
    return MemoryRange{output->masked->address(), output->elements * sizeof(double)};
  };
  return RunBaselineProgram(programs, *programs.reference, buffers, wide, "float64 reference");
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
  if (operator_ != nullptr) ATUNNER_RETURN_IF_ERROR(MeasureBaseline(buffers, instance, reference));
  for (Reference::Output& output : reference.outputs)
    ATUNNER_RETURN_IF_ERROR(TestTrivialOutputs(buffers, output));
  return {};
}

Result<OracleStore::BaselinePrograms*> OracleStore::BaselineFor(const Dims& dims) {
  BaselinePrograms& programs = ProgramsFor(dims);
  if (!programs.baseline) {
    ATUNNER_TRY(programs.baseline, Build(operator_->ErrorBaseline(programs.spec)));
  }
  return &programs;
}

Result<OracleStore::BaselinePrograms*> OracleStore::DecisionProgramsFor(const Dims& dims) {
  BaselinePrograms& programs = ProgramsFor(dims);
  if (!std::exchange(programs.decisions_known, true)) {
    programs.decisions = operator_->Decisions(programs.spec);
    if (programs.decisions) {
      ATUNNER_TRY(programs.deciding, Build(programs.decisions->kernel));
    }
  }
  return &programs;
}

Result<std::vector<CompareStats>> OracleStore::RunBaseline(const TaskBuffers& buffers,
                                                           const Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  ATUNNER_TRY(const BaselinePrograms* programs, BaselineFor(buffers.dims()));
  const RangeOf in_place = [](const std::string&) { return std::nullopt; };
  ATUNNER_RETURN_IF_ERROR(
      RunBaselineProgram(*programs, *programs->baseline, buffers, in_place, "plain"));
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
  request.decisions = output.decision_slots;
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

Result<std::vector<CompareStats>> OracleStore::RunBaselineNudged(const TaskBuffers& buffers,
                                                                 const Reference& reference,
                                                                 uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
  ATUNNER_TRY(auto stats, RunBaseline(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
  return stats;
}

Result<std::vector<CompareStats>> OracleStore::RunBaselineNarrowed(const TaskBuffers& buffers,
                                                                   const InputInstance& instance,
                                                                   const Reference& reference) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput) continue;
    ATUNNER_RETURN_IF_ERROR(kernels_.Narrow(tensor.address, tensor.spec->dtype,
                                            static_cast<uint64_t>(tensor.shape.elements)));
  }
  ATUNNER_TRY(auto stats, RunBaseline(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(kernels_, instance));
  return stats;
}

namespace {
/// True if zeros, a constant or an output whose second half is zero is within the budget. Their
/// relative errors against the reference r follow from its sums: zeros err by 1, the best constant
/// (the mean) by √(1 - n·mean² / Σr²), the half by √(Σ of the second half r² / Σr²).
bool ConstantPasses(const Reference::Output& output) {
  const CompareStats& self = output.self;
  if (!(self.squared_reference > 0)) return true;  // the reference is zero everywhere
  const double bound = output.budget.norm;
  const auto n = static_cast<double>(self.finite);
  const double mean = self.sum_reference / n;
  const double constant = std::sqrt(std::max(0.0, 1.0 - n * mean * mean / self.squared_reference));
  const double half = std::sqrt(self.squared_reference_second_half / self.squared_reference);
  return 1.0 <= bound || (output.elements > 1 && (constant <= bound || half <= bound));
}

/// Keeps the larger error of two runs, output by output; the other's counts `times` over.
void TakeLarger(const std::vector<CompareStats>& other, std::vector<CompareStats>& worst,
                double times = 1) {
  for (size_t i = 0; i < worst.size(); ++i) worst[i].TakeLarger(other[i], times);
}
}  // namespace

Status OracleStore::AddNudgedRuns(const TaskBuffers& buffers, const InputInstance& instance,
                                  const Reference& reference, std::vector<CompareStats>& worst) {
  // Some inputs amplify every rounding: exponentials of large logits, cancelling sums, and in a
  // small task differences beside a spike. One run is then a single draw of a large random error.
  // No algorithm of this precision can get right what changes with the last bit of the inputs, so
  // the baseline also runs on nudged inputs, and its largest error counts.
  const bool small = reference.small();
  const bool cancels = instance.family == InputFamily::kCancelling;
  const bool spiked = instance.family == InputFamily::kNeedle ||
                      instance.family == InputFamily::kHeavyTail;
  const bool amplifies = cancels || instance.family == InputFamily::kLargeLogits ||
                         (small && spiked);
  const int draws = !amplifies ? 0 : small ? 4 : 1;
  for (int draw = 0; draw < draws; ++draw) {
    ATUNNER_TRY(const auto nudged,
                RunBaselineNudged(buffers, reference, Mix64(instance.seed + draw)));
    TakeLarger(nudged, worst, cancels ? kSummationOrders : 1);
  }
  return {};
}

Status OracleStore::MeasureBaseline(const TaskBuffers& buffers, const InputInstance& instance,
                                    Reference& reference) {
  ATUNNER_TRY(std::vector<CompareStats> worst, RunBaseline(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(AddNudgedRuns(buffers, instance, reference, worst));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    output.budget.baseline_norm = worst[i].RelativeNorm();
    output.budget.baseline_element = worst[i].worst;
    output.overflows = instance.family != InputFamily::kNan &&
                       (worst[i].unwritten || worst[i].new_nonfinite);
  }
  if (AccuracyOf(spec_) == Accuracy::kFast) {
    ATUNNER_TRY(const auto narrow, RunBaselineNarrowed(buffers, instance, reference));
    TakeLarger(narrow, worst);
  }
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    reference.outputs[i].baseline = worst[i];
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
  output.budget = BudgetFromBaseline(output.baseline, output.dtype, spec_.tolerance,
                                     AccuracyOf(spec_), terms);
  output.budget.baseline_norm = before.baseline_norm;
  output.budget.baseline_element = before.baseline_element;
}

Status OracleStore::TestTrivialOutputs(const TaskBuffers& buffers, Reference::Output& output) {
  output.discriminates = !output.overflows && !ConstantPasses(output);
  if (!(output.self.squared_reference > 0)) return {};
  // An output of a multi-tensor task depends on few of the inputs; others need not be compared.
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
    if (stats.RelativeNorm() <= output.budget.norm) output.discriminates = false;
  }
  return {};
}

}  // namespace atunner
