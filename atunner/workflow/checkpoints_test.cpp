// The behaviour that every implementation of Checkpoints has: 29 cases for each of the two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/workflow/memory_checkpoints.h"
#include "atunner/workflow/sqlite_checkpoints.h"

namespace atunner::workflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Memory {
  MemoryCheckpoints checkpoints;
  Checkpoints& get() { return checkpoints; }
};
struct Sqlite {
  TemporaryDirectory folder;
  std::unique_ptr<SqliteCheckpoints> checkpoints =
      SqliteCheckpoints::Open(folder.path() / "flows.db").value();
  Checkpoints& get() { return *checkpoints; }
};

template <class T>
class CheckpointsTest : public testing::Test {
 protected:
  Checkpoints& all() { return made_.get(); }
  FlowRecord Flow(const std::string& id) {
    return {.id = id, .graph = "g", .title = "a flow", .created = "2026-11-27T00:00:00Z"};
  }
  Checkpoint At(int64_t number, int64_t parent = 0) {
    Checkpoint checkpoint;
    checkpoint.number = number;
    checkpoint.parent = parent;
    checkpoint.step = number - 1;
    checkpoint.origin = "step";
    checkpoint.state = Json{{"n", number}, {"text", "ü \"quoted\""}};
    checkpoint.next = {{"a"}, {"b", Json{{"idea", 3}}}, {"c", Json(nullptr)}};
    checkpoint.deferred = {{"last"}};
    checkpoint.arrivals = Json::array({Json::array({"a"})});
    checkpoint.created = "2026-11-27T00:00:00Z";
    return checkpoint;
  }
  void Put(const std::string& flow, int64_t number) {
    ASSERT_TRUE(all().Put(flow, At(number)).has_value());
  }
  void Write(int64_t number, int64_t task, PendingWrite::Kind kind, int64_t index, Json body) {
    const PendingWrite write{task, kind, index, std::move(body)};
    ASSERT_TRUE(all().PutWrite("f", number, write).has_value());
  }
  T made_;
};

using Kinds = testing::Types<Memory, Sqlite>;
TYPED_TEST_SUITE(CheckpointsTest, Kinds);
using Kind = PendingWrite::Kind;

// --- put and get

TYPED_TEST(CheckpointsTest, PutGetKeepsEveryField) {
  this->Put("f", 1);
  const auto got = this->all().Get("f", 1).value();
  ASSERT_TRUE(got);
  EXPECT_EQ(ToJson(*got), ToJson(this->At(1)));
}
TYPED_TEST(CheckpointsTest, InputOfATaskMayBeNull) {
  this->Put("f", 1);
  const auto next = this->all().Get("f", 1).value()->next;
  EXPECT_FALSE(next[0].input);
  ASSERT_TRUE(next[2].input);
  EXPECT_TRUE(next[2].input->is_null());
}
TYPED_TEST(CheckpointsTest, GetWithoutNumberIsTheLast) {
  for (const int64_t number : {1, 2, 3}) this->Put("f", number);
  EXPECT_EQ(this->all().Get("f", std::nullopt).value()->number, 3);
}
TYPED_TEST(CheckpointsTest, GetUnknownFlow) {
  EXPECT_FALSE(this->all().Get("f", std::nullopt).value());
  EXPECT_FALSE(this->all().Get("f", 1).value());
}
TYPED_TEST(CheckpointsTest, GetUnknownNumbers) {
  this->Put("f", 1);
  for (const int64_t number : {-1, 0, 2, 1000}) EXPECT_FALSE(this->all().Get("f", number).value());
}
TYPED_TEST(CheckpointsTest, PutRefusesAKnownNumber) {
  this->Put("f", 1);
  EXPECT_FALSE(this->all().Put("f", this->At(1)));
  EXPECT_EQ(this->all().List("f").value().size(), 1u);
}
TYPED_TEST(CheckpointsTest, NumbersNeedNotBeDense) {
  this->Put("f", 5);
  this->Put("f", 2);
  EXPECT_EQ(this->all().Get("f", std::nullopt).value()->number, 5);
}
TYPED_TEST(CheckpointsTest, FlowsAreSeparate) {
  this->Put("f", 1);
  this->Put("g", 2);
  EXPECT_FALSE(this->all().Get("f", 2).value());
  EXPECT_EQ(this->all().List("g").value().size(), 1u);
}
TYPED_TEST(CheckpointsTest, StatesMayBeLarge) {
  Checkpoint large = this->At(1);
  large.state["big"] = std::string(size_t{1} << 20, 'x');
  ASSERT_TRUE(this->all().Put("f", large).has_value());
  EXPECT_EQ(this->all().Get("f", 1).value()->state["big"].template get<std::string>().size(),
            size_t{1} << 20);
}
TYPED_TEST(CheckpointsTest, StatesKeepTypesAndOrder) {
  Checkpoint checkpoint = this->At(1);
  checkpoint.state = Json::parse(R"({"z": 1, "a": [1.5, null, true, "x"], "m": {"k": -7}})");
  ASSERT_TRUE(this->all().Put("f", checkpoint).has_value());
  EXPECT_EQ(this->all().Get("f", 1).value()->state.dump(), checkpoint.state.dump());
}

