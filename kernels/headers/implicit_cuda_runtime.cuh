// What nvcc's implicit cuda_runtime.h brings along from the host's C library, of which device code
// uses constants, types and functions without an #include.
#pragma once
#include <sys/types.h>
#include <stdint.h>
#include <stddef.h>
#include <limits.h>
#include <float.h>
#include <math.h>
#include <utility>
#ifndef RAND_MAX
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
