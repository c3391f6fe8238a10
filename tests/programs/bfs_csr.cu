// Rodinia style: breadth-first search over a graph with structures as nodes. Two kernels are
// launched until a flag in device memory stays unset.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Node {
  int start, edges;
};

__global__ void visit(const Node* nodes, const int* edges, bool* mask, bool* updating,
                      const bool* visited, int* cost, int n) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= n || !mask[id]) return;
  mask[id] = false;
  for (int i = nodes[id].start; i < nodes[id].start + nodes[id].edges; ++i) {
    int to = edges[i];
    if (!visited[to]) {
      cost[to] = cost[id] + 1;
      updating[to] = true;
    }
  }
}

__global__ void update(bool* mask, bool* updating, bool* visited, bool* again, int n) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= n || !updating[id]) return;
  mask[id] = true;
  visited[id] = true;
  *again = true;
  updating[id] = false;
}

template <typename T>
T* OnDevice(const T* host, size_t count) {
  T* device;
  cudaMalloc(&device, count * sizeof(T));
  cudaMemcpy(device, host, count * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 4096;
  std::vector<Node> nodes(n);
  std::vector<int> edges, cost(n, -1);
  unsigned seed = 7;
  for (int i = 0; i < n; ++i) {
    nodes[i].start = edges.size();
    nodes[i].edges = 2 + i % 4;
    for (int e = 0; e < nodes[i].edges; ++e) {
      seed = seed * 1664525u + 1013904223u;
      edges.push_back((seed >> 8) % n);
    }
  }
  std::vector<char> flags(n, 0);
  auto* d_nodes = OnDevice(nodes.data(), n);
  auto* d_edges = OnDevice(edges.data(), edges.size());
  auto* updating = (bool*)OnDevice(flags.data(), n);
  flags[0] = 1;
  auto* mask = (bool*)OnDevice(flags.data(), n);
  auto* visited = (bool*)OnDevice(flags.data(), n);
  cost[0] = 0;
  auto* d_cost = OnDevice(cost.data(), n);
  bool again = false, *d_again = OnDevice(&again, 1);
  int rounds = 0;
  do {
    again = false;
    cudaMemcpy(d_again, &again, 1, cudaMemcpyHostToDevice);
    visit<<<(n + 255) / 256, 256>>>(d_nodes, d_edges, mask, updating, visited, d_cost, n);
    update<<<(n + 255) / 256, 256>>>(mask, updating, visited, d_again, n);
    cudaMemcpy(&again, d_again, 1, cudaMemcpyDeviceToHost);
    ++rounds;
  } while (again);
  cudaMemcpy(cost.data(), d_cost, n * sizeof(int), cudaMemcpyDeviceToHost);
  long sum = 0;
  for (int c : cost) sum += c;
  printf("rounds %d sum %ld\n", rounds, sum);
  for (void* p : {(void*)d_nodes, (void*)d_edges, (void*)updating, (void*)mask, (void*)visited,
                  (void*)d_cost, (void*)d_again})
    cudaFree(p);
}
