// What nvcc's implicit cuda_runtime.h brings along from the host's C library, of which device code
// uses constants, types and functions without an #include.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <utility>
#ifndef RAND_MAX
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
