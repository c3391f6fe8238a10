#include "atunner/verify/budget/baseline.h"

namespace atunner {

Result<std::unique_ptr<Program>> BuildProgram(const OracleContext& context,
                                              const RenderedKernel& kernel) {
  ATUNNER_TRY(const CompileOutcome outcome,
              context.compiler.Compile(
                  {kernel.source, EntriesOf(kernel.plan), ArchitectureFor(context.device)}));
  if (!outcome.ok())
    return Invalid("the reference does not compile: " + outcome.error, kernel.source.name);
  auto program = std::make_unique<Program>();
  program->compiled = *outcome.module;
  ATUNNER_TRY(program->module, context.device.Load(program->compiled));
  program->plan = kernel.plan;
  return program;
}

}  // namespace atunner
