// What a texture or surface instruction asks for, packed into Op::imm.
#pragma once

#include <cstdint>

#ifndef ATUNNER_VGPU_ISA
#error "define ATUNNER_VGPU_ISA"
#endif

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

enum class Geometry : uint8_t { k1D, k2D, k3D, k1DLayered, k2DLayered, kCube };
enum class Outside : uint8_t { kTrap, kClamp, kZero };
enum class Reduction : uint8_t { kAdd, kMin, kMax, kAnd, kOr };

struct TextureOptions {
  Geometry geometry = Geometry::k1D;
  Outside outside = Outside::kTrap;
  Reduction reduction = Reduction::kAdd;
  uint8_t results = 1;    ///< destinations, or stored values: the first entries of the operation's list
  uint8_t component = 0;  ///< of tld4
  uint8_t query = 0;      ///< width, height, depth, layers
  bool float_coordinates : 1 = false;
  bool formatted : 1 = false;  ///< a surface's x counts texels, not bytes
  bool surface : 1 = false;
  bool is_signed : 1 = false;
  uint8_t unused_bits : 4 = 0;
  uint8_t unused = 0;
};
static_assert(sizeof(TextureOptions) == sizeof(uint64_t));

/// Coordinates besides the layer.
int DimsOf(Geometry geometry);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
