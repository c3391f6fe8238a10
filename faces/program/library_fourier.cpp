// cuFFT: plans of one to three dimensions in float32 and float64, contiguous data.
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

#include "faces/program/library_state.h"

using namespace atunner::program;  // a file of C functions

namespace {

using Complex = std::complex<double>;

/// The transform of `n` numbers `step` apart, by the smallest factor of n first (Cooley and Tukey):
/// X[k] = sum of x[j] exp(sign 2 pi i j k / n).
std::vector<Complex> Transform(const Complex* x, int64_t n, int64_t step, int sign) {
  if (n == 1) return {x[0]};
  int64_t factor = 2;
  while (n % factor != 0) factor = factor * factor > n ? n : factor + 1;
  const int64_t part = n / factor;
  std::vector<std::vector<Complex>> parts;
  for (int64_t i = 0; i < factor; ++i)
    parts.push_back(factor == n ? std::vector{x[i * step]}
                                : Transform(x + i * step, part, step * factor, sign));
  std::vector<Complex> all(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < factor; ++i) {
      const double turn = sign * 2 * std::numbers::pi * static_cast<double>(i * k % n) /
                          static_cast<double>(n);
      all[static_cast<size_t>(k)] += std::polar(1.0, turn) *
                                     parts[static_cast<size_t>(i)][static_cast<size_t>(k % part)];
    }
  }
  return all;
}

/// Transforms the lines of one dimension: `n` numbers `step` apart, in a cube of `total`.
void TransformLines(std::vector<Complex>& cube, int64_t n, int64_t step, int sign) {
  const auto total = static_cast<int64_t>(cube.size());
  for (int64_t begin = 0; begin < total; ++begin) {
    if (begin / step % n != 0) continue;
    const std::vector<Complex> line = Transform(&cube[static_cast<size_t>(begin)], n, step, sign);
    for (int64_t i = 0; i < n; ++i)
      cube[static_cast<size_t>(begin + i * step)] = line[static_cast<size_t>(i)];
  }
}

void TransformCube(std::vector<Complex>& cube, const int64_t (&extents)[3], int sign) {
  TransformLines(cube, extents[2], 1, sign);
  TransformLines(cube, extents[1], extents[2], sign);
  TransformLines(cube, extents[0], extents[1] * extents[2], sign);
}

/// Numbers of a line that are stored of a real signal's transform.
int64_t Half(const LibraryHandle& plan) { return plan.extents[2] / 2 + 1; }
int64_t Elements(const LibraryHandle& plan) {
  return plan.extents[0] * plan.extents[1] * plan.extents[2];
}

/// The whole transform of a real signal from its stored half.
void Unfold(const LibraryHandle& plan, std::vector<Complex>& cube) {
  const auto [nz, ny, nx] = plan.extents;
  for (int64_t z = 0; z < nz; ++z) {
    for (int64_t y = 0; y < ny; ++y) {
      for (int64_t x = Half(plan); x < nx; ++x)
        cube[static_cast<size_t>((z * ny + y) * nx + x)] = std::conj(
            cube[static_cast<size_t>(((nz - z) % nz * ny + (ny - y) % ny) * nx + nx - x)]);
    }
  }
}

/// Offset of the element of a line in the stored half, or -1.
template <class F>
void ForStored(const LibraryHandle& plan, bool half, F visit) {
  const int64_t nx = plan.extents[2], stored = half ? Half(plan) : nx;
  for (int64_t line = 0; line < plan.extents[0] * plan.extents[1]; ++line) {
    for (int64_t x = 0; x < stored; ++x) visit(line * stored + x, line * nx + x);
  }
}

