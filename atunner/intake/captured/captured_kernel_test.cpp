#include "atunner/intake/captured/captured_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/capture/capture_writer.h"
#include "atunner/capture/placed_addresses.h"
#include "atunner/intake/captured/access_types.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// y[i] = k * x[i] with the pointers in a structure, and a counter.
constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 unset[8];
.visible .entry scale(.param .align 8 .b8 pair[24], .param .u64 count) {
  .reg .b32 %i, %n;
  .reg .b64 %x, %y, %c, %at;
  .reg .f32 %k, %v;
  ld.param.u64 %y, [pair];
  ld.param.u64 %x, [pair+8];
  ld.param.f32 %k, [pair+16];
  ld.param.u64 %c, [count];
  cvta.to.global.u64 %x, %x;
  mov.u32 %i, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.u32 %i, %i, %n, 0;
  mul.wide.u32 %at, %i, 4;
  add.u64 %x, %x, %at;
  add.u64 %y, %y, %at;
  ld.global.f32 %v, [%x];
  mul.f32 %v, %v, %k;
  st.global.f32 [%y], %v;
  red.global.add.u32 [%c], 1;
  ret;
})";

TEST(AccessTypes, PointersOfStructuresAreFollowed) {
  const auto module = ptx::Parse(kPtx).value();
  const KernelAccesses found = FindAccesses(*module.Find("scale"), {256, 1, 1});
  EXPECT_TRUE(found.complete);
  EXPECT_TRUE(found.reads_block_size);
  EXPECT_FALSE(found.reads_grid_size);
  EXPECT_TRUE(found.block_scales_index[0]);
  EXPECT_FALSE(found.block_scales_index[1]);
  ASSERT_EQ(found.pointers.size(), 3u);
  const PointerUse& y = found.pointers.at({0, 0});
  EXPECT_EQ(ElementTypeOf(y), DType::kFloat32);
  EXPECT_FALSE(y.read);
  EXPECT_TRUE(y.written);
  EXPECT_FALSE(found.pointers.at({0, 8}).written);
  EXPECT_TRUE(found.pointers.at({1, 0}).read);
  EXPECT_EQ(ElementTypeOf(found.pointers.at({1, 0})), DType::kInt32);
}

class CapturedKernels : public testing::Test {
 protected:
  CapturedKernels() {
    capture::CaptureWriter writer(dir_.path());
    capture_.modules = {{writer.Put(kPtx).value(), "", 80}};
    capture_.kernels = {{0, "scale", "scale"}};
    launch_.configuration = {{10}, {256}, {}, 512};
    const std::string zeros(8, '\0');
    launch_.parameters = {
        {std::string(24, '\0'), {{0, 0, 0}, {8, 1, 64}}},
        {zeros, {{0, 2, 0}}},
    };
    launch_.buffers = {
        {.bytes = 4096, .written = {{0, 2560}}},
        {.bytes = 4096, .before = writer.Put(std::string(4096, 'x')).value()},
        {.bytes = 4, .before = writer.Put(zeros.substr(4)).value(), .written = {{0, 4}}}};
  }
  Result<UserKernel> Kernel() {
    return KernelOfLaunch(capture_, launch_, capture::BlobsOf(dir_.path()));
  }

  TemporaryDirectory dir_;
  capture::Capture capture_;
  capture::CapturedLaunch launch_;
};

TEST_F(CapturedKernels, BuffersWrittenAsAWholeAreOutputs) {
  launch_.buffers[0].written = {{0, 4096}};
  EXPECT_EQ(Kernel().value().spec.args[0].role, Role::kOutput);
}

// Sums that are added to memory as cudaMalloc gave it: as an output it would hold the judge's
// poison.
TEST_F(CapturedKernels, MemoryThatIsReadButWasNeverWrittenHoldsZeros) {
  launch_.buffers[2].before.clear();
  const UserKernel kernel = Kernel().value();
  EXPECT_EQ(kernel.spec.args[2].role, Role::kInOut);
  EXPECT_EQ(kernel.spec.args[2].fill.kind, Fill::Kind::kZeros);
  EXPECT_THAT(kernel.notes, testing::Contains(testing::HasSubstr("is taken as zeros")));
}

TEST_F(CapturedKernels, BecomeTasksWithTheProgramsMemory) {
  UserKernel kernel = Kernel().value();
  ASSERT_EQ(kernel.spec.args.size(), 3u);
  EXPECT_EQ(kernel.spec.args[0].role, Role::kInOut) << "its end keeps what it holds";
  EXPECT_EQ(kernel.spec.args[0].dtype, DType::kFloat32);
  EXPECT_EQ(kernel.spec.args[1].role, Role::kInput);
  EXPECT_EQ(kernel.spec.args[1].fill.kind, Fill::Kind::kBlob);
  EXPECT_EQ(kernel.spec.args[2].role, Role::kInOut);
  EXPECT_EQ(kernel.spec.args[2].dtype, DType::kInt32);
  const LaunchStep& step = kernel.plan.steps.at(0);
  ASSERT_EQ(step.args.size(), 2u);
  EXPECT_EQ(step.args[0].kind, ArgBinding::Kind::kBytes);
  ASSERT_EQ(step.args[0].raw.pointers.size(), 2u);
  EXPECT_EQ(step.args[0].raw.pointers[1].name, kernel.spec.args[1].name);
  EXPECT_EQ(step.args[0].raw.pointers[1].offset, 64u);
  EXPECT_EQ(step.args[1].kind, ArgBinding::Kind::kTensor);
  const auto schedule = MakeUserTemplate(kernel).value();
  EXPECT_THAT(schedule->space().Names(), ElementsAre("block_x", "max_registers"));
  Configuration configuration = schedule->Default();
  configuration.values[0] = int64_t{512};
  const RenderedKernel rendered = schedule->Render(configuration).value();
  const ConcretePlan plan = Resolve(rendered.plan, {}, {}).value();
  EXPECT_EQ(plan.steps[0].grid.x, 5u);
  EXPECT_EQ(plan.steps[0].block.x, 512u);
  EXPECT_EQ(plan.steps[0].shared_bytes, 1024u);
}

