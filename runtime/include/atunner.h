/* Loads kernels that atunner tuned and launches them on your stream.
 *
 * C99, no CUDA headers needed: a CUstream (or cudaStream_t) travels as void*, a CUdeviceptr as
 uint64_t. The CUDA
 * driver (libcuda.so.1) is opened at run time, when the first kernel is chosen.
 *
 *   atunner_set* set = NULL;
 *   atunner_set_create(NULL, &set);
 // an artifact, or a folder of artifacts
 *   atunner_set_add(set, "best/");
 *   atunner_dim dims[] = {{"rows", 8192}, {"cols", 4096}};
 *   atunner_problem problem = ATUNNER_PROBLEM_INIT;
 *   problem.name = "softmax";
 *   problem.dims = dims;
 *   problem.dim_count = 2;
 *   atunner_kernel* kernel = NULL;
 *   if (atunner_choose(set, &problem, 0, &kernel) != ATUNNER_OK) puts(atunner_last_error());
 // device addresses, in the order of the arguments
 *   uint64_t tensors[] = {x, y};
 *   atunner_launch_info launch = ATUNNER_LAUNCH_INIT;
 *   launch.stream = stream;
 *   launch.tensors = tensors;
 *   launch.tensor_count = 2;
 *   atunner_launch(kernel, &launch);
 *
 * Threads: a set may be used by several threads once everything was added to it; a kernel may be
 launched by several.
 * Handles of different kinds may be destroyed in any order, but before the CUDA context they were
 used in.
 * Structures start with their size, so that a later version can add fields; initialise them with
 the macros.
 */
#ifndef ATUNNER_H_
#define ATUNNER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATUNNER_API __attribute__((visibility("default")))
#else
#define ATUNNER_API
#endif

/* Grows when a function or a field is added; nothing is ever removed or changed within one
 * shared-library version. */
#define ATUNNER_ABI_VERSION 2

/* Every tensor must start at a multiple of this: kernels were verified with aligned addresses only.
 */
#define ATUNNER_ALIGNMENT 16

typedef enum atunner_status {
  ATUNNER_OK = 0,
  ATUNNER_INVALID = 1,     /* a wrong argument or a damaged artifact */
  ATUNNER_NOT_FOUND = 2,   /* no such file, or no artifact serves the problem on this device */
  ATUNNER_UNAVAILABLE = 3, /* the machine lacks something, or the driver refused: no driver, no
                              memory, launch error */
  ATUNNER_UNSUPPORTED = 4, /* understood, but not by this version or this driver */
  ATUNNER_INTERNAL = 5     /* a bug of ours */
} atunner_status;

/* How well an artifact fits a device and a problem, worst to best. */
typedef enum atunner_match {
  ATUNNER_MATCH_NONE = 0,         /* cannot run */
  ATUNNER_MATCH_COMPATIBLE = 1,   /* runs, but was tuned for another architecture */
  ATUNNER_MATCH_ARCHITECTURE = 2, /* tuned for another GPU of the same compute capability */
  ATUNNER_MATCH_DEVICE = 3,       /* tuned for this GPU, at another problem size */
  ATUNNER_MATCH_EXACT = 4         /* tuned for this GPU and this problem size */
} atunner_match;

typedef enum atunner_evidence {
  ATUNNER_PREDICTED = 0, /* the virtual GPU's timing model said so */
  ATUNNER_MEASURED = 1   /* timed on the GPU named */
} atunner_evidence;

typedef enum atunner_role { ATUNNER_INPUT = 0, ATUNNER_OUTPUT = 1, ATUNNER_INOUT = 2 } atunner_role;

typedef struct atunner_set atunner_set; /* artifacts to choose among */
typedef struct atunner_kernel
    atunner_kernel; /* one of them, loaded on a device for one problem size */

ATUNNER_API uint32_t atunner_abi_version(void);
ATUNNER_API const char* atunner_version(void);
/* What went wrong in this thread's last call that failed: what, where, and what to do. Never NULL.
 */
ATUNNER_API const char* atunner_last_error(void);

/* ---- Sets ---- */

/* `libcuda` names the driver library; NULL takes $ATUNNER_LIBCUDA, else libcuda.so.1. */
ATUNNER_API atunner_status atunner_set_create(const char* libcuda, atunner_set** set);
/* NULL is allowed. */
ATUNNER_API void atunner_set_destroy(atunner_set* set);
/* Adds an artifact folder, or every artifact in a folder of them. All or nothing. Files are checked
 * against the digests of their manifest. */
ATUNNER_API atunner_status atunner_set_add(atunner_set* set, const char* folder);
ATUNNER_API size_t atunner_set_size(const atunner_set* set);

