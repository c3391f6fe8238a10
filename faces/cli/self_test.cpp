// `test`: compile, run and verify one kernel per operator and dtype on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/codegen/template/family.h"
#include "atunner/model/json/json.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"

namespace atunner::cli {

Result<int> SelfTest(const Common& common, const std::string& target_name) {
  ATUNNER_TRY(const Target target, ChooseTarget(target_name, false));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  const auto judge = MakeRunner(target, 180);
  int failed = 0;
  Json rows = Json::array();
  for (const Operator* op : AllOperators()) {
    // Of the library's operators those that stand for the families: the tests of the families run
    // all.
    static constexpr std::string_view kSome[] = {"gelu", "rms_norm", "sum"};
    const bool library = !op->info().example.empty();
    if (library && std::ranges::find(kSome, op->info().name) == std::end(kSome)) continue;
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      OperatorRequest request{{{17, 509}}, dtype, {}};
      if (op->info().name == "matmul") request.shapes = {{33, 47, 29}};
      if (op->info().name == "conv2d") request.shapes = {{2, 7, 9, 5}, {6, 3, 3}};
      if (op->info().name == "flash_attention") request.shapes = {{1, 2, 37, 24}};
      ATUNNER_TRY(const KernelSpec spec, op->Instantiate(request));
      auto schedule = MakeTemplate(spec, target.profile);
      RenderedKernel kernel = op->Naive(spec);
      std::string which = "plain kernel";
      std::vector<Dims> check_dims;
      if (schedule) {
        const Configuration configuration = (*schedule)->Default();
        ATUNNER_TRY(kernel, (*schedule)->Render(configuration));
        check_dims = (*schedule)->CheckDims(configuration);
        which = "schedule";
      }
      ATUNNER_TRY(
          const CompileOutcome outcome,
          compiler->Compile({kernel.source, EntriesOf(kernel.plan), target.profile.Arch()}));
      Verdict verdict{VerdictKind::kCompileError, outcome.error, {}, false};
      if (outcome.ok()) {
        ATUNNER_RETURN_IF_ERROR(judge->Begin({spec, 1, 60}));
        ATUNNER_TRY(
            const JudgeAnswer answer,
            judge->Examine({*outcome.module, kernel.plan, check_dims},
                           {.time = false, .thorough = false, .incumbent_ns = {}, .seed = 1}));
        verdict = answer.verdict;
      }
      failed += !verdict.correct();
      rows.push_back({{"operator", op->info().name},
                      {"dtype", Name(dtype)},
                      {"kernel", which},
                      {"verdict", Name(verdict.kind)},
                      {"reason", verdict.reason},
                      {"error", verdict.WorstError()}});
      if (!common.json)
        fmt::print("{:<20} {:<9} {:<13} {} {}\n", op->info().name, Name(dtype), which,
                   Name(verdict.kind), verdict.reason);
    }
  }
  if (common.json)
    fmt::print("{}\n", Json{{"device", target.profile.name},
                            {"evidence", Name(target.evidence())},
                            {"failed", failed},
                            {"rows", rows}}
                           .dump());
  else
    fmt::print("{} failed\n", failed);
  return failed ? 1 : 0;
}

}  // namespace atunner::cli
