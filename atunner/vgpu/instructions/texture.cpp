// Textures: tex, tld4, txq and suq. How they are read follows the chapter on texture
// fetching of the CUDA C++ Programming Guide: weights of blended neighbours have eight bits behind
// the point.
#include "atunner/vgpu/instructions/texture.h"

#include <algorithm>
#include <cmath>

#include "atunner/model/value/dtype.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using Wrap = TextureSpec::Wrap;
using Shape = TextureSpec::Shape;

/// The texel that coordinate `i` means, or -1 for the border.
int64_t Wrapped(Wrap wrap, int64_t i, int64_t extent) {
  const auto modulo = [](int64_t a, int64_t n) { return (a % n + n) % n; };
  switch (wrap) {
    case Wrap::kRepeat:
      return modulo(i, extent);
    case Wrap::kMirror: {
      const int64_t at = modulo(i, 2 * extent);
      return at < extent ? at : 2 * extent - 1 - at;
    }
    case Wrap::kClamp:
      return std::clamp<int64_t>(i, 0, extent - 1);
    case Wrap::kBorder:
      return i >= 0 && i < extent ? i : -1;
  }
  return -1;
}

/// The position that a lane reads: coordinates in texels, of which `dims` count, and the layer.
struct Point {
  std::array<double, 3> at{};
  int dims = 1;
  int64_t layer = 0;
};

/// Replaces a direction by a face of the cube and coordinates on it, by the table in the CUDA
/// Programming Guide. The faces of layered cubes are stored layer by layer.
void OntoFace(const TextureSpec& spec, Point& point) {
  const auto [x, y, z] = point.at;
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  double m = az, s = z >= 0 ? x : -x, t = -y;
  int face = z >= 0 ? 4 : 5;
  if (ax >= ay && ax >= az) {
    m = ax, s = x >= 0 ? -z : z, t = -y;
    face = x >= 0 ? 0 : 1;
  } else if (ay >= az) {
    m = ay, s = x, t = y >= 0 ? z : -z;
    face = y >= 0 ? 2 : 3;
  }
  point.dims = 2;
  point.layer = 6 * point.layer + face;
  point.at = {(s / m + 1) / 2 * spec.width, (t / m + 1) / 2 * spec.height, 0};
}

/// Four bits count, the upper one as a sign.
int Offset(uint32_t bits) { return static_cast<int>((bits + 8) & 15) - 8; }

Point PointOf(BlockState& x, const Op& op, const TextureOptions& o, const TextureSpec& spec,
              int lane) {
  const int32_t* list = x.kernel->lists.data() + op.list + o.results;
  Point point;
  int next = 0;
  if (IsLayered(o.geometry)) {
    const uint32_t layer = x.Source(list[next++])[lane];
    point.layer = std::min<int64_t>(layer, int64_t{spec.depth} / (IsCube(o.geometry) ? 6 : 1) - 1);
  }
  point.dims = DimsOf(o.geometry);
  const std::array<uint32_t, 3> extents{spec.width, spec.height, spec.depth};
  for (int d = 0; d < point.dims; ++d) {
    const uint32_t bits = x.Source(list[next + d])[lane];
    double at = static_cast<int32_t>(bits);
    if (o.float_coordinates) at = std::bit_cast<float>(bits);
    if (spec.unit_coordinates && o.float_coordinates && !IsCube(o.geometry))
      at *= extents[static_cast<size_t>(d)];
    if (o.shifted) at += Offset(x.Source(list[next + point.dims + d])[lane]);
    constexpr double kFar = 1e12;  // beyond all textures, and safe as an integer; NaN becomes zero
    point.at[static_cast<size_t>(d)] = std::isnan(at) ? 0 : std::clamp(at, -kFar, kFar);
  }
  if (IsCube(o.geometry)) OntoFace(spec, point);
  return point;
}

using Indices = std::array<int64_t, 3>;