typedef struct atunner_artifact_info {
  size_t struct_size;
  const char* name;  /* "softmax" */
  const char* dtype; /* the type computed in: "float32" */
  const char* folder;
  const char* device;   /* "NVIDIA H200" */
  const char* arch;     /* "sm_90a" */
  const char* compiler; /* "NVRTC 13.0" */
  const char* run;      /* id of the run that made it */
  int cc_major;
  int cc_minor;
  atunner_evidence evidence;
  double
      time_ns; /* at the size it was tuned for: measured median or prediction, as `evidence` says */
  const char* dims;      /* "cols=4096 rows=8192" */
  const char* free_dims; /* "rows": dims that may differ; "" if none */
} atunner_artifact_info;
#define ATUNNER_ARTIFACT_INFO_INIT \
  {sizeof(atunner_artifact_info),  \
   NULL,                           \
   NULL,                           \
   NULL,                           \
   NULL,                           \
   NULL,                           \
   NULL,                           \
   NULL,                           \
   0,                              \
   0,                              \
   ATUNNER_PREDICTED,              \
   0,                              \
   NULL,                           \
   NULL}

/* Needs no driver. The strings live as long as the set. */
ATUNNER_API atunner_status atunner_set_info(const atunner_set* set, size_t index,
                                            atunner_artifact_info* info);

/* ---- Choosing ---- */

typedef struct atunner_dim {
  const char* name;
  int64_t value;
} atunner_dim;

typedef struct atunner_attribute {
  const char* name;
  const char* value; /* as text: "true", "0.125" */
} atunner_attribute;

typedef struct atunner_problem {
  size_t struct_size;
  const char* name;  /* operator or kernel; NULL when the set holds one name only */
  const char* dtype; /* "float32", "float16", "bfloat16", …; NULL when the set holds one only */
  const atunner_dim* dims;
  size_t dim_count;
  const atunner_attribute*
      attributes; /* those given must be equal; needed where the set's artifacts differ in one */
  size_t attribute_count;
  atunner_match least; /* refuse a worse match; ATUNNER_MATCH_NONE takes whatever runs */
} atunner_problem;
#define ATUNNER_PROBLEM_INIT \
  {sizeof(atunner_problem), NULL, NULL, NULL, 0, NULL, 0, ATUNNER_MATCH_NONE}

/* The current CUDA context of the calling thread, in place of a device's number. */
#define ATUNNER_CURRENT_CONTEXT (-1)

/* Chooses the best match, loads it and sets it up. `device` is the driver's number of a GPU, whose
 * primary context (that of the CUDA runtime and of PyTorch) is used, or ATUNNER_CURRENT_CONTEXT.
 * ATUNNER_NOT_FOUND says of each artifact why it does not serve. Do this once per problem, outside
 * the hot path. */
ATUNNER_API atunner_status atunner_choose(atunner_set* set, const atunner_problem* problem,
                                          int device, atunner_kernel** kernel);
/* NULL is allowed. Launches may still be running. */
ATUNNER_API void atunner_kernel_destroy(atunner_kernel* kernel);

ATUNNER_API atunner_match atunner_kernel_match(const atunner_kernel* kernel);
/* One sentence: "tuned for NVIDIA H200 at another size (rows=8192 cols=4096)". Lives as long as the
 * kernel. */
ATUNNER_API const char* atunner_kernel_match_text(const atunner_kernel* kernel);
/* Index in the set. */
ATUNNER_API size_t atunner_kernel_artifact(const atunner_kernel* kernel);

typedef struct atunner_argument {
  size_t struct_size;
  const char* name;
  const char* dtype;
  atunner_role role;
  size_t rank;
  const int64_t* extents; /* dense, row-major, last dimension innermost */
  uint64_t bytes;
} atunner_argument;
#define ATUNNER_ARGUMENT_INIT {sizeof(atunner_argument), NULL, NULL, ATUNNER_INPUT, 0, NULL, 0}

/* Tensors to pass, in order. Scalars come from the problem. */
ATUNNER_API size_t atunner_kernel_argument_count(const atunner_kernel* kernel);
/* The pointers live as long as the kernel. */
ATUNNER_API atunner_status atunner_kernel_argument(const atunner_kernel* kernel, size_t index,
                                                   atunner_argument* argument);
/* Scratch memory one launch needs; 0 = none. */
ATUNNER_API uint64_t atunner_kernel_workspace_bytes(const atunner_kernel* kernel);

/* ---- Launching ---- */

typedef struct atunner_tensor {
  const char* name;
  uint64_t address;
} atunner_tensor;

typedef struct atunner_launch_info {
  size_t struct_size;
  void* stream; /* CUstream or cudaStream_t of the kernel's context; NULL = the default stream */
  /* Device addresses, in the order of the arguments … */
  const uint64_t* tensors;
  size_t tensor_count;
  /* … or by name, in any order. One of the two. */
  const atunner_tensor* named;
  size_t named_count;
  /* Scratch memory of at least atunner_kernel_workspace_bytes, aligned to 256, not shared with a
   * launch that may run at the same time. 0: taken from the driver's pool in the order of the
   * stream, and given back behind the kernel. */
  uint64_t workspace;
  uint64_t workspace_bytes;
} atunner_launch_info;
#define ATUNNER_LAUNCH_INIT {sizeof(atunner_launch_info), NULL, NULL, 0, NULL, 0, 0, 0}

