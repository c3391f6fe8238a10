// Stands for a kernel in BAT's manner; the tests read it and do not run it.
extern "C" __global__ void find(const double* A, double* C, double s, unsigned int digest, signed char* key,
#if WIDE_COUNT
                                long count
#else
                                int count
#endif
) {}
