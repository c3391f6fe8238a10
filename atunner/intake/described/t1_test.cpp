#include "atunner/intake/described/t1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kConvolution = R"json({
  "General": {"BenchmarkName": "convolution"},
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "block_size_x", "Type": "int", "Values": "[16, 32, 48]", "Default": 16},
      {"Name": "block_size_y", "Type": "int", "Values": "[1, 2, 4]", "Default": 16},
      {"Name": "filter_width", "Type": "int", "Values": "[15]", "Default": 15}],
    "Conditions": [{"Expression": "32 <= block_size_x*block_size_y <= 1024", "Parameters": ["block_size_x", "block_size_y"]}]},
  "KernelSpecification": {
    "Language": "CUDA", "CompilerOptions": ["-std=c++11"], "KernelName": "convolution_kernel", "KernelFile": "convolution.cu",
    "LocalSize": {"X": "block_size_x", "Y": "block_size_y", "Z": "1"},
    "GridDivX": ["block_size_x", "filter_width"], "GridDivY": ["block_size_y"],
    "ProblemSize": [4096, 2048], "SharedMemory": 0, "Stream": null,
    "Arguments": [
      {"Name": "out", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "FillType": "Constant", "Size": "ProblemSize[0]*ProblemSize[1]", "FillValue": 0.0, "Output": 1},
      {"Name": "in", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "FillType": "Random", "Size": "(ProblemSize[0]+max(filter_width)-1) * 2", "FillValue": 2.0},
      {"Name": "d_filter", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "MemType": "Constant", "FillType": "Random", "Size": "max(filter_width)"},
      {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "AccessType": "ReadOnly", "FillValue": 4096}]}})json";

constexpr const char* kSource = R"cuda(
__constant__ float d_filter[filter_width];
extern "C" __global__ void convolution_kernel(float* out, const float* in, int n) {}
)cuda";

const FileReader kAnyFile = [](const std::string&) { return Result<std::string>(kSource); };

Result<UserKernel> Parse(const nlohmann::json& json) {
  return ParseT1(json.dump(), "space.json", kAnyFile);
}

std::string ErrorOf(nlohmann::json json) {
  const auto kernel = Parse(json);
  return kernel ? "" : kernel.error().ToString();
}

TEST(T1, ThresholdsAreNotNegative) {
  nlohmann::json json = nlohmann::json::parse(kConvolution);
  nlohmann::json& reference = json["KernelSpecification"]["ReferenceArguments"][0];
  reference = {{"ValidationMethod", "SideBySideRelativeComparison"}, {"ValidationThreshold", 1e-3}};
  EXPECT_EQ(ErrorOf(json), "");
  reference["ValidationThreshold"] = -1e-3;
  EXPECT_THAT(ErrorOf(json), HasSubstr("not a finite number of at least 0"));
}

TEST(T1, ReadsKernelTunersConventions) {
  auto kernel = ParseT1(kConvolution, "space.json", kAnyFile);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.name, "convolution_kernel");
  EXPECT_EQ(kernel->space.CartesianSize(), 9);
  ASSERT_EQ(kernel->spec.args.size(), 4u);
  EXPECT_EQ(kernel->spec.args[0].role, Role::kOutput);
  EXPECT_EQ(kernel->spec.args[0].shape[0].text(), std::to_string(4096 * 2048));
  EXPECT_EQ(kernel->spec.args[1].shape[0].text(), std::to_string((4096 + 14) * 2));
  EXPECT_EQ(kernel->spec.args[1].fill.kind, Fill::Kind::kUniform);
  EXPECT_EQ(kernel->spec.args[1].fill.high, 2.0);
  // A constant is copied to its symbol and is not a kernel parameter.
  ASSERT_EQ(kernel->plan.symbols.size(), 1u);
  EXPECT_EQ(kernel->plan.symbols[0].symbol, "d_filter");
  EXPECT_EQ(kernel->plan.steps[0].args.size(), 3u);

  auto schedule = MakeUserTemplate(*kernel);
  ASSERT_TRUE(schedule) << schedule.error().ToString();
  // The default 16 of block_size_y is not in its list. The nearest value is 4, and 16 x 4 is
  // allowed.
  EXPECT_EQ((*schedule)->space().Describe((*schedule)->Default()),
            "block_size_x=16, block_size_y=4, filter_width=15");
  const auto rendered = (*schedule)->Render((*schedule)->Default());
  ASSERT_TRUE(rendered);
  const auto plan = Resolve(rendered->plan, {}, {});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ(plan->steps[0].grid, (Dim3{18, 512, 1}));  // ceil(4096 / 240), 2048 / 4
  EXPECT_EQ(plan->steps[0].block, (Dim3{16, 4, 1}));
  EXPECT_THAT(rendered->source.defines,
              testing::Contains(std::pair<std::string, std::string>("block_size_x", "16")));
}

