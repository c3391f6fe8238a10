// cuRAND's host interface. The numbers have the right distribution; they are not those of cuRAND.
#include <cmath>
#include <cstdint>
#include <numbers>

#include "atunner/base/random.h"
#include "faces/program/library_state.h"

using namespace atunner::program;  // a file of C functions

namespace {

/// Between 0 (excluded) and 1 (included), as cuRAND has it.
double Uniform(uint64_t seed, uint64_t index) {
  return (static_cast<double>(atunner::Mix64(seed + index * 0x9e3779b97f4a7c15) >> 11) + 1) *
         0x1p-53;
}

/// By Box and Muller.
double Normal(uint64_t seed, uint64_t index) {
  return std::sqrt(-2 * std::log(Uniform(seed, 2 * index))) *
         std::cos(2 * std::numbers::pi * Uniform(seed, 2 * index + 1));
}

template <class T, class F>
int Generate(LibraryHandle* generator, T* out, size_t n, F value) {
  return InLibrary(generator, [=] {
    for (size_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(value(generator->seed, generator->drawn + i));
    generator->drawn += n;
    NoteWritten(out, n * sizeof(T));
  });
}

template <class T>
int GenerateNormal(LibraryHandle* generator, T* out, size_t n, T mean, T deviation, bool log) {
  return Generate(generator, out, n, [=](uint64_t seed, uint64_t index) {
    const double value = mean + deviation * Normal(seed, index);
    return log ? std::exp(value) : value;
  });
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuRAND's names.
extern "C" {

int curandCreateGenerator(LibraryHandle** generator, int /*kind*/) {
  *generator = new LibraryHandle;
  return 0;
}
int curandDestroyGenerator(LibraryHandle* generator) {
  delete generator;
  return 0;
}
int curandSetStream(LibraryHandle* generator, void* stream) {
  generator->stream = stream;
  return 0;
}
int curandSetPseudoRandomGeneratorSeed(LibraryHandle* generator, unsigned long long seed) {
  generator->seed = seed;
  return 0;
}
int curandSetGeneratorOffset(LibraryHandle* generator, unsigned long long offset) {
  generator->drawn = offset;
  return 0;
}
int curandSetGeneratorOrdering(LibraryHandle*, int) { return 0; }
int curandSetQuasiRandomGeneratorDimensions(LibraryHandle*, unsigned) { return 0; }
int curandGenerateSeeds(LibraryHandle*) { return 0; }
int curandGenerate(LibraryHandle* generator, unsigned* out, size_t n) {
  return Generate(generator, out, n, [](uint64_t seed, uint64_t index) {
    return atunner::Mix64(seed + index * 0x9e3779b97f4a7c15) >> 32;
  });
}
int curandGenerateUniform(LibraryHandle* generator, float* out, size_t n) {
  return Generate(generator, out, n, Uniform);
}
int curandGenerateUniformDouble(LibraryHandle* generator, double* out, size_t n) {
  return Generate(generator, out, n, Uniform);
}
int curandGenerateNormal(LibraryHandle* generator, float* out, size_t n, float mean,
                         float deviation) {
  return GenerateNormal(generator, out, n, mean, deviation, false);
}
int curandGenerateNormalDouble(LibraryHandle* generator, double* out, size_t n, double mean,
                               double deviation) {
  return GenerateNormal(generator, out, n, mean, deviation, false);
}
int curandGenerateLogNormal(LibraryHandle* generator, float* out, size_t n, float mean,
                            float deviation) {
  return GenerateNormal(generator, out, n, mean, deviation, true);
}
int curandGenerateLogNormalDouble(LibraryHandle* generator, double* out, size_t n, double mean,
                                  double deviation) {
  return GenerateNormal(generator, out, n, mean, deviation, true);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