/* Puts the kernel into the stream and returns. May be captured into a CUDA graph. */
ATUNNER_API atunner_status atunner_launch(const atunner_kernel* kernel,
                                          const atunner_launch_info* launch);

/* ---- Execution plans: whole models (since ABI version 2) ---- */

/*   atunner_plan* plan = NULL;
 *   atunner_plan_load("plan/", NULL, 0, &plan);
 *   uint64_t inputs[] = {x}, outputs[] = {y};
 *   atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
 *   run.stream = stream;
 *   run.inputs = inputs;
 *   run.input_count = 1;
 *   run.outputs = outputs;
 *   run.output_count = 1;
 *   atunner_plan_run(plan, &run);
 *   atunner_plan_free(plan);
 */
typedef struct atunner_plan atunner_plan;

/* Loads a folder of `atunner optimize MODEL --out FOLDER`: its kernels, and its weights into memory
 * of the device, once. `libcuda` as atunner_set_create, `device` as atunner_choose has them.
 * ATUNNER_NOT_FOUND if the folder is not complete, or if its kernels do not run on this GPU. */
ATUNNER_API atunner_status atunner_plan_load(const char* folder, const char* libcuda, int device,
                                             atunner_plan** plan);
/* NULL is allowed. The weights are freed: no run may be on its way. */
ATUNNER_API void atunner_plan_free(atunner_plan* plan);

ATUNNER_API size_t atunner_plan_input_count(const atunner_plan* plan);
ATUNNER_API size_t atunner_plan_output_count(const atunner_plan* plan);
/* Tensors to pass, in order; the pointers live as long as the plan. A role ATUNNER_INOUT says that
 * the model changes its input. */
ATUNNER_API atunner_status atunner_plan_input(const atunner_plan* plan, size_t index,
                                              atunner_argument* input);
ATUNNER_API atunner_status atunner_plan_output(const atunner_plan* plan, size_t index,
                                               atunner_argument* output);
/* Memory that one run needs for intermediates; 0 = none. */
ATUNNER_API uint64_t atunner_plan_workspace_bytes(const atunner_plan* plan);
/* Device memory that the weights take while the plan is loaded. */
ATUNNER_API uint64_t atunner_plan_weight_bytes(const atunner_plan* plan);
/* Calls of operators that atunner does not know; a run needs atunner_plan_run_info.run_extern if
 * there is one. */
ATUNNER_API size_t atunner_plan_extern_count(const atunner_plan* plan);

/* A tensor of an operator that the caller runs: dense, row-major. */
typedef struct atunner_extern_tensor {
  const char* name; /* by which `arguments` refer to it */
  const char* dtype;
  size_t rank;
  const int64_t* extents;
  uint64_t bytes;
  uint64_t address;
} atunner_extern_tensor;

typedef struct atunner_extern_call {
  size_t struct_size;
  const char* target;    /* "aten.cumsum.default" */
  const char* arguments; /* JSON: [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}, …] */
  const atunner_extern_tensor* inputs;
  size_t input_count;
  const atunner_extern_tensor* outputs; /* memory for the results, in their order */
  size_t output_count;
  void* stream; /* in which the operator must run */
  int on_host;  /* addresses are the host's */
} atunner_extern_call;

/* Runs an operator, and returns 0; any other number ends the run. */
typedef int (*atunner_run_extern)(void* user, const atunner_extern_call* call);

typedef struct atunner_plan_run_info {
  size_t struct_size;
  void* stream;           /* as in atunner_launch_info */
  const uint64_t* inputs; /* addresses, in the order of atunner_plan_input */
  size_t input_count;
  const uint64_t* outputs; /* memory for the results, in the order of atunner_plan_output */
  size_t output_count;
  /* As in atunner_launch_info: at least atunner_plan_workspace_bytes, or 0. */
  uint64_t workspace;
  uint64_t workspace_bytes;
  /* Not 0: inputs and outputs are in the host's memory. They are copied, and the run has ended when
   * the call returns. */
  int on_host;
  /* Not 0: the second run with the same inputs, outputs and workspace is recorded as a CUDA graph,
   * and later ones replay it: one launch for the whole model. Needs a workspace, unless the plan
   * needs none. No effect with `on_host`, with run_extern, while the stream is being captured, and
   * on drivers before CUDA 11.4. */
  int replay;
  atunner_run_extern run_extern;
  void* user; /* passed to run_extern */
} atunner_plan_run_info;
#define ATUNNER_PLAN_RUN_INIT \
  {sizeof(atunner_plan_run_info), NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL}

/* Puts the whole model into the stream and returns. With a workspace, and without `on_host`, it may
 * be captured into a CUDA graph. Several threads may run a plan, each with a workspace of its own
 * or none. */
ATUNNER_API atunner_status atunner_plan_run(const atunner_plan* plan,
                                            const atunner_plan_run_info* run);

#ifdef __cplusplus
}
#endif
#endif /* ATUNNER_H_ */
