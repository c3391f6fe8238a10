#include "faces/recorder/program_code.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "faces/recorder/testing/fake_driver.h"

namespace atunner::recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.const .align 4 .f32 table[4];
.global .align 8 .u64 visits;
.visible .entry _Z1fPfi(.param .u64 p, .param .u32 n) { ret; }
.visible .entry pair(.param .u64 p, .param .align 8 .b8 s[24]) { ret; })";

class Codes : public testing::Test {
 protected:
  Codes() : driver_(FakeDriver()), code_(driver_) {}

  Module LoadPtx(uintptr_t handle = 100) {
    const auto module = HandleOf<Module>(handle);
    code_.AddModule(module, kPtx.c_str());
    return module;
  }

  Driver driver_;
  ProgramCode code_;
  Function function_ = HandleOf<Function>(7);
};

TEST_F(Codes, AKernelHasItsModulesPtxAndVariables) {
  code_.AddFunction(function_, LoadPtx(), "_Z1fPfi");
  const ProgramKernel& kernel = code_.Find(function_);
  EXPECT_EQ(kernel.readable, "f(float*, int)");
  EXPECT_EQ(kernel.problem, "");
  EXPECT_EQ(kernel.module->ptx, kPtx);
  EXPECT_EQ(kernel.module->arch, 80);
  EXPECT_THAT(kernel.module->symbols,
              ElementsAre(ModuleSymbol{"visits", false}, ModuleSymbol{"table", true}));
  ASSERT_EQ(kernel.parameters.size(), 2u);
  EXPECT_EQ(kernel.parameters[1].offset, 8u);
  EXPECT_EQ(kernel.parameters[1].bytes, 4u);
}

TEST_F(Codes, AKernelKnowsTheVariablesThatItMayReach) {
  const std::string ptx = R"(.version 7.0
.target sm_80
.address_size 64
.const .align 4 .f32 table[4];
.global .align 8 .u64 visits;
.global .align 8 .u64 pointer[1] = {generic(visits)};
.func inner() { .reg .u64 %d; mov.u64 %d, pointer; ret; }
.visible .entry reads() { .reg .f32 %f; ld.const.f32 %f, [table+4]; ret; }
.visible .entry calls() { call inner, (); ret; }
.visible .entry none() { ret; })";
  const auto module = HandleOf<Module>(200);
  code_.AddModule(module, ptx.c_str());
  const auto reached = [&](uintptr_t handle, const char* name) {
    code_.AddFunction(HandleOf<Function>(handle), module, name);
    return code_.Find(HandleOf<Function>(handle)).symbols;
  };
  EXPECT_THAT(reached(11, "reads"), ElementsAre(ModuleSymbol{"table", true}));
  EXPECT_THAT(reached(12, "calls"),
              ElementsAre(ModuleSymbol{"visits", false}, ModuleSymbol{"pointer", false}));
  EXPECT_THAT(reached(13, "none"), IsEmpty());
}

TEST_F(Codes, TheDriverKnowsParametersBetter) {
  Fake().parameter_bytes = {8, 16};
  code_.AddFunction(function_, LoadPtx(), "pair");
  EXPECT_EQ(code_.Find(function_).parameters.at(1).bytes, 16u);
}

TEST_F(Codes, AKernelOfALibraryIsAFunctionToo) {
  Fake().parameter_bytes = {8};
  const auto library = HandleOf<Library>(50);
  const auto kernel = HandleOf<Kernel>(60);
  code_.AddLibrary(library, kPtx.c_str());
  code_.AddKernel(kernel, library, "pair");
  const ProgramKernel& found = code_.Find(kernel);
  EXPECT_EQ(&code_.Find(HandleOf<Function>(61)), &found) << "the handle that graphs tell";
  EXPECT_EQ(found.module->library, library);
}

