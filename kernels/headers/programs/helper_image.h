// Images (PGM, PPM) and comparisons of CUDA's sample programs.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "helper_string.h"

/// Reads P5 or P6. The pixels are allocated by malloc if `*data` is NULL.
inline bool __loadPPM(const char* name, unsigned char** data, unsigned* width, unsigned* height,
                      unsigned* channels) {
  FILE* file = name == NULL ? NULL : fopen(name, "rb");
  if (file == NULL) return false;
  unsigned kind = 0, largest = 0;
  bool good = fscanf(file, "P%u", &kind) == 1 && (kind == 5 || kind == 6);
  unsigned* values[] = {width, height, &largest};
  for (unsigned* value : values) {
    int c = fgetc(file);
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '#') {
      if (c == '#')
        while (c != '\n' && c != EOF) c = fgetc(file);
      c = fgetc(file);
    }
    ungetc(c, file);
    good = good && fscanf(file, "%u", value) == 1;
  }
  fgetc(file);
  *channels = kind == 6 ? 3 : 1;
  const size_t bytes = good ? static_cast<size_t>(*width) * *height * *channels : 0;
  if (good && *data == NULL) *data = static_cast<unsigned char*>(malloc(bytes));
  good = good && fread(*data, 1, bytes, file) == bytes;
  fclose(file);
  return good;
}

inline bool __savePPM(const char* name, const unsigned char* data, unsigned width, unsigned height,
                      unsigned channels) {
  FILE* file = fopen(name, "wb");
  if (file == NULL) return false;
  fprintf(file, "P%d\n%u\n%u\n255\n", channels == 1 ? 5 : 6, width, height);
  const size_t bytes = static_cast<size_t>(width) * height * channels;
  const bool good = fwrite(data, 1, bytes, file) == bytes;
  fclose(file);
  return good;
}

inline bool sdkLoadPGM(const char* name, unsigned char** data, unsigned* width, unsigned* height) {
  unsigned channels = 0;
  return __loadPPM(name, data, width, height, &channels) && channels == 1;
}
inline bool sdkLoadPGM(const char* name, float** data, unsigned* width, unsigned* height) {
  unsigned char* bytes = NULL;
  if (!sdkLoadPGM(name, &bytes, width, height)) return false;
  const size_t count = static_cast<size_t>(*width) * *height;
  if (*data == NULL) *data = static_cast<float*>(malloc(count * sizeof(float)));
  for (size_t i = 0; i < count; ++i) (*data)[i] = bytes[i] / 255.0f;
  free(bytes);
  return true;
}
/// Four channels: the fourth is 0.
inline bool sdkLoadPPM4ub(const char* name, unsigned char** data, unsigned* width,
                          unsigned* height) {
  unsigned char* bytes = NULL;
  unsigned channels = 0;
  if (!__loadPPM(name, &bytes, width, height, &channels) || channels != 3) return false;
  const size_t count = static_cast<size_t>(*width) * *height;
  *data = static_cast<unsigned char*>(calloc(count, 4));
  for (size_t i = 0; i < count; ++i) memcpy(*data + 4 * i, bytes + 3 * i, 3);
  free(bytes);
  return true;
}
inline bool sdkSavePGM(const char* name, unsigned char* data, unsigned width, unsigned height) {
  return __savePPM(name, data, width, height, 1);
}
inline bool sdkSavePGM(const char* name, float* data, unsigned width, unsigned height) {
  const size_t count = static_cast<size_t>(width) * height;
  unsigned char* bytes = static_cast<unsigned char*>(malloc(count));
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(255.0f * data[i]);
  const bool good = __savePPM(name, bytes, width, height, 1);
  free(bytes);
  return good;
}
inline bool sdkSavePPM4ub(const char* name, unsigned char* data, unsigned width, unsigned height) {
  const size_t count = static_cast<size_t>(width) * height;
  unsigned char* bytes = static_cast<unsigned char*>(malloc(3 * count));
  for (size_t i = 0; i < count; ++i) memcpy(bytes + 3 * i, data + 4 * i, 3);
  const bool good = __savePPM(name, bytes, width, height, 3);
  free(bytes);
  return good;
}

template <class T, class S>
inline bool compareData(const T* reference, const T* data, unsigned length, S epsilon,
                        float threshold) {
  unsigned wrong = 0;
  for (unsigned i = 0; i < length; ++i) {
    const double difference = static_cast<double>(reference[i]) - static_cast<double>(data[i]);
    wrong += !(fabs(difference) <= static_cast<double>(epsilon));
  }
  return threshold > 0 ? wrong <= threshold * length : wrong == 0;
}
inline bool sdkCompareL2fe(const float* reference, const float* data, unsigned length,
                           float epsilon) {
  double error = 0, norm = 0;
  for (unsigned i = 0; i < length; ++i) {
    error += static_cast<double>(reference[i] - data[i]) * (reference[i] - data[i]);
    norm += static_cast<double>(reference[i]) * reference[i];
  }
  return norm > 0 && sqrt(error / norm) < epsilon;
}