TEST(T1, GlobalSizeCountsBlocksOrThreads) {
  auto json = nlohmann::json::parse(kConvolution);
  auto& spec = json["KernelSpecification"];
  spec["Arguments"][1]["Size"] = 128;  // as it was, it refers to ProblemSize
  spec["Arguments"][0]["Size"] = 64;
  spec.erase("ProblemSize");
  spec["GlobalSize"] = {{"X", "4096 // block_size_x"}};
  auto blocks = Parse(json);
  ASSERT_TRUE(blocks) << blocks.error().ToString();
  EXPECT_EQ(blocks->plan.steps[0].grid[0].text(), "4096 // block_size_x");
  spec["GlobalSizeType"] = "OpenCL";
  spec["GlobalSize"] = {{"X", "4096"}};
  auto threads = Parse(json);
  ASSERT_TRUE(threads);
  EXPECT_EQ(threads->plan.steps[0].grid[0].text(), "ceil_div(4096, block_size_x)");
}

// As BAT writes products: a block computes a tile of another size than its own.
TEST(T1, AGlobalSizeOfParametersStandsBesideAProblemSizeThatNothingDivides) {
  auto json = nlohmann::json::parse(kConvolution);
  auto& spec = json["KernelSpecification"];
  spec.erase("GridDivX");
  spec["GlobalSizeType"] = "OpenCL";
  spec["GlobalSize"] = {{"X", "(4096 // 64) * block_size_x"}};
  auto kernel = Parse(json);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_THAT(kernel->plan.steps[0].grid[0].text(),
              testing::EndsWith(" // 64) * block_size_x, block_size_x)"));
  spec["GlobalSize"] = {{"X", "2048"}};
  EXPECT_EQ(Parse(json)->plan.steps[0].grid[0].text(), "ceil_div(4096, block_size_x)");
}

TEST(T1, DefaultThatBreaksAConstraintIsReplacedByANearOne) {
  auto json = nlohmann::json::parse(kConvolution);
  json["ConfigurationSpace"]["TuningParameters"][1]["Default"] = 1;
  auto kernel = Parse(json);
  ASSERT_TRUE(kernel);
  auto schedule = MakeUserTemplate(*kernel);
  ASSERT_TRUE(schedule);
  EXPECT_EQ((*schedule)->space().Allows((*schedule)->Default(), {}), true);
  EXPECT_EQ(kernel->notes.size(), 1u);
}

TEST(T1, MistakesNameTheKey) {
  const auto good = nlohmann::json::parse(kConvolution);
  auto json = good;
  json["ConfigurationSpace"]["TuningParameters"][0]["Values"] = "[1, 2";
  EXPECT_THAT(ErrorOf(json), HasSubstr("TuningParameters.block_size_x.Values"));
  json = good;
  json["ConfigurationSpace"]["Conditions"][0]["Expression"] = "a >";
  EXPECT_THAT(ErrorOf(json), HasSubstr("Conditions"));
  json = good;
  json["KernelSpecification"]["Arguments"][0]["Type"] = "quaternion";
  EXPECT_THAT(ErrorOf(json), HasSubstr("unknown type 'quaternion'"));
  json = good;
  json["KernelSpecification"]["Arguments"][0]["Size"] = "ProblemSize[7]";
  EXPECT_THAT(ErrorOf(json), HasSubstr("Arguments.out.Size"));
  json = good;
  json["KernelSpecification"]["Arguments"] = nlohmann::json::array();
  EXPECT_THAT(ErrorOf(json), HasSubstr("no arguments"));
  json = good;
  json["KernelSpecification"]["Language"] = "OpenCL";
  EXPECT_THAT(ErrorOf(json), HasSubstr("not CUDA"));
  json = good;
  json["KernelSpecification"].erase("LocalSize");
  EXPECT_THAT(ErrorOf(json), HasSubstr("LocalSize.X"));
  EXPECT_THAT(ParseT1("{", "space.json", kAnyFile).error().ToString(), HasSubstr("not valid JSON"));
  EXPECT_FALSE(ParseT1("[]", "space.json", kAnyFile));
  EXPECT_FALSE(ParseT1("{\"ConfigurationSpace\": 3}", "space.json", kAnyFile));
}

