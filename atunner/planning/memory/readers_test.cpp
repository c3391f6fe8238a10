#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/planning/memory/allocation_trace.h"
#include "atunner/planning/memory/buffer_files.h"
#include "atunner/planning/memory/memory_plan.h"
#include "atunner/planning/memory/pickle.h"
#include "atunner/planning/memory/snapshot.h"

namespace atunner::planning {
namespace {

const std::string kData = ATUNNER_SOURCE_DIR "/atunner/planning/memory/testdata/";

TEST(BufferCsv, ReadsThePublicForm) {
  const auto problem = ReadBufferCsv("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n\n# end\n");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->ids, (std::vector<std::string>{"b1", "b2"}));
  EXPECT_EQ(problem->buffers, (std::vector<Buffer>{{0, 3, 4}, {3, 9, 4}}));
}

TEST(BufferCsv, ReadsOtherNamesAndOrders) {
  const auto problem = ReadBufferCsv("size, start, end, alignment\r\n4, 0, 3, 1\r\n");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->ids[0], "0");
  EXPECT_EQ(problem->buffers[0], (Buffer{0, 3, 4}));
}

TEST(BufferCsv, NamesTheLine) {
  const auto problem = ReadBufferCsv("id,lower,upper,size\na,0,3,4\nb,0,x,4\n");
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().where, "line 3");
  EXPECT_EQ(ReadBufferCsv("a,b\n1,2\n").error().where, "line 1");
  EXPECT_EQ(ReadBufferCsv("").error().what, "the file has no buffers");
}

TEST(BufferJson, ReadsListsAndObjects) {
  for (const char* text : {R"([{"id":"a","lower":0,"upper":3,"size":4}])",
                           R"({"buffers":[{"id":"a","start":0,"end":3,"size":4,"note":"x"}]})"}) {
    const auto problem = ReadBufferJson(text);
    ASSERT_TRUE(problem) << text;
    EXPECT_EQ(problem->ids[0], "a");
    EXPECT_EQ(problem->buffers[0], (Buffer{0, 3, 4}));
  }
  EXPECT_EQ(ReadBufferJson(R"([{"lower":0}])").error().where, "buffers[0]");
  EXPECT_FALSE(ReadBufferJson("[]"));
}

TEST(AllocationTrace, KnowsLifetimesWithoutBeginOrEnd) {
  AllocationTrace trace;
  trace.Allocate(100, 8);
  trace.Release(500, 16);  // allocated before the trace
  trace.Reserved(64);
  trace.Allocate(200, 4);
  trace.Release(100, 8);
  const MemoryProblem problem = trace.Finish("test");
  ASSERT_EQ(problem.buffers.size(), 3u);
  EXPECT_EQ(problem.buffers[0].size, 16);
  EXPECT_EQ(problem.buffers[0].begin, -1);
  EXPECT_TRUE(problem.buffers[0].Overlaps(problem.buffers[1]));
  EXPECT_EQ(problem.buffers[1].size, 8);
  EXPECT_EQ(problem.buffers[2].size, 4);  // lives to the end
  EXPECT_TRUE(problem.buffers[1].Overlaps(problem.buffers[2]));
  EXPECT_FALSE(problem.buffers[0].Overlaps(problem.buffers[2]));
  EXPECT_EQ(problem.observed.peak_reserved, 64);
  EXPECT_EQ(problem.observed.live_at_reserved, 8);
}

TEST(AllocationTrace, KeepsWhatWasThereBefore) {
  AllocationTrace trace;
  trace.Reserved(100);
  trace.Allocate(1, 8);
  trace.Release(1, 8);
  const MemoryProblem problem = trace.Finish("test", 30);
  ASSERT_EQ(problem.buffers.size(), 2u);
  EXPECT_EQ(problem.buffers[1].size, 30);
  EXPECT_TRUE(problem.buffers[0].Overlaps(problem.buffers[1]));
  EXPECT_EQ(problem.notes.size(), 1u);
  EXPECT_EQ(problem.observed.live_at_reserved, 30);
}

TEST(Pickle, ReadsPlainData) {
  const auto bytes = ReadFile(kData + "plain.pickle");
  ASSERT_TRUE(bytes);
  const auto pickle = Pickle::Parse(*bytes);
  ASSERT_TRUE(pickle) << pickle.error().ToString();
  const auto root = pickle->root();
  EXPECT_EQ(pickle->Integer(pickle->Find(root, "byte"), 0), 200);
  EXPECT_EQ(pickle->Integer(pickle->Find(root, "negative"), 0), -70000);
  EXPECT_EQ(pickle->Integer(pickle->Find(root, "long"), 0), 140000000000000);
  EXPECT_EQ(pickle->Integer(pickle->Find(root, "negative_long"), 0), -140000000000000);
  EXPECT_EQ(pickle->Text(pickle->Find(root, "text")), "grün");
  EXPECT_EQ(std::get<double>(*pickle->Find(root, "float")), 0.25);
  EXPECT_EQ(std::get<bool>(*pickle->Find(root, "true")), true);
  EXPECT_EQ(pickle->Items(pickle->Find(root, "list")).size(), 1500u);
  EXPECT_EQ(pickle->Items(pickle->Find(root, "tuple")).size(), 4u);
  EXPECT_EQ(pickle->Find(root, "nothing there"), nullptr);
}

