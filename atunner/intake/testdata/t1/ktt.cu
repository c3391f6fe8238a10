// Stands for a kernel in KTT's manner; the tests read it and do not run it.
extern "C" __global__ void potential(const float4* atoms, const float* charges, int count, float spacing, float* grid) {}