TEST_F(CapturedKernels, VariablesThatChangeAreResults) {
  launch_.symbols = {{"counter", 4, std::string(32, 'a'), std::string(32, 'b'), {}},
                     {"limits", 8, std::string(32, 'a'), "", {}}};
  for (capture::CapturedBuffer& buffer : launch_.buffers) buffer.written = {};
  const UserKernel kernel = Kernel().value();
  ASSERT_EQ(kernel.spec.args.size(), 5u);
  EXPECT_EQ(kernel.spec.args[3].name, "symbol_counter");
  EXPECT_EQ(kernel.spec.args[3].role, Role::kInOut);
  EXPECT_EQ(kernel.spec.args[4].role, Role::kInput);
  EXPECT_EQ(kernel.plan.symbols.size(), 2u);
}

// E.g. cuda::std::ignore of CUDA's headers, whose name every compilation chooses anew.
TEST_F(CapturedKernels, VariablesThatNobodySetAreLeftToTheModule) {
  capture::BlobStore blobs(capture::BlobsOf(dir_.path()));
  launch_.symbols = {{"unset", 8, blobs.Put(std::string(8, '\0')).value(), "", {}}};
  EXPECT_EQ(Kernel().value().spec.args.size(), 3u);
  launch_.symbols[0].before = blobs.Put(std::string(8, 'x')).value();
  EXPECT_EQ(Kernel().value().spec.args.size(), 4u);
}

TEST_F(CapturedKernels, AddressesInMemoryAreListed) {
  launch_.buffers[1].pointers = {{8, 0, 64}, {16, 2, 0}};
  const UserKernel kernel = Kernel().value();
  const std::string& name = kernel.spec.args[1].fill.digest;
  EXPECT_EQ(capture::ContentsOf(name), launch_.buffers[1].before);
  const capture::BlobStore blobs(capture::BlobsOf(dir_.path()));
  EXPECT_EQ(capture::AddressesOf(blobs, name).value(),
            (std::vector<capture::PlacedAddress>{{8, 0, 64}, {16, 2, 0}}));
}

TEST_F(CapturedKernels, AddressesOfFunctionsAreThoseOfAModule) {
  capture_.kernels[0].readable = "scale(Rows, float (*)(float))";
  EXPECT_TRUE(Kernel());
  capture_.head.evidence = Evidence::kMeasured;
  EXPECT_THAT(Kernel().error().what, testing::HasSubstr("address of a device function"));
}

TEST_F(CapturedKernels, WhatCannotBeComparedIsSaid) {
  launch_.left_out = "it takes a texture";
  EXPECT_THAT(Kernel().error().ToString(), HasSubstr("it takes a texture"));
  launch_.left_out.clear();
  launch_.buffers[0].written = launch_.buffers[2].written = {};
  EXPECT_THAT(Kernel().error().ToString(), HasSubstr("wrote nothing"));
}

TEST_F(CapturedKernels, SourcesBringMacrosTemplatesAndNames) {
  const std::string source = R"(
#include <cstdio>
#ifndef UNROLL
#define UNROLL 4
#endif
#define BLOCK 256
struct Pair { float* y; const float* x; float k; };
template <int ITEMS>
__global__ void scale(Pair pair, unsigned* count) {
  __shared__ float tile[BLOCK];
  tile[threadIdx.x] = pair.x[blockIdx.x * BLOCK + threadIdx.x];
#pragma unroll UNROLL
  for (int i = 0; i < ITEMS; ++i) pair.y[i] = tile[i];
  for (int i = 0; i < 1; ++i) pair.y[i] = 0;
}
int main() { printf("host"); }
)";
  UserKernel kernel = Kernel().value();
  ASSERT_TRUE(UseSource(kernel, "void scale<8>(Pair, unsigned int*)", source, "/src/scale.cu"));
  EXPECT_THAT(kernel.space.Names(),
              ElementsAre("max_registers", "ITEMS", "UNROLL", "BLOCK", "unroll_1"));
  EXPECT_EQ(kernel.spec.args[2].name, "count");
  EXPECT_EQ(kernel.plan.steps[0].block[0].text(), "BLOCK");
  EXPECT_THAT(kernel.source.text, testing::Not(HasSubstr("printf")));
  const auto schedule = MakeUserTemplate(kernel).value();
  const RenderedKernel rendered = schedule->Render(schedule->Default()).value();
  EXPECT_EQ(rendered.plan.steps[0].entry, "scale<8>");
  EXPECT_THAT(rendered.source.text, testing::Not(HasSubstr("_Pragma")));
  Configuration unrolled = schedule->Default();
  unrolled.values.back() = int64_t{4};
  EXPECT_THAT(schedule->Render(unrolled).value().source.text,
              HasSubstr("_Pragma(\"unroll 4\") for (int i = 0; i < 1;"));
  EXPECT_THAT(UseSource(kernel, "other(int*)", source, "scale.cu").error().ToString(),
              HasSubstr("'other(int*)' is not defined here"));
}

}  // namespace
}  // namespace atunner
