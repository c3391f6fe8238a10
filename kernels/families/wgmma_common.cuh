// Hopper's tensor cores, as inline PTX: products of a group of four warps whose operands lie in shared memory. They run in the
// background; their accumulators may not be touched until they are waited for.

/// What this thread wrote to shared memory becomes visible to the tensor cores, once a barrier has followed.
DEVICE void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Before the first product after accumulators were touched.
DEVICE void start_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most PENDING committed groups are under way.
template <int PENDING>
DEVICE void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