/// The texel's bytes; null outside, where the border is.
const std::byte* TexelAt(const TextureData& texture, const Point& point, const Indices& indices) {
  const TextureSpec& spec = texture.spec;
  const std::array<int64_t, 3> extents{spec.width, spec.height, spec.depth};
  std::array<int64_t, 3> at{};
  for (size_t d = 0; d < static_cast<size_t>(point.dims); ++d) {
    const Wrap wrap = spec.shape == Shape::kCube || spec.shape == Shape::kCubeLayered ? Wrap::kClamp
                      : spec.shape == Shape::kLinear ? Wrap::kBorder
                                                     : spec.wrap[d];
    at[d] = Wrapped(wrap, indices[d], extents[d]);
    if (at[d] < 0) return nullptr;
  }
  if (point.dims < 3) at[2] = point.layer;
  const int64_t texel = (at[2] * extents[1] + at[1]) * extents[0] + at[0];
  return texture.texels.data() + static_cast<uint64_t>(texel) * spec.TexelBytes();
}

double LargestOf(DType dtype) {
  const int bits = 8 * static_cast<int>(SizeOf(dtype)) -
                   (KindOf(dtype) == DTypeKind::kSigned ? 1 : 0);
  return std::exp2(bits) - 1;
}

bool IsNumber(const TextureSpec& spec) { return IsFloat(spec.dtype) || spec.unit_values; }

/// A channel as a number; channels that a texture lacks are 0.
double NumberAt(const TextureSpec& spec, const std::byte* texel, uint32_t channel) {
  if (channel >= spec.channels || texel == nullptr) return 0;
  const double value = LoadElement(spec.dtype, texel, channel);
  return spec.unit_values ? std::max(value / LargestOf(spec.dtype), -1.0) : value;
}

/// The bits that tex returns: of a float32, or of the integer.
uint32_t BitsAt(const TextureSpec& spec, const std::byte* texel, uint32_t channel) {
  if (IsNumber(spec))
    return std::bit_cast<uint32_t>(static_cast<float>(NumberAt(spec, texel, channel)));
  return channel >= spec.channels || texel == nullptr
             ? 0
             : static_cast<uint32_t>(static_cast<int64_t>(LoadElement(spec.dtype, texel, channel)));
}

/// The lower one of the neighbours in each direction, and the weight of the upper one.
std::pair<Indices, std::array<double, 3>> Neighbours(const Point& point) {
  Indices low{};
  std::array<double, 3> weight{};
  for (size_t d = 0; d < static_cast<size_t>(point.dims); ++d) {
    const double at = point.at[d] - 0.5;
    low[d] = static_cast<int64_t>(std::floor(at));
    weight[d] = std::round((at - std::floor(at)) * 256) / 256;
  }
  return {low, weight};
}

double Blended(const TextureData& texture, const Point& point, uint32_t channel) {
  const auto [low, weight] = Neighbours(point);
  double sum = 0;
  for (int corner = 0; corner < 1 << point.dims; ++corner) {
    Indices indices = low;
    double share = 1;
    for (size_t d = 0; d < static_cast<size_t>(point.dims); ++d) {
      const bool upper = (corner >> d & 1) != 0;
      indices[d] += upper ? 1 : 0;
      share *= upper ? weight[d] : 1 - weight[d];
    }
    if (share > 0) sum += share * NumberAt(texture.spec, TexelAt(texture, point, indices), channel);
  }
  return sum;
}

Indices Nearest(const Point& point) {
  Indices indices{};
  for (size_t d = 0; d < indices.size(); ++d)
    indices[d] = static_cast<int64_t>(std::floor(point.at[d]));
  return indices;
}

/// The texture and the position that a lane accesses; nullptr after reporting.
const TextureData* Locate(BlockState& x, const Op& op, const TextureOptions& o, int lane,
                          Point& point) {
  const TextureData* texture = FindTexture(x, op, lane, false);
  if (texture == nullptr) return nullptr;
  if (!Suits(o.geometry, texture->spec.shape, !o.float_coordinates)) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "the texture has other dimensions than the instruction");
    return nullptr;
  }
  point = PointOf(x, op, o, texture->spec, lane);
  return texture;
}

