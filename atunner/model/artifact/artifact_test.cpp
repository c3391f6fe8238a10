#include "atunner/model/artifact/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "atunner/base/random.h"
#include "atunner/model/json/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

Artifact Sample() {
  Artifact artifact;
  artifact.name = "scale";
  artifact.spec.name = "scale";
  artifact.spec.dims = {{"cols", 64}, {"rows", 8}};
  artifact.spec.attributes = {{"factor", 2.5}};
  artifact.spec.args = {{"x",
                         Role::kInput,
                         DType::kFloat32,
                         {Expr::MustParse("rows"), Expr::MustParse("cols")},
                         {},
                         {}},
                        {"y",
                         Role::kOutput,
                         DType::kFloat32,
                         {Expr::MustParse("rows"), Expr::MustParse("cols")},
                         {},
                         {}}};
  LaunchStep step;
  step.entry = "scale";
  step.grid[0] = Expr::MustParse("ceil_div(rows * cols, threads)");
  step.block[0] = Expr::MustParse("threads");
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("factor"))};
  artifact.plan.steps = {step};
  artifact.plan.parameter_names = {"threads"};
  artifact.plan.parameter_values = {int64_t{128}};
  artifact.configuration = {{"threads", int64_t{128}}};
  artifact.valid_sizes = {{"rows"}, {{Expr::MustParse("rows % 2 == 0"), "pairs of rows"}}};
  artifact.arch = "sm_90a";
  artifact.compiler = "NVRTC 13.0";
  artifact.resources = {{.entry = "scale", .mangled = "scale", .registers = 12}};
  artifact.evidence = Evidence::kPredicted;
  artifact.device = "NVIDIA H200";
  artifact.cc_major = 9;
  artifact.trial.verdict.checks = {
      {.check = "oracle", .family = "normal", .dims = artifact.spec.dims, .passed = true}};
  artifact.trial.estimate = Estimate{.time_ns = 1234.5, .limiter = "dram"};
  artifact.baselines = {{.name = "naive"}};
  artifact.created = "2026-11-21T01:12:03Z";
  artifact.atunner_version = "0.1.0";
  artifact.run = "20261121-0112-scale-1234";
  return artifact;
}

const ArtifactFiles kFiles = {.source = "__global__ …",
                              .ptx = "// ptx",
                              .cubin = std::string("\x7f"
                                                   "ELF\0\1",
                                                   6),
                              .report_html = "<p>",
                              .report_markdown = "# r"};

class ArtifactFolder : public testing::Test {
 protected:
  Path folder() const { return dir_.path() / "best"; }
  void Save() { ASSERT_EQ(Problem(SaveArtifact(folder(), Sample(), kFiles)), ""); }
  static std::string Problem(const Status& status) {
    return status ? "" : status.error().ToString();
  }
  std::string LoadProblem() const {
    const auto loaded = LoadArtifact(folder());
    return loaded ? "" : loaded.error().ToString();
  }
  /// Entries of the parent: a left-over temporary would show.
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir_.path()), {}));
  }
  void EditManifest(const std::function<void(Json&)>& edit) const {
    Json json = ParseJson(ReadFile(folder() / "manifest.json").value()).value();
    edit(json);
    ASSERT_TRUE(WriteFileAtomic(folder() / "manifest.json", json.dump()).has_value());
  }
  TemporaryDirectory dir_;
};

/// Written by an earlier version, when trials had no candidates.
TEST(Artifact, OfSchema1IsLoaded) {
  const Path folder = Path(ATUNNER_SOURCE_DIR) / "tests/data/schema1/softmax";
  const auto artifact = LoadArtifact(folder);
  ASSERT_TRUE(artifact) << artifact.error().ToString();
  EXPECT_EQ(artifact->name, "softmax");
  EXPECT_EQ(artifact->device, "NVIDIA H200");
  EXPECT_FALSE(artifact->configuration.empty());
  EXPECT_EQ(artifact->trial.candidate.kind(), CandidateKind::kConfiguration);
  EXPECT_EQ(artifact->trial.configuration().values.size(), artifact->configuration.size());
  EXPECT_TRUE(artifact->trial.verdict.correct());
  EXPECT_TRUE(artifact->trial.ObjectiveNs());
  for (const char* file : {"kernel.cu", "kernel.ptx", "kernel.cubin"})
    EXPECT_FALSE(ReadArtifactFile(folder, *artifact, file).value().empty()) << file;
}

