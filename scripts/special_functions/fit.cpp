// Finds the coefficients of a GPU's unit for special functions from recordings of record.cu.
//
//     g++ -O2 -std=c++20 fit.cpp -o fit && ./fit FOLDER FUNCTION
//
// FUNCTION: rcp, rsqrt, sqrt, ex2, lg2, sin or tanh. Prints {C0, C1, C2} of each segment, as
// atunner/vgpu/hardware/interpolator_tables.h holds them. A result y of an argument says that
// y <= C0 + C1 X + C2 T(X) < y + one unit in the last place, because the unit cuts off. Least
// squares gives C1 and C2 nearly; the multiples around them are tried until a C0 fulfils all
// inequalities of the segment. The status is 1 if there is none.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kOctave = 1 << 23;
constexpr uint32_t kSpan = 1 << 17;  // values of X

/// See interpolator.h.
uint32_t TruncatedSquare(uint32_t x) {
  const uint32_t high = x >> 9, low = x & 511;
  uint32_t t = (high * high) >> 1;
  for (int j = 1; j < 8; ++j) t += (high >> j & 1) != 0 ? low >> (9 - j) : 0;
  return t;
}

struct Sample {
  uint32_t x;
  double low, high;  ///< low <= sum < high
};

std::vector<uint32_t> Load(const std::string& path) {
  std::vector<uint32_t> values(kOctave);
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr || std::fread(values.data(), 4, kOctave, file) != kOctave) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  std::fclose(file);
  return values;
}

Sample SampleOf(uint32_t x, uint32_t result, double unit) {
  return {x, std::bit_cast<float>(result) * unit,
          static_cast<double>(std::bit_cast<float>(result + 1)) * unit};
}

/// C1 and C2 by weighted least squares over 1, X / 2^17, T / 2^15.
void LeastSquares(const std::vector<Sample>& samples, double& c1, double& c2) {
  double a[3][4] = {};
  for (const Sample& s : samples) {
    const double weight = 1 / ((s.high - s.low) * (s.high - s.low));
    const double base[3] = {1, s.x / 131072.0, TruncatedSquare(s.x) / 32768.0};
    const double value = (s.low + s.high) / 2 - samples[0].low;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) a[i][j] += weight * base[i] * base[j];
      a[i][3] += weight * base[i] * value;
    }
  }
  for (int i = 0; i < 3; ++i) {
    for (int row = 0; row < 3; ++row) {
      if (row == i) continue;
      const double factor = a[row][i] / a[i][i];
      for (int j = 0; j < 4; ++j) a[row][j] -= factor * a[i][j];
    }
  }
  c1 = a[1][3] / a[1][1] / 131072;
  c2 = a[2][3] / a[2][2] / 32768;
}

bool Solve(const std::vector<Sample>& samples) {
  constexpr int64_t kAround = 8;
  double c1 = 0, c2 = 0;
  LeastSquares(samples, c1, c2);
  double widest = 0, c0 = 0;
  int64_t best1 = 0, best2 = 0;
  for (int64_t k2 = std::llround(c2) - kAround; k2 <= std::llround(c2) + kAround; ++k2) {
    for (int64_t k1 = std::llround(c1) - kAround; k1 <= std::llround(c1) + kAround; ++k1) {
      double low = -1e30, high = 1e30;
      for (const Sample& s : samples) {
        const double rest = static_cast<double>(k1) * s.x +
                            static_cast<double>(k2) * TruncatedSquare(s.x);
        low = std::max(low, s.low - rest);
        high = std::min(high, s.high - rest);
        if (high - low <= widest) break;
      }
      if (high - low <= widest) continue;
      widest = high - low;
      c0 = std::ceil(low);
      best1 = k1;
      best2 = k2;
    }
  }
  if (widest == 0) return std::printf("no solution near %.3f, %.3f\n", c1, c2), false;
  std::printf("{%.0f, %lld, %lld},\n", c0, static_cast<long long>(best1),
              static_cast<long long>(best2));
  return true;
}