TEST_F(Codes, UnknownHandlesAreAskedFor) {
  Fake().function_names[function_] = "_Z1fPfi";
  Fake().function_modules[function_] = LoadPtx();
  EXPECT_EQ(code_.Find(function_).module->ptx, kPtx);
}

TEST_F(Codes, AKernelOfAnUnknownModuleSaysSo) {
  Fake().function_names[function_] = "g";
  Fake().parameter_bytes = {8};
  EXPECT_THAT(code_.Find(function_).problem, HasSubstr("is not known"));
}

TEST_F(Codes, HandlesAreUsedAgain) {
  const Module module = LoadPtx();
  code_.AddFunction(function_, module, "_Z1fPfi");
  const size_t first = code_.Find(function_).number;
  code_.Remove(module);
  code_.AddFunction(function_, LoadPtx(), "pair");
  EXPECT_EQ(code_.Find(function_).name, "pair");
  EXPECT_NE(code_.Find(function_).number, first);
}

TEST_F(Codes, PtxThatCannotBeReadIsAProblem) {
  code_.AddModule(HandleOf<Module>(1), ".version 7.0\n.target sm_80\nnonsense");
  code_.AddFunction(function_, HandleOf<Module>(1), "f");
  Fake().parameter_bytes = {8};
  EXPECT_THAT(code_.Find(function_).problem, HasSubstr("cannot be read"));
}

/// An ELF file with one table of symbols; names of sections and of symbols are in one text.
std::string Cubin() {
  const std::string names("\0.nv.global.init\0.nv.constant3\0.text.k\0visits\0table\0k", 52);
  const auto at = [&](const char* name) { return static_cast<uint32_t>(names.find(name)); };
  const Elf64_Sym symbols[] = {
      {},
      {at("visits"), ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 2, 0, 8},
      {at("table"), ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, 3, 0, 16},
      {at("k"), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 4, 0, 128},
  };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shnum = 6;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shstrndx = 1;
  Elf64_Shdr sections[6] = {};
  const uint64_t behind = sizeof header + sizeof sections;
  sections[1] = {.sh_type = SHT_STRTAB, .sh_offset = behind, .sh_size = names.size()};
  sections[2] = {.sh_name = at(".nv.global.init"), .sh_type = SHT_PROGBITS};
  sections[3] = {.sh_name = at(".nv.constant3"), .sh_type = SHT_PROGBITS};
  sections[4] = {.sh_name = at(".text.k"), .sh_type = SHT_PROGBITS};
  sections[5] = {.sh_type = SHT_SYMTAB,
                 .sh_offset = behind + names.size(),
                 .sh_size = sizeof symbols,
                 .sh_link = 1};
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return file + names + std::string(reinterpret_cast<const char*>(symbols), sizeof symbols);
}

TEST_F(Codes, MachineCodeAloneTellsItsVariables) {
  const std::string cubin = Cubin();
  code_.AddModule(HandleOf<Module>(1), cubin.data());
  code_.AddFunction(function_, HandleOf<Module>(1), "k");
  Fake().parameter_bytes = {8};
  const ProgramKernel& kernel = code_.Find(function_);
  EXPECT_EQ(kernel.problem, "");
  EXPECT_EQ(kernel.module->cubin, cubin);
  EXPECT_EQ(kernel.module->arch, 90) << "the device's";
  EXPECT_THAT(kernel.module->symbols,
              ElementsAre(ModuleSymbol{"visits", false}, ModuleSymbol{"table", true}));
}

TEST(CubinSymbols, ACutFileIsRefusedOrHasFewer) {
  const std::string cubin = Cubin();
  for (size_t bytes = 0; bytes < cubin.size(); ++bytes) {
    const auto symbols = SymbolsOfCubin(std::string_view(cubin).substr(0, bytes));
    EXPECT_TRUE(!symbols || symbols->size() <= 2) << bytes;
  }
  EXPECT_FALSE(SymbolsOfCubin("no file"));
}

}  // namespace
}  // namespace atunner::recorder