/// Invalid files, each with one message that names the place and the mistake.
TEST(T1, WhatIsNotSupportedIsRefused) {
  const auto good = nlohmann::json::parse(kConvolution);
  const auto with_argument = [&](size_t at, const char* key, const nlohmann::json& value) {
    auto json = good;
    json["KernelSpecification"]["Arguments"][at][key] = value;
    return ErrorOf(json);
  };
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto json = good;
    json["KernelSpecification"][key] = value;
    return ErrorOf(json);
  };
  EXPECT_THAT(with_argument(1, "MemType", "Texture"),
              HasSubstr("Arguments.in.MemType: \"Texture\" is not supported"));
  EXPECT_THAT(with_argument(1, "MemoryType", "Image"),
              HasSubstr("Arguments.in.MemoryType: \"Image\" is not supported"));
  EXPECT_THAT(with_argument(1, "FillType", "Script"),
              HasSubstr("Arguments.in.FillType: \"Script\" is not supported"));
  EXPECT_THAT(with_argument(1, "FillType", "BinaryHDF"),
              HasSubstr("\"BinaryHDF\" is not supported"));
  EXPECT_THAT(with_argument(1, "FillType", "BinaryRaw"),
              HasSubstr("Arguments.in.DataSource: missing"));
  EXPECT_THAT(with_argument(1, "AccessType", "Write"), HasSubstr("Arguments.in.AccessType"));
  EXPECT_THAT(with_argument(1, "Type", "custom"), HasSubstr("Arguments.in.TypeSize: missing"));
  EXPECT_THAT(with_argument(1, "Name", "out"), HasSubstr("a second argument of this name"));
  EXPECT_THAT(with_argument(2, "Name", "e_filter"),
              HasSubstr("'convolution.cu' has no symbol of this name"));
  EXPECT_THAT(with_argument(3, "Type", "float4"), HasSubstr("a scalar of a vector or custom type"));
  EXPECT_THAT(with_argument(3, "FillValue", "block_size_x"), HasSubstr("'block_size_x' varies"));
  EXPECT_EQ(with("GlobalSizeType", "Metal"), "");  // ProblemSize decides
  EXPECT_THAT(with("ProblemSize", {1, 2, 3, 4}), HasSubstr("one to three sizes"));
}

TEST(T1, TheKernelsDeclarationIsComparedWithTheArguments) {
  auto json = nlohmann::json::parse(kConvolution);
  auto& arguments = json["KernelSpecification"]["Arguments"];
  arguments[3]["Type"] = "double";
  EXPECT_THAT(
      ErrorOf(json),
      HasSubstr("number 3 is a scalar float64, parameter 'n' of 'convolution_kernel' is int "
                "(convolution.cu:3)"));
  arguments[3]["Type"] = "float";  // as wide, and read as another number
  EXPECT_THAT(ErrorOf(json), HasSubstr("number 3 is a scalar float32"));
  arguments[3]["Type"] = "uint32";
  EXPECT_EQ(ErrorOf(json), "");
  arguments[2]["MemType"] = "Global";
  EXPECT_THAT(ErrorOf(json),
              HasSubstr("4 are passed, 'convolution_kernel' takes 3 (convolution.cu:3)"));
}

TEST(T1, AResultMarkedReadOnlyIsTakenAsWritten) {
  auto json = nlohmann::json::parse(kConvolution);
  json["KernelSpecification"]["Arguments"][0] = {{"Name", "out"},
                                                 {"Type", "float"},
                                                 {"MemoryType", "Vector"},
                                                 {"AccessType", "ReadOnly"},
                                                 {"Size", 64}};
  const FileReader read = [](const std::string&) {
    return Result<std::string>(
        "__constant__ float d_filter[15];\n__global__ void convolution_kernel(float* out, float* "
        "in,"
        " int n) { if (n > 3) out[threadIdx.x] = in[0] + d_filter[0]; }");
  };
  const auto kernel = ParseT1(json.dump(), "space.json", read);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.FindArg("out")->role, Role::kInOut);
  EXPECT_EQ(kernel->spec.FindArg("in")->role, Role::kInput);
  EXPECT_THAT(kernel->notes,
              testing::Contains(HasSubstr("'out' is marked ReadOnly and the kernel writes it")));
}

