// Textures on the virtual GPU: what instructions read and write, and what is told of bad handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/texture_cases.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

using testing::HasSubstr;

TEST(Textures, AllCases) {
  VirtualGpu device(FindProfile("H200").value());
  for (size_t i = 0; i < TextureCaseNames().size(); ++i) EXPECT_EQ(CheckTextureCase(device, i), "") << i;
}

/// What is told of a kernel that runs one instruction on a handle.
std::string MessageOf(VirtualGpu& device, const std::string& instruction, uint64_t handle) {
  CompiledModule compiled;
  compiled.ptx =
      ".version 8.3\n.target sm_75\n.address_size 64\n.visible .entry one(.param .u64 handle)\n{\n"
      "  .reg .b64 %t;\n  .reg .b32 %r<4>;\n  ld.param.u64 %t, [handle];\n  mov.b32 %r0, 64;\n  " +
      instruction + "\n  ret;\n}\n";
  const auto module = device.Load(compiled);
  if (!module) return module.error().ToString();
  const KernelArg args[] = {KernelArg::Address(handle)};
  const auto outcome = device.Launch(**module, "one", {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, args, {});
  return outcome ? outcome->message : outcome.error().ToString();
}

TEST(Textures, BadHandlesAndPlacesAreTold) {
  VirtualGpu device(FindProfile("H200").value());
  TextureSpec spec;
  spec.width = spec.height = 4;
  const std::vector<std::byte> texels(spec.Bytes());
  const auto texture = device.CreateTexture(spec, texels).value();
  const std::string read = "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0}];";
  const std::string load = "suld.b.2d.b32.trap %r1, [%t, {%r0, %r0}];";
  EXPECT_EQ(MessageOf(device, read, texture->texture()), "");
  EXPECT_THAT(MessageOf(device, read, 12345), HasSubstr("handle of no texture"));
  EXPECT_THAT(MessageOf(device, read, texture->surface()), HasSubstr("handle of no texture"));
  EXPECT_THAT(MessageOf(device, load, texture->texture()), HasSubstr("handle of no surface"));
  EXPECT_THAT(MessageOf(device, load, texture->surface()), HasSubstr("surface access at (64, 64, 0)"));
  EXPECT_THAT(MessageOf(device, "mov.b32 %r0, 2; suld.b.2d.b32.clamp %r1, [%t, {%r0, %r0}];", texture->surface()),
              HasSubstr("not a multiple"));
  EXPECT_THAT(
      MessageOf(device, "tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0, %r0, %r0}];", texture->texture()),
      HasSubstr("other dimensions"));
}

TEST(Textures, WhatIsNotThereIsRefused) {
  VirtualGpu device(FindProfile("H200").value());
  for (const char* instruction :
       {"tex.2dms.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0, %r0, %r0}];", "txq.num_samples.b32 %r0, [%t];",
        "tex.2d.v4.f32.f32 {%r0, %r1, %r2}, [%t, {%r0, %r0}];", "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0}];",
        "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%r0, {%r0, %r0}];"})
    EXPECT_THAT(MessageOf(device, instruction, 0), HasSubstr("not support")) << instruction;
}

TEST(Textures, SizesMustFit) {
  VirtualGpu device(FindProfile("H200").value());
  TextureSpec spec;
  EXPECT_FALSE(device.CreateTexture(spec, {}).has_value());
  spec.channels = 3;
  const std::vector<std::byte> texels(spec.Bytes());
  EXPECT_FALSE(device.CreateTexture(spec, texels).has_value());
}

}  // namespace
}  // namespace atunner::vgpu
