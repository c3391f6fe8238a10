#include "atunner/mcp/prompts.h"

#include <nlohmann/json.hpp>

namespace atunner::mcp {
namespace {

constexpr const char* kLoop =
    "Work in this order: describe_problem (keep its id); read the baseline kernel, its launch and "
    "floor_ns; autotune the problem's own template as the kernel to beat; then write a kernel, "
    "compile it, mend what the compiler says, sanitize it, verify it, benchmark it. Change one "
    "thing at a time and say why before you do. Tune parameters of your source with autotune "
    "(parameters: {\"BLOCK\": [128, 256]}). A kernel counts only when verify passes it; when it "
    "is refused, read `reason` and `failed` and mend the kernel, since nothing else can be "
    "changed. Stop near floor_ns, or when two ideas in a row gain less than 1 %. At the end "
    "submit the best kernel and report: the time with its evidence word (measured or predicted), "
    "the speed-up over the baseline, the run's id, and the diff.";

std::string Given(const Json& arguments, const char* name, const char* without) {
  const std::string text = arguments.value(name, "");
  return text.empty() ? without : text;
}

std::string OptimiseText(const Json& arguments) {
  return "Make this faster: " + Given(arguments, "kernel", "") +
         "\nGPU: " + Given(arguments, "gpu", "the one in this machine, else A100") + "\n\n" + kLoop;
}

std::string PortText(const Json& arguments) {
  return "Port this kernel from " + Given(arguments, "from", "its present GPU") + " to " +
         Given(arguments, "to", "") + ": " + Given(arguments, "kernel", "") +
         "\n\nDescribe the problem once for each GPU. Benchmark the kernel as it is on both; look "
         "at gpu_info of both for what differs (shared memory, SMs, tensor cores, bandwidth). "
         "Keep the results equal.\n\n" +
         kLoop;
}

std::string FuseText(const Json& arguments) {
  return "Fuse these operations into fewer kernels: " + Given(arguments, "operations", "") +
         "\n\nDescribe them as one graph problem (describe_problem with `graph`), and each alone "
         "as a problem of its own. Benchmark each alone and add the times: that is what fusion "
         "must beat. Then see what the graph's own template reaches, and only then write a fused "
         "kernel.\n\n" +
         kLoop;
}

}  // namespace

std::vector<Prompt> MakePrompts() {
  return {{"optimise",
           "Make a kernel faster",
           "From a kernel or an operator to a faster, verified one.",
           {{"kernel", "a .cu file, or an operator with its shapes", true},
            {"gpu", "GPU to optimise for", false}},
           OptimiseText},
          {"port",
           "Port a kernel to another GPU",
           "The same results on another GPU, tuned for it.",
           {{"kernel", "a .cu file, or an operator with its shapes", true},
            {"to", "the new GPU", true},
            {"from", "the GPU it was written for", false}},
           PortText},
          {"fuse",
           "Fuse operations",
           "Several operations as one or fewer kernels.",
           {{"operations", "the operations, in words or code", true}},
           FuseText}};
}

const char* Instructions() {
  return "atunner verifies, times and tunes CUDA kernels. Begin with describe_problem; the other "
         "tools take the id that it returns. Without a GPU kernels run on a virtual GPU and times "
         "are predicted: never call them measured. Sizes, inputs, tolerance and baseline of a "
         "problem cannot be changed. Long texts come cut, with a resource URI for the rest.";
}

}  // namespace atunner::mcp