TEST_F(ArtifactFolder, ComesBackAsItWasSaved) {
  Save();
  const auto loaded = LoadArtifact(folder());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
  Artifact expected = Sample();
  for (const auto& [file, text] : {std::pair("kernel.cu", kFiles.source),
                                   {"kernel.ptx", kFiles.ptx},
                                   {"kernel.cubin", kFiles.cubin}}) {
    expected.digests[file] = DigestOf(text);
    EXPECT_EQ(ReadArtifactFile(folder(), *loaded, file).value(), text);
  }
  EXPECT_EQ(ArtifactManifest(*loaded), ArtifactManifest(expected));
  EXPECT_EQ(loaded->valid_sizes.constraints[0].reason, "pairs of rows");
  EXPECT_EQ(loaded->configuration, expected.configuration);
  EXPECT_EQ(loaded->evidence, Evidence::kPredicted);
  EXPECT_EQ(loaded->trial.estimate->time_ns, 1234.5);
  EXPECT_EQ(ReadFile(folder() / "report.html").value(), "<p>");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, FilesThatAreEmptyAreNotWritten) {
  ASSERT_EQ(Problem(SaveArtifact(folder().string() + "/", Sample(), {.source = "s", .ptx = "p"})),
            "");
  EXPECT_FALSE(std::filesystem::exists(folder() / "kernel.cubin"));
  EXPECT_EQ(ReadArtifactFile(folder(), LoadArtifact(folder()).value(), "kernel.cubin").value(), "");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, ReplacesAnArtifactAnEmptyFolderAndReports) {
  ASSERT_TRUE(MakeDirectories(folder()).has_value());
  Save();
  Artifact next = Sample();
  next.run = "another";
  ASSERT_EQ(Problem(SaveArtifact(folder(), next, {.source = "s", .ptx = "p"})), "");
  EXPECT_EQ(LoadArtifact(folder())->run, "another");
  EXPECT_FALSE(std::filesystem::exists(folder() / "kernel.cubin"))
      << "nothing of the old one may stay";
  std::filesystem::remove_all(folder());
  ASSERT_TRUE(WriteFileAtomic(folder() / "report.md", "no kernel was found").has_value());
  Save();
  EXPECT_EQ(LoadProblem(), "");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, ReplacesThroughASymbolicLink) {
  Save();
  const Path link = dir_.path() / "link";
  std::filesystem::create_directory_symlink(folder(), link);
  ASSERT_EQ(Problem(SaveArtifact(link, Sample(), kFiles)), "");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(LoadProblem(), "");
}

TEST_F(ArtifactFolder, NeverOverwritesWhatIsNotAnArtifact) {
  ASSERT_TRUE(WriteFileAtomic(folder() / "kernel.cu", "the user's own").has_value());
  EXPECT_THAT(Problem(SaveArtifact(folder(), Sample(), kFiles)), HasSubstr("no artifact"));
  EXPECT_EQ(ReadFile(folder() / "kernel.cu").value(), "the user's own");
  std::filesystem::remove(folder() / "kernel.cu");
  Save();
  ASSERT_TRUE(WriteFileAtomic(folder() / "notes.txt", "mine").has_value());
  EXPECT_THAT(Problem(SaveArtifact(folder(), Sample(), kFiles)), HasSubstr("'notes.txt'"));
  EXPECT_THAT(Problem(SaveArtifact(folder() / "kernel.cu", Sample(), kFiles)),
              HasSubstr("no folder"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, NothingIsLeftWhereWritingIsImpossible) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "file", "a file, not a folder").has_value());
  EXPECT_THAT(Problem(SaveArtifact(dir_.path() / "file" / "best", Sample(), kFiles)),
              HasSubstr("file"));
  if (::geteuid() != 0) {  // root may write anywhere
    ::chmod(dir_.path().c_str(), 0555);
    EXPECT_THAT(Problem(SaveArtifact(folder(), Sample(), kFiles)),
                HasSubstr("choose another folder"));
    ::chmod(dir_.path().c_str(), 0755);
  }
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, IsWrittenInPlaceWhereItCannotBeReplaced) {
  // A name so long that a sibling's would be too long stands for a mount or a read-only parent.
  const Path place = dir_.path() / std::string(250, 'a');
  ASSERT_EQ(Problem(SaveArtifact(place, Sample(), kFiles)), "");
  EXPECT_EQ(LoadArtifact(place)->run, Sample().run);
  Artifact next = Sample();
  next.run = "another";
  ASSERT_EQ(Problem(SaveArtifact(place, next, {.source = "s", .ptx = "p"})), "");
  EXPECT_EQ(LoadArtifact(place)->run, "another");
  EXPECT_FALSE(std::filesystem::exists(place / "kernel.cubin"))
      << "nothing of the old one may stay";
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ArtifactFolder, CanBeAskedBeforehand) {
  EXPECT_EQ(Problem(CheckArtifactFolder(folder())), "");
  EXPECT_FALSE(std::filesystem::exists(folder())) << "asking makes nothing";
  Save();
  EXPECT_EQ(Problem(CheckArtifactFolder(folder())), "");
  ASSERT_TRUE(WriteFileAtomic(folder() / "notes.txt", "mine").has_value());
  EXPECT_THAT(Problem(CheckArtifactFolder(folder())), HasSubstr("'notes.txt'"));
  if (::geteuid() != 0) {  // root may write anywhere
    std::filesystem::remove(folder() / "notes.txt");
    ::chmod(folder().c_str(), 0555);
    EXPECT_THAT(Problem(CheckArtifactFolder(folder())), HasSubstr("cannot be written"));
    ::chmod(folder().c_str(), 0755);
  }
}

