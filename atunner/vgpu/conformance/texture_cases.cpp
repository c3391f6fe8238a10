#include "atunner/vgpu/conformance/texture_cases.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace atunner::vgpu {
namespace {

using Shape = TextureSpec::Shape;
using Wrap = TextureSpec::Wrap;

/// A texel's channels are value(x, y, z) + 1000 for each channel, so that what is linear blends to
/// what is linear.
double ValueAt(double x, double y, double z) { return 1 + x + 10 * y + 100 * z; }
constexpr double kPerChannel = 1000;
/// Integers of 8 bits hold less.
double SmallAt(uint32_t x, uint32_t y, uint32_t channel) { return 1 + x + 10 * y + 50.0 * channel; }

struct TextureCase {
  /// %t texture, %s surface, %c0… coordinates, %r0… results, all of 32 bits; %h and %w of 16 and 64
  std::string ptx;
  TextureSpec spec;
  std::vector<double> coordinates;
  bool integers = false;         ///< the coordinates are
  std::vector<double> expected;  ///< of the results
  bool number = true;            ///< the results are float32, otherwise integers
  double tolerance = 0;
  /// Elements that change, counted over texels and channels
  std::vector<std::pair<size_t, double>> written;
};

TextureSpec Spec(Shape shape, uint32_t width, uint32_t height = 1, uint32_t depth = 1,
                 uint32_t channels = 1, DType dtype = DType::kFloat32) {
  TextureSpec spec;
  spec.shape = shape;
  spec.width = width;
  spec.height = height;
  spec.depth = depth;
  spec.channels = channels;
  spec.dtype = dtype;
  return spec;
}
TextureSpec With(TextureSpec spec, Wrap wrap, bool linear = false, bool unit = false) {
  spec.wrap = {wrap, wrap, wrap};
  spec.linear = linear;
  spec.unit_coordinates = unit;
  return spec;
}

std::string Tex(const std::string& form, const std::string& coordinates) {
  return "tex." + form + " {%r0, %r1, %r2, %r3}, [%t, {" + coordinates + "}];";
}

/// Integers of 8 bits as the cases see them: small ones wrap as their type does.
double ElementAt(const TextureSpec& spec, uint32_t x, uint32_t y, uint32_t z, uint32_t channel) {
  if (SizeOf(spec.dtype) == 1) {
    const double value = SmallAt(x, y, channel);
    return spec.dtype == DType::kInt8 && value > 127 ? value - 256 : value;
  }
  return ValueAt(x, y, z) + kPerChannel * channel;
}

std::vector<std::byte> Texels(const TextureSpec& spec) {
  std::vector<std::byte> texels(spec.Bytes());
  size_t at = 0;
  for (uint32_t z = 0; z < spec.depth; ++z) {
    for (uint32_t y = 0; y < spec.height; ++y) {
      for (uint32_t x = 0; x < spec.width; ++x) {
        for (uint32_t c = 0; c < spec.channels; ++c)
          StoreElement(spec.dtype, texels.data(), at++, ElementAt(spec, x, y, z, c));
      }
    }
  }
  return texels;
}

void AddReads(std::vector<TextureCase>& all) {
  const std::string one = "1d.v4.f32.f32", integer = "1d.v4.f32.s32", two = "2d.v4.f32.f32";
  const TextureSpec row = Spec(Shape::k1D, 8), linear = Spec(Shape::kLinear, 8),
                    plane = Spec(Shape::k2D, 8, 6);
  const TextureSpec colours = Spec(Shape::k2D, 8, 6, 1, 4);
  const auto add = [&](const std::string& ptx, const TextureSpec& spec, std::vector<double> at,
                       std::vector<double> expected, bool integers = false, double tolerance = 0) {
    all.push_back({ptx, spec, std::move(at), integers, std::move(expected), true, tolerance, {}});
  };
  add(Tex(integer, "%c0"), linear, {3}, {4, 0, 0, 0}, true);
  add(Tex(integer, "%c0"), linear, {-2}, {0, 0, 0, 0}, true);
  add(Tex(integer, "%c0"), linear, {8}, {0, 0, 0, 0}, true);
  add(Tex(one, "%c0"), row, {2.75}, {3, 0, 0, 0});
  add(Tex(one, "%c0"), With(row, Wrap::kBorder), {8.5}, {0});
  add(Tex(one, "%c0"), With(row, Wrap::kClamp, true), {3.25}, {1 + 2.75, 0, 0, 0});
  add(Tex(one, "%c0"), With(row, Wrap::kBorder, true), {0.25}, {0.75});
  add(Tex(one, "%c0"), With(row, Wrap::kRepeat, false, true), {1.3125}, {1 + 2});
  add(Tex(one, "%c0"), With(row, Wrap::kRepeat, false, true), {-0.0625}, {1 + 7});
  add(Tex(one, "%c0"), With(row, Wrap::kMirror, false, true), {1.3125}, {1 + 5});
  add(Tex(one, "%c0"), With(row, Wrap::kMirror, false, true), {-0.1875}, {1 + 1});
  add(Tex(one, "%c0"), With(row, Wrap::kRepeat, true, true), {0}, {(1 + 8) / 2.0});
  add(Tex(one, "%c0"), With(row, Wrap::kClamp, true, true), {0}, {1});
  add(Tex(two, "%c0, %c1"), colours, {2.5, 4.5}, {43, 1043, 2043, 3043});
  add(Tex("2d.v4.f32.s32", "%c0, %c1"), colours, {7, 5}, {58, 1058, 2058, 3058}, true);
  add(Tex(two, "%c0, %c1"), With(colours, Wrap::kClamp, true), {2.75, 4.25},
      {ValueAt(2.25, 3.75, 0), 1039.75 + 1}, false, 0.01);
  add(Tex(two, "%c0, %c1"), With(plane, Wrap::kClamp, true, true), {0.5, 0.5},
      {ValueAt(3.5, 2.5, 0)}, false, 0.01);
  add("tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}], %c2;", plane, {1.5, 1.5, 0},
      {12, 0, 0, 0});
  add("tex.grad.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}], {%c2, %c2}, {%c2, %c2};",
      plane, {1.5, 1.5, 0}, {12, 0, 0, 0});
  const TextureSpec volume = Spec(Shape::k3D, 4, 3, 5);
  add(Tex("3d.v4.f32.f32", "%c0, %c1, %c2, %c2"), volume, {3.5, 1.5, 4.5},
      {ValueAt(3, 1, 4), 0, 0, 0});
  add(Tex("3d.v4.f32.f32", "%c0, %c1, %c2, %c2"), With(volume, Wrap::kClamp, true), {2, 1, 2.5},
      {ValueAt(1.5, 0.5, 2)}, false, 0.1);
  add("mov.b32 %c0, 2;" + Tex("a1d.v4.f32.f32", "%c0, %c1"), Spec(Shape::k1DLayered, 8, 1, 4),
      {0, 5.5}, {ValueAt(5, 0, 2), 0, 0, 0});
  add("mov.b32 %c0, 9;" + Tex("a2d.v4.f32.f32", "%c0, %c1, %c2, %c2"),
      Spec(Shape::k2DLayered, 8, 6, 4), {0, 5.5, 1.5}, {ValueAt(5, 1, 3), 0, 0, 0});
  const TextureSpec half = Spec(Shape::k2D, 8, 6, 1, 2, DType::kFloat16);
  add(Tex(two, "%c0, %c1"), half, {1.5, 2.5}, {22, 1022, 0, 0});
  TextureSpec fractions = Spec(Shape::k2D, 8, 6, 1, 4, DType::kUInt8);
  fractions.unit_values = true;
  add(Tex(two, "%c0, %c1"), fractions, {1.5, 2.5},
      {22 / 255.0, 72 / 255.0, 122 / 255.0, 172 / 255.0}, false, 1e-6);
  fractions.linear = true;
  add(Tex(two, "%c0, %c1"), fractions, {2, 2.5}, {22.5 / 255.0}, false, 1e-3);
  fractions.linear = false;
  fractions.dtype = DType::kInt8;
  add(Tex(two, "%c0, %c1"), fractions, {1.5, 2.5},
      {22 / 127.0, 72 / 127.0, 122 / 127.0, -84 / 127.0}, false, 1e-6);
}

void AddCubes(std::vector<TextureCase>& all) {
  const std::array<std::array<double, 3>, 6> directions{{{1, 0.3, -0.3},
                                                         {-1, 0.3, -0.3},
                                                         {0.3, 1, -0.3},
                                                         {0.3, -1, -0.3},
                                                         {0.3, -0.3, 1},
                                                         {0.3, -0.3, -1}}};
  // Places on each face by the table of the Programming Guide: (s / m + 1) / 2 and (t / m + 1) / 2
  // of 0.3 or -0.3.
  const std::array<std::array<int, 2>, 6> places{{{2, 1}, {1, 1}, {2, 1}, {2, 2}, {2, 2}, {1, 2}}};
  for (size_t face = 0; face < directions.size(); ++face) {
    const auto& d = directions[face];
    all.push_back({Tex("cube.v4.f32.f32", "%c0, %c1, %c2, %c2"),
                   Spec(Shape::kCube, 4, 4, 6),
                   {d[0], d[1], d[2]},
                   false,
                   {ValueAt(places[face][0], places[face][1], static_cast<double>(face)), 0, 0, 0},
                   true,
                   0,
                   {}});
    all.push_back({"mov.b32 %r0, " + std::to_string(face % 4) + ";" +
                       // of three layers: the last one stands for more
                       Tex("acube.v4.f32.f32", "%r0, %c0, %c1, %c2"),
                   Spec(Shape::kCubeLayered, 4, 4, 18),
                   {d[0], d[1], d[2]},
                   false,
                   {ValueAt(places[face][0], places[face][1],
                            static_cast<double>(face + 6 * std::min(face % 4, size_t{2}))),
                    0, 0, 0},
                   true,
                   0,
                   {}});
  }
}

void AddIntegers(std::vector<TextureCase>& all) {
  const auto add = [&](const std::string& ptx, const TextureSpec& spec, std::vector<double> at,
                       std::vector<double> expected) {
    all.push_back({ptx, spec, std::move(at), false, std::move(expected), false, 0, {}});
  };
  const std::string as_unsigned = Tex("2d.v4.u32.f32", "%c0, %c1"),
                    as_signed = Tex("2d.v4.s32.f32", "%c0, %c1");
  add(as_unsigned, Spec(Shape::k2D, 8, 6, 1, 4, DType::kUInt8), {1.5, 2.5}, {22, 72, 122, 172});
  add(as_signed, Spec(Shape::k2D, 8, 6, 1, 4, DType::kInt8), {1.5, 2.5}, {22, 72, 122, -84});
  add(as_unsigned, Spec(Shape::k2D, 8, 6, 1, 2, DType::kUInt16), {1.5, 2.5}, {22, 1022, 0, 0});
  add(as_signed, Spec(Shape::k2D, 8, 6, 1, 1, DType::kInt32), {1.5, 2.5}, {22, 0, 0, 0});
  const std::string gather = "2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}];";
  const TextureSpec colours = Spec(Shape::k2D, 8, 6, 1, 4);
  const std::vector<double> four = {ValueAt(2, 4, 0), ValueAt(3, 4, 0), ValueAt(3, 3, 0),
                                    ValueAt(2, 3, 0)};
  for (int c = 0; c < 4; ++c) {
    std::vector<double> expected = four;
    for (double& value : expected) value += kPerChannel * c;
    all.push_back({"tld4." + std::string(1, "rgba"[c]) + "." + gather,
                   colours,
                   {3, 4},
                   false,
                   expected,
                   true,
                   0,
                   {}});
  }
  const std::string queries =
      "txq.width.b32 %r0, [%t]; txq.height.b32 %r1, [%t]; suq.width.b32 %r3, "
      "[%s];";
  add(queries, With(Spec(Shape::k2D, 8, 6), Wrap::kClamp, false, true), {}, {8, 6, 0, 8});
  add("txq.depth.b32 %r0, [%t]; suq.depth.b32 %r1, [%s]; suq.height.b32 %r2, [%s];",
      Spec(Shape::k3D, 4, 3, 5), {}, {5, 5, 3});
}

void AddSurfaces(std::vector<TextureCase>& all) {
  const TextureSpec words = Spec(Shape::k2D, 8, 6, 1, 1, DType::kInt32),
                    bytes = Spec(Shape::k2D, 8, 6, 1, 4, DType::kUInt8);
  const auto load = [&](const std::string& ptx, const TextureSpec& spec, std::vector<double> at,
                        std::vector<double> expected) {
    all.push_back({ptx, spec, std::move(at), true, std::move(expected), false, 0, {}});
  };
  const auto store = [&](const std::string& ptx, const TextureSpec& spec, std::vector<double> at,
                         std::vector<std::pair<size_t, double>> written) {
    all.push_back({ptx, spec, std::move(at), true, {}, false, 0, std::move(written)});
  };
  load("suld.b.2d.b32.trap %r0, [%s, {%c0, %c1}];", words, {4 * 3, 2}, {24});
  load("suld.b.2d.b32.clamp %r0, [%s, {%c0, %c1}];", words, {-4, 99}, {51});
  load("suld.b.2d.b32.zero %r0, [%s, {%c0, %c1}];", words, {4 * 8, 0}, {0});
  load("suld.b.2d.v2.b32.trap {%r0, %r1}, [%s, {%c0, %c1}];", words, {8, 2}, {23, 24});
  load("suld.b.2d.v4.b32.trap {%r0, %r1, %r2, %r3}, [%s, {%c0, %c1}];",
       Spec(Shape::k2D, 8, 6, 1, 4, DType::kInt32), {16, 0}, {2, 1002, 2002, 3002});
  load("suld.b.2d.b8.trap %h0, [%s, {%c0, %c1}]; cvt.u32.u16 %r0, %h0;", bytes, {6, 1},
       {SmallAt(1, 1, 2)});
  load(
      "suld.b.2d.v4.b8.trap {%h0, %h1, %h2, %h3}, [%s, {%c0, %c1}]; cvt.u32.u16 %r0, %h0; "
      "cvt.u32.u16 %r1, %h3;",
      bytes, {8, 1}, {13, 163});
  load("suld.b.2d.b64.trap %w, [%s, {%c0, %c1}]; mov.b64 {%r0, %r1}, %w;", words, {8, 2}, {23, 24});
  load("suld.b.1d.b32.trap %r0, [%s, {%c0}];", Spec(Shape::k1D, 8, 1, 1, 1, DType::kInt32), {20},
       {6});
  load("suld.b.3d.b32.trap %r0, [%s, {%c0, %c1, %c2, %c2}];",
       Spec(Shape::k3D, 4, 3, 5, 1, DType::kInt32), {8, 1, 4}, {413});
  load("suld.b.a2d.b32.trap %r0, [%s, {%c0, %c1, %c2, %c2}];",
       Spec(Shape::k2DLayered, 4, 3, 5, 1, DType::kInt32), {3, 8, 1}, {313});
  store("sust.b.2d.b32.trap [%s, {%c0, %c1}], %c2;", words, {12, 2, 77}, {{2 * 8 + 3, 77}});
  store("sust.b.2d.v2.b32.trap [%s, {%c0, %c1}], {%c2, %c1};", words, {8, 2, 77},
        {{2 * 8 + 2, 77}, {2 * 8 + 3, 2}});
  store("sust.b.2d.b32.zero [%s, {%c0, %c1}], %c2;", words, {-4, 2, 77}, {});
  store("cvt.u16.u32 %h0, %c2; sust.b.2d.b8.trap [%s, {%c0, %c1}], %h0;", bytes, {9, 2, 77},
        {{2 * 32 + 9, 77}});
  store("sust.b.a1d.b32.trap [%s, {%c0, %c1}], %c2;",
        Spec(Shape::k1DLayered, 8, 1, 4, 1, DType::kInt32), {2, 12, 77}, {{2 * 8 + 3, 77}});
  store("sust.p.2d.v4.b32.trap [%s, {%c0, %c1}], {%c2, %c1, %c0, %c2};", bytes, {3, 2, 77},
        {{2 * 32 + 12, 77}, {2 * 32 + 13, 2}, {2 * 32 + 14, 3}, {2 * 32 + 15, 77}});
  store("sured.b.add.2d.s32.trap [%s, {%c0, %c1}], %c2;", words, {12, 2, -77},
        {{2 * 8 + 3, 24 - 77}});
  store("sured.b.max.2d.u32.trap [%s, {%c0, %c1}], %c2;", words, {12, 2, 77}, {{2 * 8 + 3, 77}});
}

/// Results of 16 bits, single and in pairs; whether the place is resident; places moved by whole
/// texels.
void AddForms(std::vector<TextureCase>& all) {
  const auto add = [&](const std::string& ptx, const TextureSpec& spec, std::vector<double> at,
                       std::vector<double> expected, bool number = true) {
    all.push_back({ptx, spec, std::move(at), false, std::move(expected), number, 0, {}});
  };
  const TextureSpec plane = Spec(Shape::k2D, 8, 6),
                    halves = Spec(Shape::k2D, 8, 6, 1, 4, DType::kFloat16);
  const std::string widen =
      " cvt.f32.f16 %r0, %h0; cvt.f32.f16 %r1, %h1; cvt.f32.f16 %r2, %h2; cvt.f32.f16 %r3, %h3;";
  const std::string sparse = "{%r0, %r1, %r2, %r3}|%p, [%t, {%c0, %c1}]; selp.u32 %r1, 7, 9, %p;";
  add("tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%c0, %c1}];" + widen, halves, {1.5, 2.5},
      {22, 1022, 2022, 3022});
  add("tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%c0, %c1}];" + widen, plane, {1.5, 2.5},
      {22, 0, 0, 0});
  add("tex.2d.v2.f16x2.f32 {%r2, %r3}, [%t, {%c0, %c1}]; mov.b32 {%h0, %h1}, %r2; mov.b32 {%h2, "
      "%h3}, %r3;" +
          widen,
      halves, {1.5, 2.5}, {22, 1022, 2022, 3022});
  add("tex.2d.v4.u32.f32 " + sparse, Spec(Shape::k2D, 8, 6, 1, 1, DType::kInt32), {1.5, 2.5},
      {22, 7}, false);
  add("tld4.r.2d.v4.u32.f32 " + sparse, Spec(Shape::k2D, 8, 6, 1, 1, DType::kInt32), {3, 4},
      {43, 7}, false);
  add("mov.b32 %r0, 2; mov.b32 %r1, -1; tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}], "
      "{%r0, %r1};",
      plane, {1.5, 2.5}, {14});
  add("mov.b32 %r0, 7; mov.b32 %r1, -8; tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}], "
      "{%r0, %r1};",
      plane, {3.5, 2.5}, {8});
  add("mov.b32 %r0, 9; mov.b32 %r1, 0; tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c1}], "
      "{%r0, %r1};",
      plane, {0.5, 2.5}, {21});
  add("mov.b32 %r0, 1; mov.b32 %r1, -2; tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, "
      "%c1}], {%r0, %r1};",
      plane, {3, 4}, {24, 25, 15, 14});
}

std::vector<TextureCase> Cases() {
  std::vector<TextureCase> all;
  AddForms(all);
  AddReads(all);
  AddCubes(all);
  AddIntegers(all);
  AddSurfaces(all);
  return all;
}

std::string ModuleOf(const TextureCase& one) {
  return ".version 8.3\n.target sm_75\n.address_size 64\n"
         ".visible .entry one(.param .u64 texture, .param .u64 surface, .param .u64 in, .param "
         ".u64 out)\n{\n"
         "  .reg .b64 %t, %s, %in, %out, %w;\n  .reg .b32 %c<4>, %r<4>;\n  .reg .b16 %h<4>;\n  "
         ".reg .pred %p;\n"
         "  ld.param.u64 %t, [texture];\n  ld.param.u64 %s, [surface];\n  ld.param.u64 %in, [in];\n"
         "  ld.param.u64 %out, [out];\n  ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%in];\n"
         "  mov.b32 %r0, 0;\n  mov.b32 %r1, 0;\n  mov.b32 %r2, 0;\n  mov.b32 %r3, 0;\n  " +
         one.ptx + "\n  st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};\n  ret;\n}\n";
}

uint32_t BitsOf(double value, bool integer) {
  return integer ? static_cast<uint32_t>(static_cast<int32_t>(value))
                 : std::bit_cast<uint32_t>(static_cast<float>(value));
}

/// The four results, and the texels afterwards.
Result<std::pair<std::array<uint32_t, 4>, std::vector<std::byte>>> Run(Device& device,
                                                                       const TextureCase& one) {
  CompiledModule compiled;
  compiled.ptx = ModuleOf(one);
  ATUNNER_TRY(const auto module, device.Load(compiled));
  std::vector<std::byte> texels = Texels(one.spec);
  ATUNNER_TRY(const auto texture, device.CreateTexture(one.spec, texels));
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < one.coordinates.size(); ++i)
    words[i] = BitsOf(one.coordinates[i], one.integers);
  ATUNNER_TRY(const auto from, device.Allocate(sizeof words));
  ATUNNER_TRY(const auto to, device.Allocate(sizeof words));
  ATUNNER_RETURN_IF_ERROR(device.CopyIn(from->address(), std::as_bytes(std::span(words))));
  const KernelArg args[] = {KernelArg::Address(texture->texture()),
                            KernelArg::Address(texture->surface()),
                            KernelArg::Address(from->address()), KernelArg::Address(to->address())};
  ATUNNER_TRY(const LaunchOutcome outcome,
              device.Launch(*module, "one", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0}, args, {}));
  if (!outcome.completed()) return Invalid(outcome.message);
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(std::as_writable_bytes(std::span(words)), to->address()));
  ATUNNER_RETURN_IF_ERROR(texture->CopyOut(texels));
  return std::pair(words, texels);
}

}  // namespace