TEST(Pickle, RefusesClassesAndCalls) {
  // os.system("true"), as an attacker would pickle it.
  const std::string attack = std::string(
      "\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R.", 29);
  const auto pickle = Pickle::Parse(attack);
  ASSERT_FALSE(pickle);
  EXPECT_EQ(pickle.error().what, "opcode 0x93 of the pickle is not plain data");
  EXPECT_FALSE(Pickle::Parse("cos\nsystem\n."));
  EXPECT_EQ(Pickle::Parse("\x80\x04").error().what, "the pickle ends early");
  EXPECT_FALSE(Pickle::Parse("."));
  EXPECT_FALSE(Pickle::Parse("(."));
}

TEST(Pickle, RefusesDamage) {
  for (const std::string_view text : {"a.", "s.", "e.", "u.", "t.", "(a.",
                                      "]K\x01"
                                      "a.",
                                      "h\x05.", "X\xff\xff\xff\xff.",
                                      "K\x01K\x02"
                                      "a.",
                                      "}(K\x01u."})
    (void)Pickle::Parse(text);  // must not crash; some are valid
  EXPECT_FALSE(Pickle::Parse("X\xff\xff\xff\xff."));
  EXPECT_FALSE(Pickle::Parse("h\x05."));
  EXPECT_FALSE(Pickle::Parse("}(K\x01u."));
}

// The file was written by testdata/make_testdata.py: two devices; device 1 has the longer trace.
TEST(Snapshot, ReadsATraceOfTheAllocator) {
  const auto bytes = ReadFile(kData + "snapshot.pickle");
  ASSERT_TRUE(bytes);
  const auto problem = ReadSnapshot(*bytes, -1);
  ASSERT_TRUE(problem) << problem.error().ToString();
  // a: allocated before, released in it. b, c, d: 2 MiB, 1 MiB, 3 MiB; d is never released.
  ASSERT_EQ(problem->buffers.size(), 4u);
  EXPECT_EQ(problem->buffers[0].size, 5 << 20);  // a
  EXPECT_EQ(problem->buffers[1].size, 2 << 20);  // b
  EXPECT_EQ(problem->buffers[2].size, 1 << 20);  // c
  EXPECT_EQ(problem->buffers[3].size, 3 << 20);  // d
  EXPECT_EQ(problem->observed.peak_reserved, 40 << 20);
  EXPECT_EQ(problem->observed.allocator, "PyTorch's caching allocator");
  EXPECT_EQ(problem->notes.size(), 1u);
  const auto other = ReadSnapshot(*bytes, 0);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->buffers.size(), 1u);
  EXPECT_FALSE(ReadSnapshot(*bytes, 2));
}

TEST(Files, TheContentsDecide) {
  TemporaryDirectory folder;
  const Path trace = folder.path() / "trace.json";
  ASSERT_TRUE(WriteFileAtomic(trace, R"({"schemaVersion": 1, "traceEvents": [
    {"ph":"i","name":"[memory]","cat":"cpu_instant_event","pid":1,"tid":1,"ts":1,
     "args":{"Addr":16,"Bytes":512,"Device Id":0,"Device Type":1,"Total Allocated":512,"Total Reserved":2048}},
    {"ph":"i","name":"[memory]","cat":"cpu_instant_event","pid":1,"tid":1,"ts":2,
     "args":{"Addr":16,"Bytes":-512,"Device Id":0,"Device Type":1,"Total Allocated":0,"Total Reserved":2048}}
  ]})"));
  const auto problem = ReadBuffers(trace, -1);
  ASSERT_TRUE(problem) << problem.error().ToString();
  ASSERT_EQ(problem->buffers.size(), 1u);
  EXPECT_EQ(problem->buffers[0].size, 512);
  EXPECT_EQ(problem->observed.peak_reserved, 2048);
  EXPECT_EQ(ReadBuffers(trace, 3).error().where, "request.device");

  EXPECT_TRUE(ReadBuffers(kData + "snapshot.pickle", -1));
  const Path csv = folder.path() / "buffers.csv";
  ASSERT_TRUE(WriteFileAtomic(csv, "id,lower,upper,size\na,0,3,x\n"));
  EXPECT_EQ(ReadBuffers(csv, -1).error().where, csv.string() + ", line 2");
  EXPECT_EQ(ReadBuffers(folder.path() / "none", -1).error().code, ErrorCode::kNotFound);
}

TEST(Files, AWholeRequest) {
  TemporaryDirectory folder;
  const Path csv = folder.path() / "buffers.csv";
  ASSERT_TRUE(WriteFileAtomic(csv, "id,lower,upper,size\na,0,2,4\nb,1,3,2\nc,2,3,4\n"));
  const auto plan = PlanMemory({.file = csv, .seconds = 1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->placement.peak, 6);
  EXPECT_TRUE(plan->optimal());
  EXPECT_EQ(PlanMemory({.file = csv, .seconds = 0}).error().where, "request.time");
}

}  // namespace
}  // namespace atunner::planning