uint32_t HalfOf(uint32_t single) {
  uint16_t bits = 0;
  StoreElement(DType::kFloat16, &bits, 0, static_cast<double>(std::bit_cast<float>(single)));
  return bits;
}

/// Results of 16 bits, in registers of their own or two in one.
void Narrow(const TextureOptions& o, std::array<uint32_t, 4>& bits) {
  if (!o.half) return;
  for (uint32_t& channel : bits) channel = HalfOf(channel);
  if (o.packed) bits = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
}

/// Reads a texel for each lane with a valid handle: read(texture, point, lane, addresses) returns
/// the bits of the four channels. A second destination says whether the texel is resident; all
/// texels are.
template <class Read>
void ReadTexture(BlockState& x, const Op& op, uint32_t mask, const TextureOptions& o,
                 const Read& read) {
  const int32_t* to = x.kernel->lists.data() + op.list;
  Addresses addresses(x, 4, false);
  ForLanes(mask, [&](int l) {
    Point point;
    const TextureData* texture = x.stop ? nullptr : Locate(x, op, o, l, point);
    if (texture == nullptr) return;
    addresses.SetBytes(texture->spec.TexelBytes());
    std::array<uint32_t, 4> bits = read(*texture, point, l, addresses);
    Narrow(o, bits);
    for (uint32_t c = 0; c < o.results; ++c) {
      if (to[c] >= 0) x.Slot(to[c])[l] = bits[c];
    }
  });
  if (op.dst2 >= 0) *x.Slot(op.dst2) |= mask;
}

void Sample(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  ReadTexture(
      x, op, mask, o,
      [&](const TextureData& texture, const Point& point, int lane, Addresses& addresses) {
        const std::byte* texel = TexelAt(texture, point, Nearest(point));
        addresses.Note(lane, texel);
        std::array<uint32_t, 4> bits{};
        for (uint32_t c = 0; c < bits.size(); ++c) {
          const bool blends = texture.spec.linear && o.float_coordinates &&
                              c < texture.spec.channels;
          bits[c] = blends ? std::bit_cast<uint32_t>(static_cast<float>(Blended(texture, point, c)))
                           : BitsAt(texture.spec, texel, c);
        }
        return bits;
      });
}

/// tld4: one channel of the four neighbours, against the clock from the lower left.
void Gather(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  ReadTexture(
      x, op, mask, o,
      [&](const TextureData& texture, const Point& point, int lane, Addresses& addresses) {
        const Indices low = Neighbours(point).first;
        static constexpr std::array<std::array<int, 2>, 4> kOrder{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
        std::array<uint32_t, 4> bits{};
        for (size_t i = 0; i < kOrder.size(); ++i) {
          const std::byte* texel = TexelAt(texture, point,
                                           {low[0] + kOrder[i][0], low[1] + kOrder[i][1], 0});
          bits[i] = BitsAt(texture.spec, texel, o.component);
          addresses.Note(lane, texel);
        }
        return bits;
      });
}

void Query(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  ForLanes(mask, [&](int l) {
    const TextureData* texture = x.stop ? nullptr : FindTexture(x, op, l, o.surface);
    if (texture == nullptr) return;
    const TextureSpec& spec = texture->spec;
    const bool layered = spec.shape != Shape::k3D;
    const std::array<uint32_t, 4> answers{spec.width, spec.height, layered ? 1 : spec.depth,
                                          layered ? spec.depth : 1};
    x.Slot(op.dst)[l] = answers[static_cast<size_t>(o.query)];
  });
}

// ---- forms
Handler TexHandler(const Form& form, TextureOptions& o) {
  o.packed = form.from == ptx::Type::kF16x2;
  o.half = o.packed || form.from == ptx::Type::kF16;
  if (!o.half && form.from != ptx::Type::kU32 && form.from != ptx::Type::kS32 &&
      form.from != ptx::Type::kF32)
    return nullptr;
  if (form.type != ptx::Type::kF32 && form.type != ptx::Type::kS32) return nullptr;
  if (!ReadGeometry(form, o) || !form.Has(o.packed ? "v2" : "v4")) return nullptr;
  o.results = o.packed ? 2 : 4;
  o.float_coordinates = form.type == ptx::Type::kF32;
  if (form.instruction->opcode == "tex")
    return (o.float_coordinates ? IsSampled(o.geometry) : IsCube(o.geometry)) ? nullptr : Sample;
  static constexpr std::array<std::string_view, 4> kComponents = {"r", "g", "b", "a"};
  if (o.geometry != Geometry::k2D && o.geometry != Geometry::k2DLayered) return nullptr;
  return o.float_coordinates && ReadNamed(form, kComponents, o.component) ? Gather : nullptr;
}

}  // namespace

