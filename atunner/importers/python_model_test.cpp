#include "atunner/importers/python_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "atunner/importers/user_python.h"

namespace atunner::importers {
namespace {

/// A Python that runs this shell script in its place.
class Stand {
 public:
  explicit Stand(const std::string& script) {
    const Path python = folder_.path() / "python";
    EXPECT_TRUE(WriteFileAtomic(python, "#!/bin/sh\n" + script));
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    setenv("ATUNNER_PYTHON", python.c_str(), 1);
    EXPECT_TRUE(WriteFileAtomic(model(), "class Model: pass\n"));
  }
  ~Stand() { unsetenv("ATUNNER_PYTHON"); }

  Path model() const { return folder_.path() / "net.py"; }

 private:
  TemporaryDirectory folder_;
};

TEST(PythonModel, IsAFileOrAClassOfOne) {
  for (const std::string name : {"net.py", "a/net.py", "net.py:Net", "a:b/net.py:Net"})
    EXPECT_TRUE(IsPythonFile(name)) << name;
  for (const std::string name : {"", "net.pt2", "net.json", "net.pyc", "py", "folder.py/net.pt2"})
    EXPECT_FALSE(IsPythonFile(name)) << name;
}

// $3, $4 and $5 of `python -c START FILE CLASS ARCHIVE`.
TEST(PythonModel, IsExportedByPython) {
  const Stand stand(
      "echo \"$3 $4\" > \"$5\"; cp \"$(dirname \"$5\")/atunner/_model.py\" $3.seen\n");
  const auto exported = ExportPythonModel(stand.model().string() + ":Net");
  ASSERT_TRUE(exported) << exported.error().ToString();
  EXPECT_EQ(exported->archive.filename(), "net.pt2");
  EXPECT_EQ(ReadFile(exported->archive).value(), stand.model().string() + " Net\n");
  const std::string code = ReadFile(stand.model().string() + ".seen").value();
  EXPECT_NE(code.find("def export("), std::string::npos);
}

TEST(PythonModel, TheArchiveIsRemovedWithTheResult) {
  const Stand stand("echo > \"$5\"\n");
  Path archive;
  {
    const auto exported = ExportPythonModel(stand.model().string());
    ASSERT_TRUE(exported);
    archive = exported->archive;
    EXPECT_TRUE(Exists(archive));
  }
  EXPECT_FALSE(Exists(archive));
}

std::string ErrorOf(const std::string& script, ErrorCode code) {
  const Stand stand(script);
  const auto exported = ExportPythonModel(stand.model().string());
  EXPECT_FALSE(exported);
  if (exported) return "";
  EXPECT_EQ(exported.error().code, code);
  return exported.error().ToString();
}

TEST(PythonModel, ErrorsSayWhatIsMissing) {
  EXPECT_NE(ErrorOf("exit 3\n", ErrorCode::kUnavailable).find("PyTorch"), std::string::npos);
  EXPECT_NE(ErrorOf("echo no class; exit 2\n", ErrorCode::kInvalidInput).find("no class"),
            std::string::npos);
  const std::string failed = ErrorOf("seq 1 900; echo the end; exit 1\n", ErrorCode::kInvalidInput);
  EXPECT_NE(failed.find("the end"), std::string::npos);
  EXPECT_LT(failed.size(), 2000U);
}

TEST(PythonModel, WithoutFileOrPython) {
  EXPECT_EQ(ExportPythonModel("/no/such/net.py").error().code, ErrorCode::kInvalidInput);
  const Stand stand("");
  setenv("ATUNNER_PYTHON", "/no/such/python", 1);
  EXPECT_EQ(ExportPythonModel(stand.model().string()).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace atunner::importers
