#include "atunner/jobs/operators/self_test.h"

#include <algorithm>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/examine_limit.h"
#include "atunner/operators/operator.h"

namespace atunner::jobs {
namespace {

constexpr double kLaunchSeconds = 60;

/// True for the operators that are tested: the classes, and of the library's operators some that
/// stand for their families. The tests of the families run all.
bool IsTested(const OperatorInfo& info) {
  static constexpr std::string_view kSome[] = {"gelu", "rms_norm", "sum"};
  const bool of_library = !info.example.empty();
  return !of_library || std::ranges::find(kSome, info.name) != std::end(kSome);
}

OperatorRequest RequestFor(const std::string& name, DType dtype) {
  OperatorRequest request{{{17, 509}}, dtype, {}};
  if (name == "matmul") request.shapes = {{33, 47, 29}};
  if (name == "conv2d") request.shapes = {{2, 7, 9, 5}, {6, 3, 3}};
  if (name == "flash_attention") request.shapes = {{1, 2, 37, 24}};
  return request;
}

/// The kernel to test and its check sizes: a family's default configuration, or the plain kernel.
Status ChooseKernel(const Operator& op, const KernelSpec& spec, const DeviceProfile& profile,
                    RenderedKernel& kernel, std::vector<Dims>& check_dims, SelfTestRow& row) {
  const auto schedule = MakeTemplate(spec, profile);
  row.kernel = schedule ? "schedule" : "plain kernel";
  if (!schedule) {
    kernel = op.Naive(spec);
    return {};
  }
  const Configuration configuration = (*schedule)->Default();
  ATUNNER_TRY(kernel, (*schedule)->Render(configuration));
  check_dims = (*schedule)->CheckDims(configuration);
  return {};
}

Result<SelfTestRow> TestOne(const Operator& op, DType dtype, const Target& target,
                            Compiler& compiler, Judge& judge) {
  SelfTestRow row{op.info().name, dtype, "", {}};
  ATUNNER_TRY(const KernelSpec spec, op.Instantiate(RequestFor(op.info().name, dtype)));
  RenderedKernel kernel;
  std::vector<Dims> check_dims;
  ATUNNER_RETURN_IF_ERROR(ChooseKernel(op, spec, target.profile, kernel, check_dims, row));
  ATUNNER_TRY(const CompileOutcome outcome,
              compiler.Compile({kernel.source, EntriesOf(kernel.plan), target.profile.Arch()}));
  row.verdict = {VerdictKind::kCompileError, outcome.error, {}, false};
  if (!outcome.ok()) return row;
  ATUNNER_RETURN_IF_ERROR(judge.Begin({spec, 1, kLaunchSeconds, /*reproducible=*/true}));
  ATUNNER_TRY(const JudgeAnswer answer,
              judge.Examine({*outcome.module, kernel.plan, check_dims},
                            {.time = false, .thorough = false, .incumbent_ns = {}, .seed = 1}));
  row.verdict = answer.verdict;
  return row;
}

}  // namespace

Result<SelfTestResult> SelfTest(const TargetChoice& choice, Services& services,
                                const std::function<void(const SelfTestRow&)>& on_row) {
  ATUNNER_TRY(const Target target, services.devices.Choose(choice));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  const auto judge = services.devices.MakeJudge(target, kExamineSeconds);
  SelfTestResult result{target.profile.name, target.evidence(), {}, 0};
  for (const Operator* op : AllOperators()) {
    if (!IsTested(op->info())) continue;
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      ATUNNER_TRY(SelfTestRow row, TestOne(*op, dtype, target, *compiler, *judge));
      result.failed += !row.verdict.correct();
      on_row(row);
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

}  // namespace atunner::jobs
