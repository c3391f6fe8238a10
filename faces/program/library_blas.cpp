// cuBLAS: the functions of vectors and matrices in float32 and float64 that programs use most.
#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "faces/program/library_state.h"

using namespace atunner::program;  // a file of C functions

namespace {

/// Elements of a vector, `step` apart.
template <class T>
struct Vector {
  T* at;
  int64_t step;
  T& operator[](int64_t i) const { return at[i * step]; }
};

template <class T>
void NoteVector(T* x, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n && step != 1; ++i) NoteWritten(x + i * step, sizeof(T));
  if (step == 1) NoteWritten(x, static_cast<uint64_t>(n) * sizeof(T));
}

/// A matrix in columns, or its transpose.
template <class T>
struct Matrix {
  const T* at;
  int64_t columns_apart;
  bool transposed;
  T operator()(int64_t row, int64_t column) const {
    return transposed ? at[row * columns_apart + column] : at[column * columns_apart + row];
  }
};

/// c = alpha a b + beta c; c is not read where beta is 0.
template <class T>
void Multiply(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
              int64_t columns_apart) {
  for (int64_t column = 0; column < n; ++column) {
    T* out = c + column * columns_apart;
    for (int64_t row = 0; row < m; ++row) out[row] = beta == T(0) ? T(0) : beta * out[row];
    for (int64_t inner = 0; inner < k; ++inner) {
      const T factor = alpha * b(inner, column);
      for (int64_t row = 0; row < m; ++row) out[row] += factor * a(row, inner);
    }
    NoteWritten(out, static_cast<uint64_t>(m) * sizeof(T));
  }
}

template <class T>
int Gemm(LibraryHandle* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const T* alpha,
         const T* a, int64_t lda, int64_t stride_a, const T* b, int64_t ldb, int64_t stride_b,
         const T* beta, T* c, int64_t ldc, int64_t stride_c, int64_t batch) {
  return InLibrary(handle, [=, alpha = *alpha, beta = *beta] {
    for (int64_t i = 0; i < batch; ++i)
      Multiply<T>(m, n, k, alpha, {a + i * stride_a, lda, op_a != 0},
                  {b + i * stride_b, ldb, op_b != 0}, beta, c + i * stride_c, ldc);
  });
}

template <class T>
int Gemv(LibraryHandle* handle, int op, int64_t m, int64_t n, const T* alpha, const T* a,
         int64_t lda, const T* x, int64_t step_x, const T* beta, T* y, int64_t step_y) {
  return InLibrary(handle, [=, alpha = *alpha, beta = *beta] {
    const Matrix<T> matrix{a, lda, op != 0};
    const int64_t rows = op != 0 ? n : m, columns = op != 0 ? m : n;
    const Vector<const T> in{x, step_x};
    const Vector<T> out{y, step_y};
    for (int64_t row = 0; row < rows; ++row) {
      T sum = 0;
      for (int64_t column = 0; column < columns; ++column) sum += matrix(row, column) * in[column];
      out[row] = alpha * sum + (beta == T(0) ? T(0) : beta * out[row]);
    }
    NoteVector(y, rows, step_y);
  });
}

/// Puts what `add` makes of all elements into `result`, in host or device memory.
template <class T, class R, class F>
int Reduce(LibraryHandle* handle, int64_t n, const T* x, int64_t step, R* result, F reduce) {
  return InLibrary(handle, [=] {
    *result = reduce(Vector<const T>{x, step}, n);
    NoteWritten(result, sizeof(R));
  });
}