TEST(T1, AResultThatIsAddedToKeepsItsFill) {
  const auto with = [](const std::string& statement) {
    const FileReader read = [&](const std::string&) {
      return Result<std::string>(
          "__constant__ float d_filter[15];\n__global__ void convolution_kernel(float* out, float* "
          "in, int n) { if (n > 3) " +
          statement + " }");
    };
    return ParseT1(kConvolution, "space.json", read).value();
  };
  const UserKernel adds = with("out[threadIdx.x] += in[0] * d_filter[0];");
  EXPECT_EQ(adds.spec.args[0].role, Role::kInOut);
  EXPECT_EQ(adds.spec.args[0].fill.kind, Fill::Kind::kConstant);
  EXPECT_THAT(adds.notes,
              testing::Contains(HasSubstr("'out' is marked WriteOnly and the kernel reads it")));
  EXPECT_EQ(with("out[threadIdx.x] = in[0] * d_filter[0];").spec.args[0].role, Role::kOutput);
}

TEST(T1, AParameterThatTheKernelSpellsInAnotherCaseIsTold) {
  const FileReader read = [](const std::string&) {
    return Result<std::string>(
        "#define BLOCK_SIZE_X 16\n__constant__ float d_filter[15];\n__global__ void "
        "convolution_kernel(float* out, "
        "float* in,"
        " int n) { if (n > 3) out[threadIdx.x + BLOCK_SIZE_X] = in[0] + d_filter[0]; }");
  };
  const auto kernel = ParseT1(kConvolution, "space.json", read);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_THAT(
      kernel->notes,
      testing::Contains(HasSubstr("'block_size_x', but 'BLOCK_SIZE_X': its values do not reach")));
  const auto same = ParseT1(kConvolution, "space.json", [](const std::string&) {
    return Result<std::string>(
        "__constant__ float d_filter[15];\n__global__ void convolution_kernel(float* out, float* "
        "in, int n) {"
        " if (n > 3) out[threadIdx.x + block_size_x] = in[0] + d_filter[0]; }");
  });
  EXPECT_THAT(same->notes, testing::Not(testing::Contains(HasSubstr("do not reach"))));
}

TEST(T1, BenchmarkConfigIsDefinedWhereTheSourceAsksForIt) {
  auto json = nlohmann::json::parse(kConvolution);
  json["BenchmarkConfig"] = {
      {"PRECISION", 32}, {"VARIANT", 2}, {"n", 131072}, {"block_size_x", 64}};
  const FileReader reader = [](const std::string&) {
    return Result<std::string>(
        "#define VARIANT 1\n#if PRECISION == 32 && VARIANT == 1 && block_size_x > 0\n" +
        std::string(kSource) + "#endif\n");
  };
  const auto kernel = ParseT1(json.dump(), "space.json", reader);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_THAT(kernel->source.defines,
              testing::UnorderedElementsAre(testing::Pair("kernel_tuner", "1"),
                                            testing::Pair("PRECISION", "32")));
}

TEST(T1, ConstantsArePassedToo) {
  const FileReader read = [](const std::string&) {
    return Result<std::string>(
        "__constant__ float d_filter[15];\n__global__ void convolution_kernel(float* out, float* "
        "in,"
        " float* filter, int n) { if (n > 3) out[threadIdx.x] = in[0] + d_filter[0]; }");
  };
  const auto kernel = ParseT1(kConvolution, "space.json", read);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  ASSERT_EQ(kernel->plan.symbols.size(), 1u);
  ASSERT_EQ(kernel->plan.steps[0].args.size(), 4u);
  EXPECT_EQ(kernel->plan.steps[0].args[2].name, "d_filter") << "in the order of the list";
}

TEST(T1, TemplatesNeedTheirArguments) {
  const FileReader read = [](const std::string&) {
    return Result<std::string>(
        "template <int B> __global__ void convolution_kernel(float* o, const float* i, int n) {}\n"
        "__constant__ float d_filter[15];");
  };
  auto json = nlohmann::json::parse(kConvolution);
  const auto without = ParseT1(json.dump(), "space.json", read);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().ToString(), HasSubstr("'convolution_kernel' is a template"));
  json["KernelSpecification"]["KernelName"] = "convolution_kernel<block_size_x * block_size_y>";
  const auto with = ParseT1(json.dump(), "space.json", read);
  ASSERT_TRUE(with) << with.error().ToString();
  EXPECT_EQ(with->plan.steps[0].entry, "convolution_kernel<{block_size_x} * {block_size_y}>");
  // A value that contains its own placeholder is substituted only once.
  json["ConfigurationSpace"]["TuningParameters"].push_back(
      {{"Name", "odd"}, {"Type", "string"}, {"Values", "['{odd}']"}});
  json["KernelSpecification"]["KernelName"] = "convolution_kernel<odd>";
  auto odd = ParseT1(json.dump(), "space.json", read);
  ASSERT_TRUE(odd) << odd.error().ToString();
  const auto schedule = MakeUserTemplate(*odd);
  ASSERT_TRUE(schedule) << schedule.error().ToString();
  EXPECT_EQ((*schedule)->Render((*schedule)->Default())->plan.steps[0].entry,
            "convolution_kernel<{odd}>");
}

