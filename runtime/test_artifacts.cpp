#include "runtime/test_artifacts.h"

namespace atunner::loader {
namespace {

constexpr int64_t kThreads = 64;

LaunchStep Step(const std::string& entry, std::vector<ArgBinding> args) {
  LaunchStep step;
  step.entry = entry;
  step.grid[0] = Expr::MustParse("ceil_div(n, threads)");
  step.block[0] = Expr::MustParse("threads");
  step.args = std::move(args);
  step.args.push_back(ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n")));
  return step;
}

ArgSpec Vector(const std::string& name, Role role, const std::string& extent) {
  ArgSpec arg;
  arg.name = name;
  arg.role = role;
  arg.shape = {Expr::MustParse(extent)};
  return arg;
}

/// The common part of all test artifacts: predicted for an A100 at n = 1000.
Artifact Base(const std::string& name) {
  Artifact artifact;
  artifact.name = name;
  artifact.spec.name = name;
  artifact.spec.dims = {{"n", 1000}};
  artifact.spec.args = {Vector("x", Role::kInput, "n"), Vector("y", Role::kOutput, "n")};
  artifact.plan.parameter_names = {"threads"};
  artifact.plan.parameter_values = {kThreads};
  artifact.configuration = {{"threads", kThreads}};
  artifact.valid_sizes.dims = {"n"};
  artifact.arch = "sm_80";
  artifact.compiler = "nvcc 13.0";
  artifact.device = "NVIDIA A100-SXM4-80GB";
  artifact.cc_major = 8;
  artifact.cc_minor = 0;
  artifact.trial.estimate = Estimate{.time_ns = 2500};
  artifact.run = "test";
  return artifact;
}

void Add(Artifact& artifact, LaunchStep step) {
  KernelResources resources;
  resources.entry = step.entry;
  resources.mangled = step.entry;
  artifact.resources.push_back(resources);
  artifact.plan.steps.push_back(std::move(step));
}

}  // namespace

Artifact ScaleArtifact() {
  Artifact artifact = Base("scale");
  artifact.spec.attributes = {{"factor", 2.5}};
  LaunchStep step = Step("scale", {ArgBinding::Tensor("x"), ArgBinding::Tensor("y")});
  step.args.insert(step.args.end() - 1,
                   ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("factor")));
  Add(artifact, step);
  return artifact;
}

Artifact TwoStepArtifact() {
  Artifact artifact = Base("two_step");
  artifact.plan.workspaces = {{"unused", Expr(100)}, {"halves", Expr::MustParse("4 * n")}};
  Add(artifact, Step("halve", {ArgBinding::Tensor("x"), ArgBinding::Workspace("halves")}));
  Add(artifact, Step("add_one", {ArgBinding::Workspace("halves"), ArgBinding::Tensor("y")}));
  return artifact;
}

Artifact TableArtifact() {
  Artifact artifact = Base("by_table");
  artifact.spec.args.insert(artifact.spec.args.begin() + 1, Vector("table", Role::kInput, "4"));
  artifact.plan.symbols = {{"table", "table"}};
  Add(artifact, Step("by_table", {ArgBinding::Tensor("x"), ArgBinding::Tensor("y")}));
  return artifact;
}

Artifact HopperArtifact() {
  Artifact artifact = Base("boxes");
  artifact.arch = "sm_90";
  artifact.cc_major = 9;
  artifact.plan.workspaces = {{"unused", Expr(100)}, {"arrived", Expr(4)}};
  LaunchStep begin;
  begin.entry = "begin";
  begin.args = {ArgBinding::Workspace("arrived")};
  Add(artifact, begin);
  TensorView view;
  view.dims = {Expr::MustParse("n")};
  view.box = {Expr::MustParse("threads")};
  LaunchStep boxes = Step("boxes", {ArgBinding::Map("x", DType::kFloat32, view),
                                    ArgBinding::Workspace("arrived"), ArgBinding::Tensor("y")});
  boxes.cooperative = true;
  Add(artifact, boxes);
  return artifact;
}

Status SaveTestArtifact(const Path& folder, const Artifact& artifact, const std::string& cubin,
                        const std::string& kernels) {
  const Path testdata = Path(ATUNNER_SOURCE_DIR) / "runtime/testdata";
  ArtifactFiles files;
  ATUNNER_TRY(files.source, ReadFile(testdata / (kernels + ".cu")));
  ATUNNER_TRY(files.ptx, ReadFile(testdata / (kernels + ".ptx")));
  files.cubin = cubin;
  return SaveArtifact(folder, artifact, files);
}

}  // namespace atunner::loader
