/* atunner.h from C99: it compiles without warnings, its layout is what binaries built earlier rely on, and its functions
 * answer wrong arguments with a code and a message. */
#include <atunner.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check(int holds, const char* what) {
  if (holds) return;
  printf("failed: %s\n", what);
  ++failures;
}
#define CHECK(condition) check((condition) != 0, #condition)

static void check_layout(void) {
  CHECK(offsetof(atunner_problem, name) == 8);
  CHECK(offsetof(atunner_problem, dims) == 24);
  CHECK(offsetof(atunner_problem, least) == 56);
  CHECK(sizeof(atunner_problem) == 64);
  CHECK(offsetof(atunner_launch_info, stream) == 8);
  CHECK(offsetof(atunner_launch_info, named) == 32);
  CHECK(offsetof(atunner_launch_info, workspace_bytes) == 56);
  CHECK(sizeof(atunner_launch_info) == 64);
  CHECK(offsetof(atunner_argument, extents) == 40);
  CHECK(sizeof(atunner_argument) == 56);
  CHECK(offsetof(atunner_artifact_info, time_ns) == 80);
  CHECK(sizeof(atunner_artifact_info) == 104);
  CHECK(offsetof(atunner_plan_run_info, inputs) == 16);
  CHECK(offsetof(atunner_plan_run_info, workspace) == 48);
  CHECK(offsetof(atunner_plan_run_info, replay) == 68);
  CHECK(offsetof(atunner_plan_run_info, run_extern) == 72);
  CHECK(sizeof(atunner_plan_run_info) == 88);
  CHECK(sizeof(atunner_extern_tensor) == 48 && sizeof(atunner_extern_call) == 72);
  CHECK(sizeof(atunner_status) == 4 && ATUNNER_INTERNAL == 5);
  CHECK(ATUNNER_MATCH_EXACT == 4 && ATUNNER_MEASURED == 1 && ATUNNER_INOUT == 2);
}

static void check_wrong_arguments(void) {
  atunner_set* set = NULL;
  atunner_kernel* kernel = NULL;
  atunner_problem problem = ATUNNER_PROBLEM_INIT;
  atunner_launch_info launch = ATUNNER_LAUNCH_INIT;
  atunner_artifact_info info = ATUNNER_ARTIFACT_INFO_INIT;
  atunner_argument argument = ATUNNER_ARGUMENT_INIT;
  CHECK(atunner_set_create(NULL, NULL) == ATUNNER_INVALID);
  CHECK(strstr(atunner_last_error(), "set is NULL") != NULL);
  CHECK(atunner_set_create("/nonexistent/libcuda.so", &set) == ATUNNER_OK);
  CHECK(atunner_set_size(set) == 0 && atunner_set_size(NULL) == 0);
  CHECK(atunner_set_add(set, "/nonexistent") == ATUNNER_NOT_FOUND);
  CHECK(strstr(atunner_last_error(), "/nonexistent") != NULL);
  CHECK(atunner_set_info(set, 0, &info) == ATUNNER_INVALID);
  CHECK(atunner_choose(set, &problem, 0, &kernel) == ATUNNER_UNAVAILABLE && kernel == NULL);
  CHECK(strstr(atunner_last_error(), "no NVIDIA driver") != NULL);
  CHECK(atunner_choose(set, &problem, -2, &kernel) == ATUNNER_INVALID);
  CHECK(atunner_choose(set, NULL, 0, &kernel) == ATUNNER_INVALID);
  problem.struct_size = 8;
  CHECK(atunner_choose(set, &problem, 0, &kernel) == ATUNNER_INVALID);
  CHECK(strstr(atunner_last_error(), "struct_size") != NULL);
  CHECK(atunner_launch(NULL, &launch) == ATUNNER_INVALID);
  CHECK(atunner_kernel_argument(NULL, 0, &argument) == ATUNNER_INVALID);
  CHECK(atunner_kernel_match(NULL) == ATUNNER_MATCH_NONE);
  atunner_kernel_destroy(NULL);
  atunner_set_destroy(set);
  atunner_set_destroy(NULL);
}

static void check_wrong_plans(void) {
  atunner_plan* plan = NULL;
  atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
  CHECK(atunner_plan_load("/nonexistent", NULL, 0, &plan) == ATUNNER_NOT_FOUND && plan == NULL);
  CHECK(strstr(atunner_last_error(), "/nonexistent") != NULL);
  CHECK(atunner_plan_run(plan, &run) == ATUNNER_INVALID);
  CHECK(atunner_plan_input_count(plan) == 0 && atunner_plan_output_count(plan) == 0);
  CHECK(atunner_plan_workspace_bytes(plan) == 0 && atunner_plan_weight_bytes(plan) == 0);
  CHECK(atunner_plan_extern_count(plan) == 0);
  atunner_plan_free(plan);
}

int main(void) {
  CHECK(atunner_abi_version() == ATUNNER_ABI_VERSION);
  CHECK(strlen(atunner_version()) >= 5);
  check_layout();
  check_wrong_arguments();
  check_wrong_plans();
  if (failures == 0) puts("all checks passed");
  return failures == 0 ? 0 : 1;
}