// --- list

TYPED_TEST(CheckpointsTest, ListIsInOrder) {
  for (const int64_t number : {3, 1, 2}) this->Put("f", number);
  std::vector<int64_t> numbers;
  const auto all = this->all().List("f").value();
  for (const Checkpoint& one : all) numbers.push_back(one.number);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}
TYPED_TEST(CheckpointsTest, ListOfUnknownFlowIsEmpty) {
  EXPECT_THAT(this->all().List("f").value(), IsEmpty());
}
TYPED_TEST(CheckpointsTest, ListKeepsParents) {
  ASSERT_TRUE(this->all().Put("f", this->At(1)).has_value());
  ASSERT_TRUE(this->all().Put("f", this->At(2, 1)).has_value());
  ASSERT_TRUE(this->all().Put("f", this->At(3, 1)).has_value());
  EXPECT_EQ(this->all().List("f").value()[2].parent, 1);
}

// --- pending writes

TYPED_TEST(CheckpointsTest, WritesAreByTaskKindAndIndex) {
  this->Write(1, 2, Kind::kResult, 0, "r2");
  this->Write(1, 0, Kind::kAnswer, 1, "a1");
  this->Write(1, 0, Kind::kAnswer, 0, "a0");
  this->Write(1, 0, Kind::kQuestion, 0, "q0");
  std::vector<std::string> bodies;
  const auto writes = this->all().Writes("f", 1).value();
  for (const PendingWrite& write : writes) bodies.push_back(write.body.template get<std::string>());
  EXPECT_THAT(bodies, ElementsAre("q0", "a0", "a1", "r2"));
}
TYPED_TEST(CheckpointsTest, ALaterWriteReplaces) {
  this->Write(1, 0, Kind::kResult, 0, 1);
  this->Write(1, 0, Kind::kResult, 0, 2);
  const auto writes = this->all().Writes("f", 1).value();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].body, 2);
}
TYPED_TEST(CheckpointsTest, WritesOfOtherCheckpointsAreSeparate) {
  this->Write(1, 0, Kind::kResult, 0, 1);
  EXPECT_THAT(this->all().Writes("f", 2).value(), IsEmpty());
}
TYPED_TEST(CheckpointsTest, WritesOfUnknownFlowAreEmpty) {
  EXPECT_THAT(this->all().Writes("g", 1).value(), IsEmpty());
}
TYPED_TEST(CheckpointsTest, WritesNeedNoCheckpoint) {
  this->Write(7, 0, Kind::kResult, 0, 1);
  EXPECT_EQ(this->all().Writes("f", 7).value().size(), 1u);
}
TYPED_TEST(CheckpointsTest, BodiesAreAnyJson) {
  const Json body = Json::parse(R"({"updates": [["x", [1, {"y": null}]]]})");
  this->Write(1, 0, Kind::kResult, 0, body);
  EXPECT_EQ(this->all().Writes("f", 1).value()[0].body, body);
}

// --- delete

TYPED_TEST(CheckpointsTest, DeleteTakesCheckpointsWritesAndRecord) {
  ASSERT_TRUE(this->all().AddFlow(this->Flow("f")).has_value());
  this->Put("f", 1);
  this->Write(1, 0, Kind::kResult, 0, 1);
  ASSERT_TRUE(this->all().Delete("f").has_value());
  EXPECT_THAT(this->all().List("f").value(), IsEmpty());
  EXPECT_THAT(this->all().Writes("f", 1).value(), IsEmpty());
  EXPECT_FALSE(this->all().FindFlow("f").value());
}
TYPED_TEST(CheckpointsTest, DeleteTakesInnerFlowsAndNoOthers) {
  for (const char* flow : {"f", "f/1.0.inner", "f/1.0.inner/2.0.x", "f2", "f-x", "e"})
    this->Put(flow, 1);
  ASSERT_TRUE(this->all().Delete("f").has_value());
  for (const char* gone : {"f", "f/1.0.inner", "f/1.0.inner/2.0.x"})
    EXPECT_THAT(this->all().List(gone).value(), IsEmpty()) << gone;
  for (const char* kept : {"f2", "f-x", "e"})
    EXPECT_EQ(this->all().List(kept).value().size(), 1u) << kept;
}
TYPED_TEST(CheckpointsTest, DeleteOfUnknownFlowIsHarmless) {
  EXPECT_TRUE(this->all().Delete("f").has_value());
}

