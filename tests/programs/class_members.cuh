// A class that owns device memory, with the kernels of its methods.
#pragma once

#include <vector>

namespace fields {

template <typename T>
struct View {
  T* data;
  int width, height;
  __device__ T& operator()(int x, int y) { return data[y * width + x]; }
};

template <typename T>
__global__ void diffuse(View<T> to, View<T> from, T rate) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < 1 || x >= to.width - 1 || y < 1 || y >= to.height - 1) return;
  T around = from(x - 1, y) + from(x + 1, y) + from(x, y - 1) + from(x, y + 1);
  to(x, y) = from(x, y) + rate * (around - 4 * from(x, y));
}

template <typename T>
class Field {
 public:
  Field(int width, int height) : width_(width), height_(height) {
    cudaMalloc(&data_, sizeof(T) * width * height);
    cudaMemset(data_, 0, sizeof(T) * width * height);
  }
  ~Field() { cudaFree(data_); }
  Field(const Field&) = delete;

  void Set(const std::vector<T>& host) {
    cudaMemcpy(data_, host.data(), sizeof(T) * host.size(), cudaMemcpyHostToDevice);
  }
  std::vector<T> Get() const {
    std::vector<T> host(width_ * height_);
    cudaMemcpy(host.data(), data_, sizeof(T) * host.size(), cudaMemcpyDeviceToHost);
    return host;
  }
  void DiffuseFrom(Field& from, T rate) {
    dim3 grid((width_ + 63) / 64, height_);
    diffuse<T><<<grid, 64>>>(view(), from.view(), rate);
  }
  View<T> view() { return {data_, width_, height_}; }

 private:
  int width_, height_;
  T* data_ = nullptr;
};

}  // namespace fields
