// Textures on the virtual GPU: what instructions read and write, and what is told of bad handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/conformance/texture_cases.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

using testing::HasSubstr;

TEST(Textures, AllCases) {
  VirtualGpu device(FindProfile("H200").value());
  for (size_t i = 0; i < TextureCaseNames().size(); ++i)
    EXPECT_EQ(CheckTextureCase(device, i), "") << i;
}

/// The hazard of a kernel that executes one instruction on a handle.
std::string MessageOf(VirtualGpu& device, const std::string& instruction, uint64_t handle) {
  CompiledModule compiled;
  compiled.ptx =
      ".version 8.3\n.target sm_75\n.address_size 64\n.visible .entry one(.param .u64 handle)\n{\n"
      "  .reg .b64 %t;\n  .reg .b32 %r<4>;\n  ld.param.u64 %t, [handle];\n  mov.b32 %r0, 64;\n  " +
      instruction + "\n  ret;\n}\n";
  const auto module = device.Load(compiled);
  if (!module) return module.error().ToString();
  const KernelArg args[] = {KernelArg::Address(handle)};
  const auto outcome = device.Launch(**module, "one", {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, args,
                                     {});
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
  EXPECT_THAT(MessageOf(device, load, texture->surface()),
              HasSubstr("surface access at (64, 64, 0)"));
  EXPECT_THAT(MessageOf(device, "mov.b32 %r0, 2; suld.b.2d.b32.clamp %r1, [%t, {%r0, %r0}];",
                        texture->surface()),
              HasSubstr("not a multiple"));
  EXPECT_THAT(
      MessageOf(device, "tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0, %r0, %r0}];",
                texture->texture()),
      HasSubstr("other dimensions"));
}

TEST(Textures, ThereAreNoneOfSeveralSamples) {
  VirtualGpu device(FindProfile("H200").value());
  TextureSpec spec;
  spec.width = spec.height = 4;
  const auto texture = device.CreateTexture(spec, std::vector<std::byte>(spec.Bytes())).value();
  for (const std::string form : {"2dms", "a2dms"})
    EXPECT_THAT(
        MessageOf(device,
                  "tex." + form + ".v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0, %r0, %r0}];",
                  texture->texture()),
        HasSubstr("other dimensions"));
}

TEST(Textures, WhatIsNotThereIsRefused) {
  VirtualGpu device(FindProfile("H200").value());
  for (const char* instruction :
       {"tex.2dms.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0, %r0, %r0}];",
        "txq.num_samples.b32 %r0, [%t];", "tex.2d.v4.f32.f32 {%r0, %r1, %r2}, [%t, {%r0, %r0}];",
        "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0}];",
        "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%r0, {%r0, %r0}];",
        "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r0, %r0}], {%r0, %r0}, %r0;"})
    EXPECT_THAT(MessageOf(device, instruction, 0), HasSubstr("not support")) << instruction;
}

/// 1 = a texture, 2 = a sampler, 4 = a surface.
TEST(Textures, ReferencesAreTold) {
  VirtualGpu device(FindProfile("H200").value());
  TextureSpec spec;
  spec.width = spec.height = 4;
  const auto texture = device.CreateTexture(spec, std::vector<std::byte>(spec.Bytes())).value();
  const auto kinds = [&](const std::string& load) -> uint32_t {
    CompiledModule compiled;
    compiled.ptx =
        ".version 8.3\n.target sm_75\n.address_size 64\n.global .texref red;\n.global .surfref "
        "paper;\n"
        ".visible .entry one(.param .u64 handle, .param .u64 out)\n{\n.reg .b64 %v, %to;\n.reg "
        ".b32 %r<4>;\n.reg .pred "
        "%p;\nld.param.u64 %to, [out];\n" +
        load +
        "istypep.texref %p, %v;\nselp.u32 %r0, 1, 0, %p;\nistypep.samplerref %p, %v;\nselp.u32 "
        "%r1, 2, 0, %p;\n"
        "istypep.surfref %p, %v;\nselp.u32 %r2, 4, 0, %p;\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r0, "
        "%r0, %r2;\n"
        "st.global.u32 [%to], %r0;\nret;\n}\n";
    const auto module = device.Load(compiled).value();
    const auto out = device.Allocate(4).value();
    const KernelArg args[] = {KernelArg::Address(texture->texture()),
                              KernelArg::Address(out->address())};
    EXPECT_TRUE(device.Launch(*module, "one", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0}, args, {})
                    .value()
                    .completed());
    uint32_t found = 0;
    EXPECT_TRUE(
        device.CopyOut(std::as_writable_bytes(std::span(&found, 1)), out->address()).has_value());
    return found;
  };
  EXPECT_EQ(kinds("mov.u64 %v, red;\n"), 1u);
  EXPECT_EQ(kinds("mov.u64 %v, paper;\n"), 4u);
  EXPECT_EQ(kinds("ld.param.u64 %v, [handle];\n"), 0u) << "handles are no references, an H200 says";
  EXPECT_EQ(kinds("mov.u64 %v, %to;\n"), 0u);
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
