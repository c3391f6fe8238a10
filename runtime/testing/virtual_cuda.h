// A libcuda for tests: the driver's C interface over the virtual GPU. Kernels that come as PTX are
// executed, so results can be checked; every call is recorded, so order and arguments can. What it
// adds to the driver's interface is below. $ATUNNER_VIRTUAL_CUDA_GPU names the GPU it plays
// (default A100).
#pragma once

extern "C" {

/// Calls since the last reset, one line each: "cuLaunchKernel scale grid=2,1,1 block=128,1,1 …
/// args=<hex>,<hex>".
const char* virtual_cuda_log();
void virtual_cuda_reset_log();
/// From now on plays another GPU of the profile table; 0 when it knows it.
int virtual_cuda_play(const char* gpu);
/// True if cubins load (their kernels are recorded, not executed). Without it they are refused as a
/// real driver refuses foreign ones: CUDA_ERROR_NO_BINARY_FOR_GPU.
void virtual_cuda_accept_cubins(int accept);
/// The next call of the function named fails with `code`.
void virtual_cuda_fail_next(const char* function, int code);
/// Contexts now on the calling thread's stack.
int virtual_cuda_context_depth();
}