TEST_F(ArtifactFolder, SaysWhichFileIsMissingOrChanged) {
  EXPECT_THAT(LoadProblem(), HasSubstr("no artifact"));
  EXPECT_EQ(LoadArtifact(folder()).error().code, ErrorCode::kNotFound);
  Save();
  std::filesystem::remove(folder() / "kernel.ptx");
  EXPECT_THAT(LoadProblem(), testing::AllOf(HasSubstr("kernel.ptx"), HasSubstr("missing")));
  Save();
  ASSERT_TRUE(WriteFileAtomic(folder() / "kernel.cubin", "something else").has_value());
  EXPECT_THAT(LoadProblem(), testing::AllOf(HasSubstr("kernel.cubin"), HasSubstr("changed")));
  Save();
  ASSERT_TRUE(WriteFileAtomic(folder() / "report.md", "annotated").has_value());
  EXPECT_EQ(LoadProblem(), "") << "reports may be edited";
}

TEST_F(ArtifactFolder, RefusesOtherFormats) {
  Save();
  EditManifest([](Json& json) { json["format"] = "atunner-artifact-2"; });
  EXPECT_EQ(LoadArtifact(folder()).error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(LoadProblem(), HasSubstr("newer atunner"));
  EditManifest([](Json& json) { json["format"] = 1; });
  EXPECT_THAT(LoadProblem(), HasSubstr("not the manifest"));
  EditManifest([](Json& json) { json = Json::array(); });
  EXPECT_THAT(LoadProblem(), HasSubstr("not the manifest"));
  ASSERT_TRUE(WriteFileAtomic(folder() / "manifest.json", "{\"format\": ").has_value());
  EXPECT_THAT(LoadProblem(), HasSubstr("malformed JSON"));
}

TEST_F(ArtifactFolder, FieldsAddedSinceTheFirstManifestsHaveDefaults) {
  Save();
  EditManifest([](Json& json) {
    for (const char* field :
         {"name", "created", "compute_capability", "configuration", "free_sizes", "baselines"})
      json.erase(field);
  });
  const auto loaded = LoadArtifact(folder());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
  EXPECT_EQ(loaded->name, "scale");
  EXPECT_EQ(loaded->cc_major, 9);
  EXPECT_EQ(loaded->cc_minor, 0);
  EXPECT_TRUE(loaded->valid_sizes.dims.empty());
}

struct BadManifest {
  const char* what;
  std::function<void(Json&)> edit;
  const char* message;
};

TEST_F(ArtifactFolder, EveryInconsistencyIsNamed) {
  const BadManifest cases[] = {
      {"entry", [](Json& j) { j["plan"]["steps"][0]["entry"] = "other"; }, "'other'"},
      {"tensor", [](Json& j) { j["plan"]["steps"][0]["args"][0]["name"] = "z"; }, "'z'"},
      {"workspace", [](Json& j) { j["plan"]["steps"][0]["args"][0]["kind"] = "workspace"; },
       "does not declare"},
      {"symbol",
       [](Json& j) { j["plan"]["symbols"] = Json::parse(R"([{"symbol":"s","tensor":"t"}])"); },
       "symbol 's'"},
      {"parameters", [](Json& j) { j["plan"]["parameter_values"] = Json::array(); },
       "1 parameter names and 0 values"},
      {"no steps", [](Json& j) { j["plan"]["steps"] = Json::array(); }, "no step"},
      {"block", [](Json& j) { j["plan"]["steps"][0]["block"][0] = "4096"; }, "block x is 4096"},
      {"expression", [](Json& j) { j["plan"]["steps"][0]["block"][0] = "1 +"; }, "expression"},
      {"shape", [](Json& j) { j["spec"]["args"][0]["shape"][0] = "0"; }, "at least 1"},
      {"free dim", [](Json& j) { j["free_sizes"]["dims"][0] = "depth"; }, "'depth'"},
      {"constraint", [](Json& j) { j["free_sizes"]["constraints"][0]["condition"] = "rows > 100"; },
       "rows > 100"},
      {"evidence", [](Json& j) { j["evidence"] = "guessed"; }, "'guessed'"},
      {"number", [](Json& j) { j["evidence"] = "measured"; }, "no such number"},
      {"verdict", [](Json& j) { j["trial"]["verdict"]["kind"] = "wrong-result"; }, "wrong-result"},
      {"file", [](Json& j) { j["digests"]["../../x"] = std::string(32, '0'); }, "../../x"},
      {"digest", [](Json& j) { j["digests"]["kernel.ptx"] = "12"; }, "no digest"},
      {"no binary",
       [](Json& j) { j["digests"].erase("kernel.ptx"), j["digests"].erase("kernel.cubin"); },
       "neither"},
      {"no spec", [](Json& j) { j.erase("spec"); }, "spec"},
      {"dtype", [](Json& j) { j["spec"]["args"][0]["dtype"] = "float7"; }, "float7"},
  };
  for (const BadManifest& bad : cases) {
    Save();
    EditManifest(bad.edit);
    EXPECT_THAT(LoadProblem(), HasSubstr(bad.message)) << bad.what;
    EXPECT_THAT(LoadProblem(), HasSubstr("manifest.json")) << bad.what;
  }
}

TEST_F(ArtifactFolder, AnIncorrectKernelCannotBeSaved) {
  Artifact artifact = Sample();
  artifact.trial.verdict.kind = VerdictKind::kWrongResult;
  EXPECT_THAT(Problem(SaveArtifact(folder(), artifact, kFiles)), HasSubstr("wrong-result"));
  EXPECT_EQ(Entries(), 0u);
}

TEST(ArtifactManifest, NeverCrashesOnDamagedText) {
  const std::string good = ArtifactManifest([] {
    Artifact artifact = Sample();
    artifact.digests["kernel.ptx"] = DigestOf("p");
    return artifact;
  }());
  ASSERT_TRUE(ParseArtifactManifest(good, "m").has_value());
  Random random(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const size_t at = random.Below(text.size());
      if (random.Below(2) == 0)
        text[at] = static_cast<char>(random.Below(256));
      else
        text.erase(at, random.Below(40));
    }
    const auto parsed = ParseArtifactManifest(text, "m");
    if (!parsed) {
      ++refused;
      EXPECT_THAT(parsed.error().ToString(), HasSubstr("m"));
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ValidSizes, ServesWhatItSays) {
  const ValidSizes freedom = {{"rows"}, {{Expr::MustParse("rows % 2 == 0"), "pairs of rows"}}};
  const Dims tuned = {{"cols", 64}, {"rows", 8}};
  const auto obstacle = [&](const Dims& wanted) {
    const Status status = Serves(freedom, tuned, wanted, {});
    return status ? std::string() : status.error().ToString();
  };
  EXPECT_EQ(obstacle(tuned), "");
  EXPECT_EQ(obstacle({{"cols", 64}, {"rows", 1000}}), "");
  EXPECT_THAT(obstacle({{"cols", 64}, {"rows", 7}}), HasSubstr("pairs of rows"));
  EXPECT_THAT(obstacle({{"cols", 65}, {"rows", 8}}), HasSubstr("cols = 64, not 65"));
  EXPECT_THAT(obstacle({{"cols", 64}}), HasSubstr("'rows' is not given"));
  EXPECT_THAT(obstacle({{"cols", 64}, {"rows", 8}, {"n", 1}}), HasSubstr("no dim 'n'"));
  EXPECT_THAT(obstacle({{"cols", 64}, {"rows", 0}}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace atunner