// --- records

TYPED_TEST(CheckpointsTest, RecordsKeepEveryField) {
  FlowRecord flow = this->Flow("f");
  flow.request = Json{{"shape", {8, 4}}};
  flow.parent = "e";
  flow.parent_number = 4;
  flow.status = "waiting";
  ASSERT_TRUE(this->all().AddFlow(flow).has_value());
  EXPECT_EQ(ToJson(*this->all().FindFlow("f").value()), ToJson(flow));
}
TYPED_TEST(CheckpointsTest, IdsAreUnique) {
  ASSERT_TRUE(this->all().AddFlow(this->Flow("f")).has_value());
  const auto again = this->all().AddFlow(this->Flow("f"));
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what, HasSubstr("'f'"));
}
TYPED_TEST(CheckpointsTest, FlowsAreNewestFirstAndLimited) {
  for (const char* id : {"a", "b", "c"})
    ASSERT_TRUE(this->all().AddFlow(this->Flow(id)).has_value());
  const auto flows = this->all().Flows(2).value();
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(flows[0].id, "c");
  EXPECT_EQ(flows[1].id, "b");
}
TYPED_TEST(CheckpointsTest, StatusAndErrorChange) {
  ASSERT_TRUE(this->all().AddFlow(this->Flow("f")).has_value());
  ASSERT_TRUE(this->all().SetStatus("f", "failed", "no memory").has_value());
  const auto flow = this->all().FindFlow("f").value();
  EXPECT_EQ(flow->status, "failed");
  EXPECT_EQ(flow->error, "no memory");
}
TYPED_TEST(CheckpointsTest, RunningWithoutAProcessIsInterrupted) {
  ASSERT_TRUE(this->all().AddFlow(this->Flow("f")).has_value());
  EXPECT_EQ(this->all().FindFlow("f").value()->status, "interrupted");
  const auto mark = this->all().Occupy("f");
  ASSERT_TRUE(mark);
  EXPECT_EQ(this->all().FindFlow("f").value()->status, "running");
}
TYPED_TEST(CheckpointsTest, OneProcessWorksOnAFlow) {
  auto mark = this->all().Occupy("f");
  ASSERT_TRUE(mark);
  EXPECT_FALSE(this->all().Occupy("f"));
  EXPECT_TRUE(this->all().Occupy("g"));
  mark->reset();
  EXPECT_TRUE(this->all().Occupy("f"));
}
TYPED_TEST(CheckpointsTest, CancelIsRequestedAndTakenBack) {
  ASSERT_TRUE(this->all().AddFlow(this->Flow("f")).has_value());
  EXPECT_FALSE(this->all().CancelRequested("f").value());
  ASSERT_TRUE(this->all().RequestCancel("f", true).has_value());
  EXPECT_TRUE(this->all().CancelRequested("f").value());
  ASSERT_TRUE(this->all().RequestCancel("f", false).has_value());
  EXPECT_FALSE(this->all().CancelRequested("f").value());
  EXPECT_FALSE(this->all().CancelRequested("unknown").value());
}

// --- the file

TEST(SqliteCheckpoints, AnotherConnectionSeesEverything) {
  Sqlite made;
  Checkpoint checkpoint;
  checkpoint.number = 1;
  ASSERT_TRUE(made.get().Put("f", checkpoint).has_value());
  const auto other = SqliteCheckpoints::Open(made.folder.path() / "flows.db").value();
  EXPECT_TRUE(other->Get("f", 1).value());
}

TEST(SqliteCheckpoints, RefusesAFileThatIsNoDatabase) {
  const TemporaryDirectory folder;
  const Path file = folder.path() / "flows.db";
  ASSERT_TRUE(WriteFileAtomic(file, std::string(5000, 'x')).has_value());
  const auto opened = SqliteCheckpoints::Open(file);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(ReadFile(file).value(), std::string(5000, 'x'));
}

TEST(SqliteCheckpoints, RefusesAFolderThatIsAFile) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "file", "x").has_value());
  EXPECT_FALSE(SqliteCheckpoints::Open(folder.path() / "file" / "flows.db"));
}

}  // namespace
}  // namespace atunner::workflow
