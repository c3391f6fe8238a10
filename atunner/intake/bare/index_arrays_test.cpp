#include "atunner/intake/bare/index_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/intake/bare/bare_source.h"

namespace atunner {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// Fills by array, as "offsets END" and "indices END" with the value of the end; "" for others.
std::map<std::string, std::string> Fills(const std::string& source) {
  const auto kernel = ParseBareSource(source, "k.cu", {});
  EXPECT_TRUE(kernel) << kernel.error().ToString();
  std::map<std::string, std::string> fills;
  if (!kernel) return fills;
  for (const ArgSpec& arg : kernel->spec.args) {
    const bool offsets = arg.fill.kind == Fill::Kind::kOffsets;
    if (!offsets && arg.fill.kind != Fill::Kind::kIndices) continue;
    const auto end = Expr::MustParse(arg.fill.path).EvaluateInt(Bindings(kernel->spec.dims));
    EXPECT_TRUE(end) << arg.name << ": " << arg.fill.path;
    fills[arg.name] = (offsets ? "offsets " : "indices ") + std::to_string(end.value_or(-1));
    EXPECT_THAT(kernel->notes, Contains(HasSubstr("'" + arg.name + "' is filled with")));
  }
  return fills;
}

using Expected = std::map<std::string, std::string>;

constexpr const char* kSizes = "const int rows = 1000, cols = 700, nnz = 9000, width = 16;\n";

TEST(IndexArrays, RowsOfASparseMatrix) {
  const std::string host =
      std::string("int main() {\n") + kSizes +
      "int *p, *c; float *v, *x, *y;\ncudaMalloc(&p, (rows + 1) * sizeof(int));\n"
      "cudaMalloc(&c, nnz * sizeof(int)); cudaMalloc(&v, nnz * sizeof(float));\n"
      "cudaMalloc(&x, cols * sizeof(float)); cudaMalloc(&y, rows * sizeof(float));\n"
      "spmv<<<(rows + 255) / 256, 256>>>(p, c, v, x, y, rows);\n}\n";
  const std::string head =
      "__global__ void spmv(const int* ptr, const int* idx, const float* val, const float* x, "
      "float* y, int n) {\n";
  const Expected expected = {{"ptr", "offsets 9000"}, {"idx", "indices 700"}};
  EXPECT_EQ(Fills(head + R"(  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n) return;
  float sum = 0;
  for (int j = ptr[r]; j < ptr[r + 1]; ++j) sum += val[j] * x[idx[j]];
  y[r] = sum;
})" + host),
            expected);
  EXPECT_EQ(
      Fills(head +
            R"(  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (warp >= n) return;
  const int start = __ldg(ptr + warp), end = __ldg(&ptr[warp + 1]);
  float sum = 0;
  for (int j = start + lane; j < end; j += 32) {
    const int column = idx[j];
    sum += val[j] * __ldg(&x[column]);
  }
  y[warp] = sum;
})" + host),
      expected);
  EXPECT_EQ(Fills(head + R"(  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    int begin = ptr[r];
    int length = ptr[r + 1] - begin;
    float sum = 0;
    for (int k = 0; k < length; ++k) sum += val[begin + k] * x[idx[begin + k]];
    y[r] = sum;
  }
})" + host),
            expected);
}

TEST(IndexArrays, AGraphThatIsSearchedInBreadth) {
  EXPECT_EQ(
      Fills(R"(
__global__ void bfs(const int* row, const int* edge, const int* frontier, int count, int* level, int* next, int* size,
                    int depth) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int v = frontier[i];
  for (int e = row[v]; e < row[v + 1]; e++) {
    int u = edge[e];
    if (atomicCAS(&level[u], -1, depth) == -1) next[atomicAdd(size, 1)] = u;
  }
}
int main() {
  const int vertices = 500, edges = 4000, count = 100;
  int *r, *e, *f, *l, *n, *s;
  cudaMalloc(&r, (vertices + 1) * sizeof(int)); cudaMalloc(&e, edges * sizeof(int));
  cudaMalloc(&f, count * sizeof(int)); cudaMalloc(&l, vertices * sizeof(int));
  cudaMalloc(&n, edges * sizeof(int)); cudaMalloc(&s, sizeof(int));
  cudaMemset(s, 0, sizeof(int));
  bfs<<<(count + 127) / 128, 128>>>(r, e, f, count, l, n, s, 3);
})"),
      (Expected{{"row", "offsets 4000"}, {"edge", "indices 500"}, {"frontier", "indices 500"}}));
}