nlohmann::json ScaleOf(int64_t n, int64_t length) {
  const auto vector = [&](const char* name, const char* access) {
    return nlohmann::json{{"Name", name},         {"Type", "float"},      {"MemoryType", "Vector"},
                          {"AccessType", access}, {"FillType", "Random"}, {"FillValue", 1.0},
                          {"Size", length}};
  };
  nlohmann::json json;
  json["ConfigurationSpace"]["TuningParameters"] = {
      {{"Name", "block_size_x"}, {"Type", "int"}, {"Values", {64, 256}}, {"Default", 256}}};
  json["KernelSpecification"] = {
      {"Language", "CUDA"},
      {"KernelName", "k"},
      {"KernelFile", "k.cu"},
      {"ProblemSize", {n}},
      {"LocalSize", {{"X", "block_size_x"}}},
      {"GridDivX", {"block_size_x"}},
      {"Arguments",
       {vector("x", "ReadOnly"),
        vector("y", "WriteOnly"),
        {{"Name", "n"}, {"Type", "int32"}, {"MemoryType", "Scalar"}, {"FillValue", n}}}}};
  return json;
}

Result<UserKernel> ParseScale(const nlohmann::json& json) {
  return ParseT1(json.dump(), "space.json", [](const std::string&) {
    return Result<std::string>(
        "extern \"C\" __global__ void k(const float* x, float* y, int n) {}");
  });
}

TEST(T1, AProblemSizeThatTheKernelReceivesGivesCheckSizes) {
  auto kernel = ParseScale(ScaleOf(1 << 22, 4 << 22));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.dims, (Dims{{"problem_size_x", 1 << 22}}));
  EXPECT_EQ(kernel->spec.args[0].shape[0].text(), "problem_size_x * 4");
  ASSERT_EQ(kernel->check_dims.size(), 2u);
  const Dims& small = kernel->check_dims[1];
  EXPECT_EQ(small.at("problem_size_x"), 1 << 12);
  ASSERT_TRUE(MakeUserTemplate(*kernel));
  const std::vector<std::string> names = {"block_size_x"};
  const std::vector<Value> values = {int64_t{64}};
  LaunchPlan plan = kernel->plan;
  plan.parameter_names = names;
  plan.parameter_values = values;
  const auto resolved = Resolve(plan, small, {});
  ASSERT_TRUE(resolved) << resolved.error().ToString();
  EXPECT_EQ(resolved->steps[0].grid.x, 64u);
  EXPECT_EQ(ShapeOf(kernel->spec.args[1], kernel->spec, small)->elements, 1 << 14);
}

TEST(T1, LengthsWithoutARelationToTheProblemKeepItAsItIs) {
  const auto kernel = ParseScale(ScaleOf(1 << 22, 1234567));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_TRUE(kernel->spec.dims.empty());
  EXPECT_TRUE(kernel->check_dims.empty());
}

TEST(T1, HeadersOfTheSourceArePartOfIt) {
  std::string header = "#define FACTOR 2\n";
  const FileReader read = [&](const std::string& name) -> Result<std::string> {
    if (name == "factor.h") return header;
    if (name != "k.cu") return Fail(ErrorCode::kNotFound, "no such file");
    return "#include \"factor.h\"\nextern \"C\" __global__ void k(const float* x, float* y, int n) "
           "{}";
  };
  const std::string text = ScaleOf(1 << 12, 1 << 12).dump();
  const auto before = ParseT1(text, "space.json", read);
  ASSERT_TRUE(before) << before.error().ToString();
  EXPECT_THAT(before->source.text, HasSubstr("#define FACTOR 2"));
  header = "#define FACTOR 3\n";
  EXPECT_NE(ParseT1(text, "space.json", read)->source.text, before->source.text);
}

}  // namespace
}  // namespace atunner
