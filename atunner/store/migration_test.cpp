// A store of schema 1, written by an earlier version, and files that are no store of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/store/store.h"

namespace atunner {
namespace {

using testing::HasSubstr;

const Path kSchema1 = Path(ATUNNER_SOURCE_DIR) / "tests/data/schema1/store.db";
const char* const kSoftmaxRun = "20261127-1251-softmax-5ec0";

std::string BytesOf(const Path& file) { return ReadFile(file).value(); }

/// A copy that may be changed; the folder may be entered by every user.
class MigrationTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    file_ = folder_.path() / "store.db";
    std::filesystem::copy_file(kSchema1, file_);
  }
  /// Opens the store in a process where `restrict` was called; returns the error's text, or "".
  std::string OpenRestricted(void (*restrict)()) {
    int pipes[2];
    EXPECT_EQ(::pipe(pipes), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      restrict();
      const auto store = Store::Open(file_);
      const std::string text = store ? "" : store.error().ToString();
      const bool is_users = store || store.error().code == ErrorCode::kInvalidInput;
      (void)!::write(pipes[1], text.data(), text.size());
      ::_exit(is_users ? 0 : 1);
    }
    ::close(pipes[1]);
    std::string text(4000, '\0');
    const ssize_t size = ::read(pipes[0], text.data(), text.size());
    ::close(pipes[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << "another error than kInvalidInput";
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
    return text;
  }
  void Execute(const Path& file, const char* sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(handle);
  }
  /// The first column of all rows, joined by commas.
  std::string Query(const char* sql) {
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(file_.c_str(), &handle), SQLITE_OK);
    std::string text;
    sqlite3_exec(
        handle, sql,
        [](void* out, int, char** values, char**) {
          auto& joined = *static_cast<std::string*>(out);
          joined += (joined.empty() ? "" : ",") + std::string(values[0] ? values[0] : "NULL");
          return 0;
        },
        &text, nullptr);
    sqlite3_close(handle);
    return text;
  }

  TemporaryDirectory folder_;
  Path file_;
};

TEST_F(MigrationTest, RunsAndTrialsReadBack) {
  const auto store = Store::Open(file_).value();
  EXPECT_EQ(store->Runs(100)->size(), 9u);
  const RunRecord run = store->FindRun(kSoftmaxRun).value();
  EXPECT_EQ(run.status, "finished");
  EXPECT_EQ(run.device, "NVIDIA H200");
  const auto space = FromJson<ParameterSpace>(ParseJson(run.space).value()).value();
  const std::vector<Trial> trials = store->Trials(run.id).value();
  ASSERT_EQ(trials.size(), 6u);
  EXPECT_EQ(trials[0].proposer(), "default");
  EXPECT_THAT(trials[1].proposer(), testing::StartsWith("search:"));
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.candidate.kind(), CandidateKind::kConfiguration);
    EXPECT_EQ(trial.configuration().values.size(), space.parameters.size());
    EXPECT_EQ(trial.candidate.id, space.DigestOfConfiguration(trial.configuration()));
    EXPECT_TRUE(trial.ObjectiveNs());
    EXPECT_FALSE(trial.verdict.checks.empty());
  }
}

/// Everything but the new fields is equal to what schema 1 wrote.
TEST_F(MigrationTest, NothingElseOfATrialChanges) {
  const std::string select = "SELECT body FROM trials ORDER BY run, number";
  const std::string before = Query(select.c_str());
  {
    const auto store = Store::Open(file_).value();
  }
  EXPECT_EQ(Query(select.c_str()), before);
  EXPECT_EQ(Query("PRAGMA user_version"), "2");
  EXPECT_EQ(Query("SELECT DISTINCT kind FROM trials"), "configuration");
  EXPECT_EQ(Query("SELECT count(*) FROM trials"), "50");
  EXPECT_EQ(Query("SELECT DISTINCT proposer FROM trials ORDER BY 1"), "default,search:auto");
  const auto store = Store::Open(file_).value();
  const std::vector<RunRecord> runs = store->Runs(100).value();
  ASSERT_FALSE(runs.empty());
  for (const RunRecord& run : runs) {
    const std::vector<Trial> trials = store->Trials(run.id).value();
    for (const Trial& trial : trials) {
      Json json = ToJson(trial);
      const Trial again = FromJson<Trial>(json).value();
      EXPECT_EQ(ToJson(again).dump(), json.dump());
    }
  }
}

TEST_F(MigrationTest, TheSameKeyResumesTheRun) {
  const auto store = Store::Open(file_).value();
  const RunRecord known = store->FindRun(kSoftmaxRun).value();
  RunRecord wanted = known;
  wanted.id = "another-id";
  wanted.status = "running";
  bool resumed = false;
  const RunRecord run = store->OpenRun(wanted, resumed).value();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(run.id, known.id);
  std::vector<Trial> trials = store->Trials(run.id).value();
  ASSERT_TRUE(store->AppendTrial(run.id, trials[2])) << "known: ignored";
  EXPECT_EQ(store->Trials(run.id)->size(), 6u);
  trials[2].note = "measured again";
  ASSERT_TRUE(store->UpdateTrial(run.id, trials[2]));
  EXPECT_EQ(store->Trials(run.id)->at(2).note, "measured again");
}

