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
#define ATUNNER_ABI_VERSION 1

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

#ifdef __cplusplus
}
#endif
#endif /* ATUNNER_H_ */