TextureData* FindTexture(BlockState& x, const Op& op, int lane, bool surface) {
  const uint64_t handle = Lane<uint64_t>::Get(x.Source(op.src[0]), lane);
  TextureData* found = x.launch->memory->FindTexture(handle);
  if (found != nullptr && ((handle & kSurfaceBit) != 0) == surface) return found;
  Report(x, op, Hazard::Kind::kOutOfBounds, lane,
         Hex(handle) + " is the handle of no " + (surface ? "surface" : "texture"));
  return nullptr;
}

bool Suits(Geometry geometry, TextureSpec::Shape shape, bool whole_coordinates) {
  switch (geometry) {
    case Geometry::k1D:
      return shape == (whole_coordinates ? Shape::kLinear : Shape::k1D);
    case Geometry::k2D:
      return shape == Shape::k2D;
    case Geometry::k3D:
      return shape == Shape::k3D;
    case Geometry::k1DLayered:
      return shape == Shape::k1DLayered;
    case Geometry::k2DLayered:
      // a surface has the faces as layers
      return shape == Shape::k2DLayered || shape == Shape::kCube || shape == Shape::kCubeLayered;
    case Geometry::kCube:
      return shape == Shape::kCube;
    case Geometry::kCubeLayered:
      return shape == Shape::kCubeLayered;
    case Geometry::k2DSamples:
    case Geometry::k2DSamplesLayered:
      return false;  // only graphics makes textures of several samples
  }
  return false;
}

bool ReadGeometry(const Form& form, TextureOptions& o) {
  static constexpr std::pair<std::string_view, Geometry> kNames[] = {
      {"1d", Geometry::k1D},
      {"2d", Geometry::k2D},
      {"3d", Geometry::k3D},
      {"a1d", Geometry::k1DLayered},
      {"a2d", Geometry::k2DLayered},
      {"cube", Geometry::kCube},
      {"acube", Geometry::kCubeLayered},
      {"2dms", Geometry::k2DSamples},
      {"a2dms", Geometry::k2DSamplesLayered}};
  for (const auto& [name, geometry] : kNames) {
    if (!form.Has(name)) continue;
    o.geometry = geometry;
    return true;
  }
  return false;
}

int DimsOf(Geometry geometry) {
  switch (geometry) {
    case Geometry::k1D:
    case Geometry::k1DLayered:
      return 1;
    case Geometry::k2D:
    case Geometry::k2DLayered:
      return 2;
    default:
      return 3;
  }
}

Handler TextureHandler(const Form& form, Op& op) {
  static constexpr std::array<std::string_view, 4> kQueries = {"width", "height", "depth",
                                                               "array_size"};
  const std::string& opcode = form.instruction->opcode;
  TextureOptions o;
  Handler handler = nullptr;
  if (opcode == "tex" || opcode == "tld4") {
    handler = TexHandler(form, o);
  } else if (opcode == "txq" || opcode == "suq") {
    o.surface = opcode == "suq";
    handler = ReadNamed(form, kQueries, o.query) ? Query : nullptr;
  } else {
    handler = SurfaceHandler(form, o, op);
  }
  op.imm = std::bit_cast<uint64_t>(o);
  return handler;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
