// Everything else that the published schema allows; the tests read it and do not run it.
struct Particle { float3 position; int kind; };
__device__ double table[32];

namespace physics {
template <int BLOCK, typename T>
__global__ void step(Particle* particles, T* out, const unsigned char* flags, bool wrapped) {}
}