TEST_F(MigrationTest, KernelsAreStoredBesideConfigurations) {
  const auto store = Store::Open(file_).value();
  RenderedKernel kernel;
  kernel.source.text = "__global__ void k() {}";
  Trial trial;
  trial.number = 7;
  const Digest parent = store->Trials(kSoftmaxRun)->at(0).candidate.id;
  trial.candidate = MakeSourceCandidate(kernel, {"llm:some", "fewer barriers", parent});
  ASSERT_TRUE(store->AppendTrial(kSoftmaxRun, trial));
  const Trial back = store->Trials(kSoftmaxRun)->at(6);
  EXPECT_EQ(back.candidate.id, trial.candidate.id);
  EXPECT_EQ(back.candidate.provenance, trial.candidate.provenance);
  EXPECT_EQ(back.candidate.kernel()->source.text, kernel.source.text);
  EXPECT_EQ(Query("SELECT reason || ' ' || kind FROM trials WHERE number = 7"),
            "fewer barriers source");
}

TEST_F(MigrationTest, RenamedParametersGetTheirNewNamesAndIds) {
  std::string old_name;
  Configuration configuration;
  {
    const auto store = Store::Open(file_).value();
    const auto json = ParseJson(store->FindRun(kSoftmaxRun)->space).value();
    old_name = FromJson<ParameterSpace>(json)->parameters[0].name;
    configuration = store->Trials(kSoftmaxRun)->at(3).configuration();
  }
  const RenamedParameter renamed[] = {{old_name, "rows_at_a_time"}};
  const auto store = Store::Open(file_, renamed).value();
  const RunRecord run = store->FindRun(kSoftmaxRun).value();
  const auto space = FromJson<ParameterSpace>(ParseJson(run.space).value()).value();
  EXPECT_EQ(space.parameters[0].name, "rows_at_a_time");
  EXPECT_TRUE(space.Validate({{"rows", 64}, {"cols", 256}})) << "constraints are renamed as well";
  const Trial trial = store->Trials(kSoftmaxRun)->at(3);
  EXPECT_EQ(trial.configuration(), configuration);
  EXPECT_EQ(trial.candidate.id, space.DigestOfConfiguration(configuration));
}

TEST_F(MigrationTest, AReadOnlyStoreOfSchema1StaysAsItWas) {
  std::filesystem::permissions(file_, std::filesystem::perms(0444));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  const std::string before = BytesOf(file_);
  const std::string error = OpenRestricted([] {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
  });
  EXPECT_THAT(error, HasSubstr(file_.string()));
  EXPECT_THAT(error, HasSubstr("request.store"));
  EXPECT_EQ(BytesOf(file_), before);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
}

TEST_F(MigrationTest, OnAFullDiskAStoreOfSchema1StaysAsItWas) {
  const std::string before = BytesOf(file_);
  const std::string error = OpenRestricted([] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{40000, 40000};  // room for the index of the log, not for the migration
    ::setrlimit(RLIMIT_FSIZE, &none);
  });
  EXPECT_THAT(error, HasSubstr("disk"));
  EXPECT_EQ(BytesOf(file_), before);
  const auto store = Store::Open(file_);
  ASSERT_TRUE(store) << store.error().ToString();
  EXPECT_EQ((*store)->Trials(kSoftmaxRun)->size(), 6u) << "migrated once there is room";
}

TEST_F(MigrationTest, ADatabaseOfAnotherProgramIsInvalidInputAndLeftAlone) {
  const char* const tables[] = {
      "CREATE TABLE songs (title TEXT)",
      "CREATE TABLE runs (id TEXT); CREATE TABLE trials (id TEXT); PRAGMA user_version = 1",
      "CREATE TABLE songs (title TEXT); PRAGMA user_version = 2",
      "CREATE TABLE songs (title TEXT); PRAGMA user_version = 77"};
  for (const char* sql : tables) {
    const Path other = folder_.path() / "other.db";
    std::filesystem::remove(other);
    Execute(other, sql);
    const std::string before = BytesOf(other);
    const auto store = Store::Open(other);
    ASSERT_FALSE(store) << sql;
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidInput) << sql;
    EXPECT_THAT(store.error().ToString(), HasSubstr("another program")) << sql;
    EXPECT_EQ(BytesOf(other), before) << sql;
  }
}

TEST_F(MigrationTest, SeveralMayMakeTheSameStoreAtOnce) {
  for (int round = 0; round < 8; ++round) {
    const Path fresh = folder_.path() / ("fresh" + std::to_string(round) + ".db");
    std::vector<std::string> errors(8);
    {
      std::vector<std::jthread> threads;
      for (std::string& error : errors) {
        threads.emplace_back([&] {
          const auto store = Store::Open(fresh);
          if (!store) error = store.error().ToString();
        });
      }
    }
    EXPECT_THAT(errors, testing::Each("")) << round;
  }
}

TEST_F(MigrationTest, ANewerStoreIsRefused) {
  Execute(file_, "PRAGMA user_version = 3");
  const auto store = Store::Open(file_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().ToString(), HasSubstr("newer"));
}

}  // namespace
}  // namespace atunner
