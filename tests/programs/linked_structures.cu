// A binary tree whose nodes hold addresses of other nodes, made by one kernel and searched by
// another; a structure in device memory points to the arrays.
#include <cstdio>
#include <vector>

struct TreeNode {
  int key;
  TreeNode *left, *right;
};
struct Query {
  const int* keys;
  int* depths;
  int count;
};

__global__ void build(TreeNode* nodes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int depth = 31 - __clz(i + 1), first = (1 << depth) - 1, width = (n + 1) >> depth;
  nodes[i].key = (i - first) * width + width / 2;
  nodes[i].left = 2 * i + 1 < n ? &nodes[2 * i + 1] : nullptr;
  nodes[i].right = 2 * i + 2 < n ? &nodes[2 * i + 2] : nullptr;
}

__global__ void find(const TreeNode* root, const Query* query) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= query->count) return;
  int depth = 0, key = query->keys[i];
  for (const TreeNode* node = root; node != nullptr && node->key != key; ++depth)
    node = key < node->key ? node->left : node->right;
  query->depths[i] = depth;
}

int main() {
  const int n = 1023, count = 3000;
  TreeNode* nodes;
  cudaMalloc(&nodes, n * sizeof(TreeNode));
  build<<<(n + 127) / 128, 128>>>(nodes, n);
  std::vector<int> keys(count);
  for (int i = 0; i < count; ++i) keys[i] = (i * 37) % 1100;
  int *d_keys, *depths;
  cudaMalloc(&d_keys, count * sizeof(int));
  cudaMalloc(&depths, count * sizeof(int));
  cudaMemcpy(d_keys, keys.data(), count * sizeof(int), cudaMemcpyHostToDevice);
  Query query{d_keys, depths, count}, *d_query;
  cudaMalloc(&d_query, sizeof query);
  cudaMemcpy(d_query, &query, sizeof query, cudaMemcpyHostToDevice);
  find<<<(count + 127) / 128, 128>>>(nodes, d_query);
  cudaMemcpy(keys.data(), depths, count * sizeof(int), cudaMemcpyDeviceToHost);
  long sum = 0;
  for (int d : keys) sum += d;
  printf("depths %ld\n", sum);
  cudaFree(nodes);
  cudaFree(d_keys);
  cudaFree(depths);
  cudaFree(d_query);
}