TEST(IndexArrays, SegmentsAndHistograms) {
  const std::string host =
      std::string("int main() {\n") + kSizes +
      "int *s, *k, *h; float *x, *y;\ncudaMalloc(&s, (rows + 1) * sizeof(int));\n"
      "cudaMalloc(&k, nnz * sizeof(int)); cudaMalloc(&h, rows * width * sizeof(int));\n"
      "cudaMalloc(&x, nnz * width * sizeof(float)); cudaMalloc(&y, rows * width * sizeof(float));\n"
      "cudaMemset(h, 0, rows * width * sizeof(int));\n";
  EXPECT_EQ(Fills(R"(
__global__ void sums(const float* x, const int* offset, float* y, int width) {
  const int first = offset[blockIdx.x], last = offset[blockIdx.x + 1];
  for (int t = threadIdx.x; t < width; t += blockDim.x) {
    float sum = 0;
    for (int i = first; i < last; ++i) sum += x[i * width + t];
    y[blockIdx.x * width + t] = sum;
  }
})" + host + "sums<<<rows, 128>>>(x, s, y, width);\n}\n"),
            (Expected{{"offset", "offsets 9000"}}));
  EXPECT_EQ(Fills(R"(
__global__ void counts(const int* offset, const int* key, int* bins, int width) {
  for (int i = offset[blockIdx.x] + threadIdx.x; i < offset[blockIdx.x + 1]; i += blockDim.x)
    atomicAdd(&bins[blockIdx.x * width + key[i]], 1);
})" + host + "counts<<<rows, 128>>>(s, k, h, width);\n}\n"),
            (Expected{{"offset", "offsets 9000"}, {"key", "indices 16"}}));
  EXPECT_EQ(Fills(R"(
__global__ void blocks(const int* row, const int* column, int* bins, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bins[row[i] * width + column[i]] = i;
  bins[(row[i] * width) + 1 + column[i]] = i;
})" + host + "blocks<<<rows, 128>>>(s, k, h, width);\n}\n"),
            (Expected{{"row", "indices 999"}, {"column", "indices 16"}}))
      << "the first is a row of the bins, the second a place in it";
  EXPECT_EQ(Fills(R"(
__global__ void scatter(const float* x, const int* segment, float* y, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * width) atomicAdd(&y[segment[i / width] * width + i % width], x[i]);
})" + host + "scatter<<<(nnz * width + 255) / 256, 256>>>(x, k, y, nnz, width);\n}\n"),
            (Expected{{"segment", "indices 1000"}}));
}