/// The segments of an octave that is divided into 2^parts of them.
bool SolveOctave(const std::vector<uint32_t>& results, int parts, double unit) {
  const int bits = 23 - parts;
  bool solved = true;
  for (uint32_t segment = 0; segment < 1u << parts; ++segment) {
    std::vector<Sample> samples;
    const uint32_t step = bits > 17 ? 1u << (bits - 17) : 1;
    for (uint32_t i = 0; i < 1u << bits; i += step) {
      const uint32_t result = results[(segment << bits) + i];
      const bool exact = i == 0 && segment == 0 && result == 0x3f800000;  // of rsqrt, x = 1
      if (exact || (result == 0x3f800000 && unit == 0x1p40)) continue;
      samples.push_back(SampleOf(bits < 17 ? i << (17 - bits) : i / step, result, unit));
    }
    solved &= Solve(samples);
  }
  return solved;
}

/// lg2 of [1, 2) and of [2, 4), which is larger by one, together.
bool SolveLg2(const std::string& folder) {
  const auto near = Load(folder + "/octave_lg2_ftz_3f800000.u32");
  const auto far = Load(folder + "/octave_lg2_ftz_40000000.u32");
  bool solved = true;
  for (uint32_t segment = 0; segment < 64; ++segment) {
    std::vector<Sample> samples;
    for (uint32_t i = segment == 0; i < kSpan; ++i) {
      const Sample a = SampleOf(i, near[segment * kSpan + i], 0x1p39);
      const Sample b = SampleOf(i, far[segment * kSpan + i], 0x1p39);
      samples.push_back({i, std::max(a.low, b.low - 0x1p39), std::min(a.high, b.high - 0x1p39)});
    }
    solved &= Solve(samples);
  }
  return solved;
}

/// sin by the 23 bits within a quarter of a turn that the argument is reduced to.
bool SolveSin(const std::string& folder) {
  std::vector<uint32_t> results(kOctave, 0);
  for (const char* start : {"3c800000", "3e000000", "3e800000", "3f000000", "3f800000"}) {
    const auto octave = Load(folder + "/octave_sin_ftz_" + start + ".u32");
    const auto first = static_cast<uint32_t>(std::stoul(start, nullptr, 16));
    for (uint32_t i = 0; i < kOctave; ++i) {
      const double turns = static_cast<double>(std::bit_cast<float>(first + i)) *
                           static_cast<double>(0.15915494f);
      const auto cut = std::bit_cast<double>(std::bit_cast<uint64_t>(turns) >> 29 << 29);
      const auto at = static_cast<uint32_t>(cut * 0x1p25);
      if (at < kOctave) results[at] = octave[i];
    }
  }
  bool solved = true;
  for (uint32_t segment = 0; segment < 64; ++segment) {
    std::vector<Sample> samples;
    for (uint32_t i = 0; i < kSpan; ++i) {
      const uint32_t result = results[segment * kSpan + i];
      if (result != 0 && result != 0x3f800000) samples.push_back(SampleOf(i, result, 0x1p40));
    }
    solved &= Solve(samples);
  }
  return solved;
}

bool SolveTanh(const std::string& folder) {
  constexpr int kParts[11] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
  bool solved = true;
  for (int range = 0; range < 11; ++range) {
    char name[32];
    std::snprintf(name, sizeof name, "/octave_tanh_%08x.u32", 0x3b800000 + (range << 23));
    solved &= SolveOctave(Load(folder + name), kParts[range],
                          std::ldexp(1.0, 40 - std::min(range - 7, 0)));
  }
  return solved;
}

bool SolveFunction(const std::string& folder, const std::string& name) {
  const auto octave = [&](const char* form, const char* start) {
    return Load(folder + "/octave_" + form + "_ftz_" + start + ".u32");
  };
  if (name == "rcp") return SolveOctave(octave("rcp", "3f800000"), 7, 0x1p40);
  if (name == "ex2") return SolveOctave(octave("ex2", "3f800000"), 6, 0x1p38);
  if (name == "lg2") return SolveLg2(folder);
  if (name == "sin") return SolveSin(folder);
  if (name == "tanh") return SolveTanh(folder);
  bool solved = true;  // rsqrt and sqrt
  for (const char* start : {"3f800000", "40000000"})
    solved &= SolveOctave(octave(name.c_str(), start), 6, 0x1p40);
  return solved;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: fit FOLDER FUNCTION\n"), 2;
  return SolveFunction(argv[1], argv[2]) ? 0 : 1;
}