/// Real: the side is real numbers; otherwise complex ones, half of them where the other is real.
template <class T>
int Execute(LibraryHandle* handle, const T* in, T* out, bool real_in, bool real_out, int sign) {
  return InLibrary(handle, [=] {
    const LibraryHandle& plan = *handle;
    for (int64_t b = 0; b < plan.batch; ++b) {
      const int64_t whole = Elements(plan), half = whole / plan.extents[2] * Half(plan);
      const T* from = in + b * (real_in ? whole : 2 * (real_out ? half : whole));
      T* to = out + b * (real_out ? whole : 2 * (real_in ? half : whole));
      std::vector<Complex> cube(static_cast<size_t>(whole));
      ForStored(plan, real_out, [&](int64_t at, int64_t element) {
        cube[static_cast<size_t>(element)] = real_in ? Complex(from[at], 0)
                                                     : Complex(from[2 * at], from[2 * at + 1]);
      });
      if (real_out) Unfold(plan, cube);
      TransformCube(cube, plan.extents, sign);
      ForStored(plan, real_in, [&](int64_t at, int64_t element) {
        const Complex value = cube[static_cast<size_t>(element)];
        if (real_out) {
          to[at] = static_cast<T>(value.real());
        } else {
          to[2 * at] = static_cast<T>(value.real());
          to[2 * at + 1] = static_cast<T>(value.imag());
        }
      });
      const int64_t written = real_out ? whole : 2 * (real_in ? half : whole);
      NoteWritten(to, static_cast<uint64_t>(written) * sizeof(T));
    }
  });
}

std::vector<LibraryHandle*>& Plans() {
  static std::vector<LibraryHandle*> plans;
  return plans;
}
LibraryHandle* PlanOf(int plan) {
  const auto at = static_cast<size_t>(plan - 1);
  return at < Plans().size() ? Plans()[at] : nullptr;
}

int MakePlan(int* plan, int64_t z, int64_t y, int64_t x, int batch) {
  auto* made = new LibraryHandle;
  made->extents[0] = z, made->extents[1] = y, made->extents[2] = x;
  made->batch = batch;
  Plans().push_back(made);
  *plan = static_cast<int>(Plans().size());
  return 0;
}

constexpr int kForward = -1, kInverse = 1;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuFFT's names.
extern "C" {

int cufftPlan1d(int* plan, int n, int /*kind*/, int batch) {
  return MakePlan(plan, 1, 1, n, batch);
}
int cufftPlan2d(int* plan, int y, int x, int) { return MakePlan(plan, 1, y, x, 1); }
int cufftPlan3d(int* plan, int z, int y, int x, int) { return MakePlan(plan, z, y, x, 1); }
int cufftPlanMany(int* plan, int rank, int* n, int* in_embed, int in_stride, int, int*,
                  int out_stride, int, int, int batch) {
  constexpr int kInvalidPlan = 4;
  if (rank < 1 || rank > 3 || (in_embed != nullptr && (in_stride != 1 || out_stride != 1)))
    return kInvalidPlan;
  return MakePlan(plan, rank == 3 ? n[0] : 1, rank >= 2 ? n[rank - 2] : 1, n[rank - 1], batch);
}
int cufftDestroy(int plan) { return PlanOf(plan) == nullptr ? 1 : 0; }
int cufftSetStream(int plan, void* stream) {
  if (PlanOf(plan) == nullptr) return 1;
  PlanOf(plan)->stream = stream;
  return 0;
}
int cufftExecC2C(int plan, float* in, float* out, int sign) {
  return Execute(PlanOf(plan), in, out, false, false, sign);
}
int cufftExecZ2Z(int plan, double* in, double* out, int sign) {
  return Execute(PlanOf(plan), in, out, false, false, sign);
}
int cufftExecR2C(int plan, float* in, float* out) {
  return Execute(PlanOf(plan), in, out, true, false, kForward);
}
int cufftExecD2Z(int plan, double* in, double* out) {
  return Execute(PlanOf(plan), in, out, true, false, kForward);
}
int cufftExecC2R(int plan, float* in, float* out) {
  return Execute(PlanOf(plan), in, out, false, true, kInverse);
}
int cufftExecZ2D(int plan, double* in, double* out) {
  return Execute(PlanOf(plan), in, out, false, true, kInverse);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