template <class T>
int Largest(LibraryHandle* handle, int64_t n, const T* x, int64_t step, int* result, bool largest) {
  return Reduce(handle, n, x, step, result, [=](Vector<const T> v, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i) {
      const T here = std::abs(v[i]), there = std::abs(v[best]);
      if (largest ? here > there : here < there) best = i;
    }
    return static_cast<int>(count > 0 ? best + 1 : 0);
  });
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): cuBLAS's names.
extern "C" {

int cublasCreate_v2(LibraryHandle** handle) {
  *handle = new LibraryHandle;
  return 0;
}
int cublasDestroy_v2(LibraryHandle* handle) {
  delete handle;
  return 0;
}
int cublasSetStream_v2(LibraryHandle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
int cublasGetStream_v2(LibraryHandle* handle, void** stream) {
  *stream = handle->stream;
  return 0;
}
int cublasSetPointerMode_v2(LibraryHandle*, int) { return 0; }
int cublasSetMathMode(LibraryHandle*, int) { return 0; }
int cublasSetAtomicsMode(LibraryHandle*, int) { return 0; }
int cublasSetWorkspace_v2(LibraryHandle*, void*, size_t) { return 0; }
int cublasGetVersion_v2(LibraryHandle*, int* version) {
  *version = 130000;
  return 0;
}

#define ATUNNER_BLAS(letter, T)                                                                    \
  int cublas##letter##gemm_v2(LibraryHandle* h, int op_a, int op_b, int m, int n, int k,           \
                              const T* alpha, const T* a, int lda, const T* b, int ldb,            \
                              const T* beta, T* c, int ldc) {                                      \
    return Gemm<T>(h, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);       \
  }                                                                                                \
  int cublas##letter##gemmStridedBatched(                                                          \
      LibraryHandle* h, int op_a, int op_b, int m, int n, int k, const T* alpha, const T* a,       \
      int lda, long long stride_a, const T* b, int ldb, long long stride_b, const T* beta, T* c,   \
      int ldc, long long stride_c, int batch) {                                                    \
    return Gemm<T>(h, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,     \
                   ldc, stride_c, batch);                                                          \
  }                                                                                                \
  int cublas##letter##gemv_v2(LibraryHandle* h, int op, int m, int n, const T* alpha, const T* a,  \
                              int lda, const T* x, int step_x, const T* beta, T* y, int step_y) {  \
    return Gemv<T>(h, op, m, n, alpha, a, lda, x, step_x, beta, y, step_y);                        \
  }                                                                                                \
  int cublas##letter##axpy_v2(LibraryHandle* h, int n, const T* alpha, const T* x, int step_x,     \
                              T* y, int step_y) {                                                  \
    return InLibrary(h, [=, alpha = *alpha] {                                                      \
      for (int64_t i = 0; i < n; ++i) y[i * step_y] += alpha * x[i * step_x];                      \
      NoteVector(y, n, step_y);                                                                    \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##scal_v2(LibraryHandle* h, int n, const T* alpha, T* x, int step) {           \
    return InLibrary(h, [=, alpha = *alpha] {                                                      \
      for (int64_t i = 0; i < n; ++i) x[i * step] *= alpha;                                        \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##copy_v2(LibraryHandle* h, int n, const T* x, int step_x, T* y, int step_y) { \
    return InLibrary(h, [=] {                                                                      \
      for (int64_t i = 0; i < n; ++i) y[i * step_y] = x[i * step_x];                               \
      NoteVector(y, n, step_y);                                                                    \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##swap_v2(LibraryHandle* h, int n, T* x, int step_x, T* y, int step_y) {       \
    return InLibrary(h, [=] {                                                                      \
      for (int64_t i = 0; i < n; ++i) std::swap(y[i * step_y], x[i * step_x]);                     \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##dot_v2(LibraryHandle* h, int n, const T* x, int step_x, const T* y,          \
                             int step_y, T* result) {                                              \
    return Reduce(h, n, x, step_x, result, [=](Vector<const T> v, int64_t count) {                 \
      double sum = 0;                                                                              \
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(v[i]) * y[i * step_y];        \
      return static_cast<T>(sum);                                                                  \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##nrm2_v2(LibraryHandle* h, int n, const T* x, int step, T* result) {          \
    return Reduce(h, n, x, step, result, [](Vector<const T> v, int64_t count) {                    \
      double sum = 0;                                                                              \
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(v[i]) * v[i];                 \
      return static_cast<T>(std::sqrt(sum));                                                       \
    });                                                                                            \
  }                                                                                                \
  int cublas##letter##asum_v2(LibraryHandle* h, int n, const T* x, int step, T* result) {          \
    return Reduce(h, n, x, step, result, [](Vector<const T> v, int64_t count) {                    \
      double sum = 0;                                                                              \
      for (int64_t i = 0; i < count; ++i) sum += std::abs(static_cast<double>(v[i]));              \
      return static_cast<T>(sum);                                                                  \
    });                                                                                            \
  }
ATUNNER_BLAS(S, float)
ATUNNER_BLAS(D, double)
#undef ATUNNER_BLAS

int cublasIsamax_v2(LibraryHandle* h, int n, const float* x, int step, int* result) {
  return Largest(h, n, x, step, result, true);
}
int cublasIdamax_v2(LibraryHandle* h, int n, const double* x, int step, int* result) {
  return Largest(h, n, x, step, result, true);
}
int cublasIsamin_v2(LibraryHandle* h, int n, const float* x, int step, int* result) {
  return Largest(h, n, x, step, result, false);
}
int cublasIdamin_v2(LibraryHandle* h, int n, const double* x, int step, int* result) {
  return Largest(h, n, x, step, result, false);
}

int cublasSetVector(int n, int bytes, const void* x, int step_x, void* y, int step_y) {
  return DoIn(nullptr, Node::kCopy, [=]() -> int {
    const auto size = static_cast<uint64_t>(bytes);
    return VirtualDevice::Get().Copy(
        "cublasSetVector", {static_cast<char*>(y), size * static_cast<uint64_t>(step_y)},
        {static_cast<char*>(const_cast<void*>(x)), size * static_cast<uint64_t>(step_x)}, size,
        static_cast<uint64_t>(n));
  });
}
int cublasGetVector(int n, int bytes, const void* x, int step_x, void* y, int step_y) {
  return cublasSetVector(n, bytes, x, step_x, y, step_y);
}
int cublasSetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  return DoIn(nullptr, Node::kCopy, [=]() -> int {
    const auto size = static_cast<uint64_t>(bytes);
    return VirtualDevice::Get().Copy(
        "cublasSetMatrix", {static_cast<char*>(b), size * static_cast<uint64_t>(ldb)},
        {static_cast<char*>(const_cast<void*>(a)), size * static_cast<uint64_t>(lda)},
        size * static_cast<uint64_t>(rows), static_cast<uint64_t>(columns));
  });
}
int cublasGetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b, int ldb) {
  return cublasSetMatrix(rows, columns, bytes, a, lda, b, ldb);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)