TEST(IndexArrays, CountedFromOne) {
  const std::string host =
      std::string("int main() {\n") + kSizes +
      "int *p, *c; float *v, *x, *y;\ncudaMalloc(&p, (rows + 1) * sizeof(int));\n"
      "cudaMalloc(&c, nnz * sizeof(int)); cudaMalloc(&v, nnz * sizeof(float));\n"
      "cudaMalloc(&x, cols * sizeof(float)); cudaMalloc(&y, rows * sizeof(float));\n"
      "spmv<<<(rows + 255) / 256, 256>>>(p, c, v, x, y, rows);\n}\n";
  const auto firsts = [&](const std::string& body) {
    const auto kernel = ParseBareSource(
        "__global__ void spmv(const int* row, const int* col, const float* val, const "
        "float* x, float* y, int rows) {\n  int r = blockIdx.x * blockDim.x + "
        "threadIdx.x;\n  if (r >= rows) return;\n  float s = 0;\n" +
            body + "  y[r] = s;\n}\n" + host,
        "k.cu", {});
    EXPECT_TRUE(kernel) << kernel.error().ToString();
    return std::pair(kernel->spec.FindArg("row")->fill.low, kernel->spec.FindArg("col")->fill.low);
  };
  EXPECT_EQ(firsts("for (int j = row[r]; j < row[r + 1]; ++j) s += val[j] * x[col[j]];\n"),
            std::pair(0.0, 0.0));
  EXPECT_EQ(
      firsts("for (int j = row[r] - 1; j < row[r + 1] - 1; ++j) s += val[j] * x[col[j] - 1];\n"),
      std::pair(1.0, 1.0));
  EXPECT_EQ(firsts("for (int j = row[r]; j < row[r + 1]; ++j) { int c = col[j - 1] - 1; s += val[j "
                   "- 1] * x[c]; }\n"),
            std::pair(1.0, 1.0));
}

TEST(IndexArrays, OtherIntegersAreLeftAsTheyAre) {
  const std::string host =
      "int main() {\nconst int n = 4096;\nint *a, *b;\ncudaMalloc(&a, n * sizeof(int)); "
      "cudaMalloc(&b, n * "
      "sizeof(int));\n"
      "k<<<n / 256, 256>>>(a, b, n);\n}\n";
  const std::string head =
      "__global__ void k(const int* a, int* b, int n) {\nint i = blockIdx.x * 256 + threadIdx.x;\n";
  EXPECT_EQ(Fills(head + "if (i < n - 1) b[i] = a[i + 1] - a[i];\n}\n" + host), Expected{});
  EXPECT_EQ(Fills(head + "if (i < n - 1 && a[i] > a[i + 1]) b[i] = 1;\n}\n" + host), Expected{});
  EXPECT_EQ(Fills("// atunner: fill a = iota\n" + head + "b[a[i]] = i;\n}\n" + host), Expected{})
      << "stated";
  EXPECT_EQ(Fills(head + "if (i < n - 1 && a[i] != a[i + 1]) b[a[i]] = i;\n}\n" + host),
            (Expected{{"a", "indices 4096"}}))
      << "the last offset would lie behind the end";
}

TEST(IndexArrays, PlacesOfVectorsAreFewerThanTheirElements) {
  for (const char* type : {"float4", "Point"}) {
    const std::string source =
        std::string("struct Point { float x, y, z, w; };\n__global__ void k(const ") + type +
        "* pos, const int* near, float* y, int n) {\n"
        "int i = blockIdx.x * 256 + threadIdx.x; int j = near[i]; y[i] = pos[j].x;\n}\n"
        "int main() {\nconst int n = 4096;\nint* near; " +
        type +
        "* pos; float* y;\n"
        "cudaMalloc(&near, n * 4); cudaMalloc(&pos, n * 16); cudaMalloc(&y, n * 4);\n"
        "k<<<n / 256, 256>>>(pos, near, y, n);\n}\n";
    EXPECT_EQ(Fills(source), (Expected{{"near", "indices 4096"}})) << type;
  }
}

TEST(IndexArrays, FillsCanBeStated) {
  const auto kernel = ParseBareSource(R"(
// atunner: size n = 100
// atunner: size m = 30
// atunner: block = 128
// atunner: grid = 1
// atunner: arg first in int32[n + 1]
// atunner: arg y out int32[n]
// atunner: fill first = offsets 2 * m
__global__ void k(const int* first, int* y) { y[threadIdx.x] = first[threadIdx.x]; })",
                                      "k.cu", {});
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.args[0].fill.kind, Fill::Kind::kOffsets);
  EXPECT_EQ(kernel->spec.args[0].fill.path, "2 * m");
}

}  // namespace
}  // namespace atunner
