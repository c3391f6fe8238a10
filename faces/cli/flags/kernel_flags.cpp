#include "faces/cli/flags/kernel_flags.h"

#include "faces/cli/flags/checks.h"

namespace atunner::cli {

Result<jobs::KernelRequest> KernelFlags::Request() const {
  jobs::KernelRequest request;
  request.file = file;
  request.kernel = kernel;
  if (!task.operator_name.empty()) {
    ATUNNER_TRY(request.task, task.Request());
  }
  request.configuration = configuration;
  request.gpu = target;
  request.timeout_seconds = timeout_seconds;
  return request;
}

void AddKernel(CLI::App* verb, KernelFlags& flags) {
  verb->add_option("file", flags.file, "kernel.cu, kernel.toml, T1 .json or an artifact's folder");
  verb->add_option("--kernel", flags.kernel, "which kernel of a .cu");
  verb->add_option("--operator", flags.task.operator_name, "an operator instead of a file");
  verb->add_option("--input-shape", flags.task.shapes, "shapes, as the operator asks for them");
  verb->add_option("--dtype", flags.task.dtype, "float32, float16 or bfloat16");
  verb->add_option("--attr", flags.task.attributes, "operator attribute, key=value");
  verb->add_option("--config", flags.configuration,
                   "parameters, k=v,k=v; the others keep their defaults");
  verb->add_option("--target-gpu", flags.target,
                   "GPU to compile and check for; auto: the one here, or A100");
  verb->add_option("--timeout", flags.timeout_seconds, "seconds one launch may take")
      ->check(Positive());
}

}  // namespace atunner::cli
