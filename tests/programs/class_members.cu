// A class template in a header beside the source owns device memory; its methods launch kernels
// that are defined in the header.
#include "class_members.cuh"

#include <cstdio>

int main() {
  const int width = 100, height = 60;
  fields::Field<float> a(width, height), b(width, height);
  std::vector<float> start(width * height);
  for (int i = 0; i < width * height; ++i) start[i] = i % 37;
  a.Set(start);
  for (int step = 0; step < 2; ++step) {
    b.DiffuseFrom(a, 0.1f);
    a.DiffuseFrom(b, 0.1f);
  }
  double sum = 0;
  for (float v : a.Get()) sum += v;
  printf("sum %.2f\n", sum);
}