std::vector<std::string> TextureCaseNames() {
  std::vector<std::string> names;
  for (const TextureCase& one : Cases()) names.push_back(one.ptx);
  return names;
}

std::string CheckTextureCase(Device& device, size_t index) {
  const TextureCase one = Cases().at(index);
  const auto run = Run(device, one);
  if (!run) return one.ptx + ": " + run.error().ToString();
  const auto& [words, texels] = *run;
  std::string wrong;
  for (size_t i = 0; i < one.expected.size(); ++i) {
    const double got = one.number ? std::bit_cast<float>(words[i])
                                  : static_cast<double>(static_cast<int32_t>(words[i]));
    if (std::fabs(got - one.expected[i]) <= one.tolerance + 1e-7 * std::fabs(one.expected[i]))
      continue;
    wrong += " result " + std::to_string(i) + " is " + std::to_string(got) + ", expected " +
             std::to_string(one.expected[i]) + ";";
  }
  std::vector<std::byte> expected = Texels(one.spec);
  for (const auto& [element, value] : one.written)
    StoreElement(one.spec.dtype, expected.data(), element, value);
  if (texels != expected) wrong += " the texels differ;";
  return wrong.empty() ? "" : one.ptx + ":" + wrong;
}

}  // namespace atunner::vgpu
