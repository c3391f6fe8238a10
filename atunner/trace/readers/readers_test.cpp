#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/trace/readers/byte_source.h"
#include "atunner/trace/readers/decimal_time.h"
#include "atunner/trace/readers/json_scanner.h"
#include "atunner/trace/readers/kineto_reader.h"
#include "atunner/trace/readers/nsys_reader.h"
#include "atunner/trace/readers/open_trace.h"

namespace atunner::trace {
namespace {

const std::string kData = ATUNNER_SOURCE_DIR "/atunner/trace/testdata/";

Result<Timeline> ReadText(std::string_view text) {
  TextSource source(text);
  return ReadKineto(source, "test.json");
}

TEST(DecimalTime, IsExactToTheNanosecond) {
  EXPECT_EQ(NanosecondsOf("1714012345678901.234"), 1714012345678901234);
  EXPECT_EQ(NanosecondsOf("1714012345678901"), 1714012345678901000);
  EXPECT_EQ(NanosecondsOf("0.001"), 1);
  EXPECT_EQ(NanosecondsOf("0.0019"), 1);
  EXPECT_EQ(NanosecondsOf("-2.5"), -2500);
  EXPECT_EQ(NanosecondsOf("1.5e3"), 1500000);
  EXPECT_EQ(NanosecondsOf("15E-1"), 1500);
  EXPECT_EQ(NanosecondsOf("2e+2"), 200000);
  EXPECT_EQ(NanosecondsOf("1.00000000000000000000000000001"), 1000);
}

TEST(DecimalTime, RefusesOtherTexts) {
  for (const char* text : {"", "-", ".", "1.2.3", "abc", "1e", "1e99", "99999999999999999999",
                           "5000000000000000000", "NaN", "1 "})
    EXPECT_EQ(NanosecondsOf(text), std::nullopt) << text;
}

/// Gives the text in pieces of one byte.
class Drop final : public ByteSource {
 public:
  explicit Drop(std::string_view text) : left_(text) {}
  size_t Read(char* room, size_t bytes) override {
    if (left_.empty() || bytes == 0) return 0;
    *room = left_[0];
    left_.remove_prefix(1);
    return 1;
  }

 private:
  std::string_view left_;
};

TEST(JsonScanner, ReadsTokensAcrossPieces) {
  Drop source(R"( { "a\n\u00e9\"" : -1.5e3 , "b" : [1, {"c": "]\\"}, null] } )");
  JsonScanner scanner(source);
  std::string_view text;
  EXPECT_TRUE(scanner.Take('{'));
  EXPECT_TRUE(scanner.String(text));
  EXPECT_EQ(text, "a\n\xc3\xa9\"");
  EXPECT_TRUE(scanner.Take(':'));
  EXPECT_TRUE(scanner.Literal(text));
  EXPECT_EQ(text, "-1.5e3");
  EXPECT_TRUE(scanner.Take(','));
  EXPECT_TRUE(scanner.String(text));
  EXPECT_TRUE(scanner.Take(':'));
  EXPECT_TRUE(scanner.SkipValue());
  EXPECT_TRUE(scanner.Take('}'));
  EXPECT_EQ(scanner.Peek(), '\0');
}

constexpr const char* kTrace = R"json({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 85000000000, "numSms": 132,
                        "computeMajor": 9}],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10, "tid": 11, "ts": 1714012345678901.100,
   "dur": 20.5, "args": {"External id": 1, "Input Dims": [[16, 32], [32, 4], []]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11,
   "ts": 1714012345678905.000, "dur": 3, "args": {"correlation": 77}},
  {"ph": "s", "id": 77, "pid": 10, "tid": 11, "ts": 1714012345678905, "cat": "ac2g", "name": "ac2g"},
  {"args": {"device": 0, "stream": 7, "correlation": 77, "grid": [4, 2, 3], "block": [128, 1, 1],
            "registers per thread": 40, "shared memory": 1024, "est. achieved occupancy %": 48},
   "ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 1714012345678910.123,
   "dur": 7.891},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7,
   "ts": 1714012345678920, "dur": 1, "args": {"device": 0, "stream": 7, "bytes": 4096}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20,
   "ts": 1714012345678921, "dur": 2, "args": {"device": 0, "stream": 20,
   "Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float",
   "Process Group Name": "0"}},
  {"ph": "X", "cat": "brand_new", "name": "?", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
  {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 10, "tid": 11},
  {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 10, "tid": 11,
   "ts": 1714012345678902, "args": {"Addr": 140000000000000, "Bytes": -512, "Device Id": 0,
   "Device Type": 1, "Total Allocated": 1024, "Total Reserved": 4096}},
  {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "main thread"}}
  ], "traceName": "x"})json";

TEST(Kineto, ReadsEveryKindOfEvent) {
  const auto read = ReadText(kTrace);
  ASSERT_TRUE(read) << read.error().ToString();
  const Timeline& t = *read;
  ASSERT_EQ(t.size(), 5u);
  EXPECT_EQ(t.NameOf(0), "aten::mm");
  EXPECT_EQ(t.start[0], 1714012345678901100);
  EXPECT_EQ(t.duration[0], 20500);
  EXPECT_EQ(t.strings[t.detail[0]], "[[16,32],[32,4],[]]");
  EXPECT_EQ(t.TrackOf(0).name, "main thread");
  EXPECT_FALSE(t.TrackOf(0).gpu);
  EXPECT_EQ(t.kind[1], EventKind::kCall);
  EXPECT_EQ(t.correlation[1], 77u);
  EXPECT_EQ(t.kind[2], EventKind::kKernel);
  EXPECT_EQ(t.start[2], 1714012345678910123);
  EXPECT_EQ(t.duration[2], 7891);
  ASSERT_NE(t.KernelOf(2), nullptr);
  EXPECT_EQ(t.KernelOf(2)->blocks, 24);
  EXPECT_EQ(t.KernelOf(2)->threads, 128);
  EXPECT_EQ(t.KernelOf(2)->registers, 40);
  EXPECT_FLOAT_EQ(t.KernelOf(2)->occupancy, 0.48f);
  EXPECT_EQ(t.TrackOf(2).id, 7);
  ASSERT_NE(t.CopyOf(3), nullptr);
  EXPECT_EQ(t.CopyOf(3)->from, MemorySpace::kPageable);
  EXPECT_EQ(t.CopyOf(3)->bytes, 4096);
  EXPECT_EQ(t.strings[t.KernelOf(4)->collective], "allreduce");
  EXPECT_EQ(t.KernelOf(4)->message_elements, 1000);
  ASSERT_EQ(t.memory.size(), 1u);
  EXPECT_EQ(t.memory[0].bytes, -512);
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.world_size, 8);
  EXPECT_EQ(t.backend, "nccl");
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].multiprocessors, 132);
  EXPECT_EQ(t.notes,
            (std::vector<std::string>{"1 events of the unknown category 'brand_new' were left out",
                                      "1 events without a plausible time were left out"}));
}

TEST(Kineto, ReadsTheFormOf2021AndBareArrays) {
  const auto read = ReadText(
      R"([{"ph":"X","cat":"Operator","name":"aten::mm","pid":"1","tid":"2","ts":"5","dur":"2"},
          {"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":6,"dur":1,
           "args":{"device":0,"stream":7}}, null, 3])");
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->kind[0], EventKind::kOperator);
  EXPECT_EQ(read->start[0], 5000);
  EXPECT_EQ(read->kind[1], EventKind::kKernel);
}

TEST(Kineto, TakesAnyProcessNumber) {
  const auto read = ReadText(R"([{"ph":"X","cat":"cpu_op","name":"a","pid":-9223372036854775808,
                                  "tid":9223372036854775807,"ts":5,"dur":2}])");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 1u);
}

TEST(Kineto, TakesControlCharactersInStrings) {
  const auto read = ReadText(
      "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\tb\x01\nc\",\"ts\":1,\"dur\":1}]");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->NameOf(0), "a\tb\x01\nc");
}

TEST(Kineto, KeepsWhatCameBeforeAnEarlyEnd) {
  const std::string whole = kTrace;
  const auto read = ReadText(whole.substr(0, whole.find("\"gpu_memcpy\"")));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 3u);
  EXPECT_EQ(read->notes.back(), "the file ends early; what came before is shown");
}

TEST(Kineto, SaysWhatIsWrong) {
  EXPECT_EQ(ReadText("hello").error().what, "no JSON from byte 0 on");
  EXPECT_EQ(ReadText(R"({"a": [1, 2}})").error().where, "test.json");
  EXPECT_EQ(ReadText(R"({"traceEvents": []})").error().what, "no events that a profiler records");
  EXPECT_EQ(ReadText("").error().code, ErrorCode::kInvalidInput);
}

TEST(Kineto, ReadsAFileOfPyTorch) {
  // PyTorch 1.13 as Debian builds it, without Kineto: a bare array without categories.
  const auto read = OpenTrace(kData + "pytorch_cpu.json.gz");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->size(), 615u);
  EXPECT_EQ(read->kind[0], EventKind::kOperator);
  EXPECT_TRUE(read->notes.empty());
}

/// A database in the schema of nsys, as bytes.
std::string Database(const std::string& sql) {
  sqlite3* handle = nullptr;
  sqlite3_open(":memory:", &handle);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle, "main", &size, 0);
  std::string text(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(handle);
  return text;
}

Result<Timeline> ReadSql(const std::string& sql) {
  const std::string bytes = Database(sql);
  ATUNNER_TRY(const SqliteFile file, SqliteFile::FromBytes(bytes));
  return ReadNsys(file, "test.sqlite");
}

constexpr const char* kNsys = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'sgemm(float*)'), (3, 'sgemm'),
    (4, 'step 1');
  CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER);
  INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 85000000000, 132);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 110, 0, 16777216 * 5 + 9, 4, 1, 0);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
    blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER,
    staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (120, 150, 0, 1, 7, 4, 16777216 * 5, 2, 3,
    10, 2, 1, 128, 1, 1, 32, 100, 28);
)";

TEST(Nsys, ReadsKernelsAndCalls) {
  const auto read = ReadSql(kNsys);
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->NameOf(0), "cudaLaunchKernel");
  EXPECT_EQ(read->TrackOf(0).id, 9);
  EXPECT_EQ(read->NameOf(1), "sgemm(float*)");
  EXPECT_EQ(read->start[1], 120);
  EXPECT_EQ(read->duration[1], 30);
  EXPECT_EQ(read->correlation[1], 4u);
  EXPECT_EQ(read->TrackOf(0).process, read->TrackOf(1).process);
  EXPECT_EQ(read->KernelOf(1)->blocks, 20);
  EXPECT_EQ(read->KernelOf(1)->shared_bytes, 128);
  EXPECT_EQ(read->devices[0].name, "H100");
}

TEST(Nsys, ReadsTablesThatOnlySomeFilesHave) {
  const auto read = ReadSql(std::string(kNsys) + R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,
      srcKind INTEGER, dstKind INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (200, 220, 0, 7, 5, 16777216 * 5, 4096, 1, 0, 2);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (230, 231, 0, 7, 6, 16777216 * 5, 0, 64);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER,
      deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
      syncType INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (240, 250, 0, 7, 7, 16777216 * 5, 3);
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,
      graphId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (260, 290, 0, 12, 7, 8, 16777216 * 5);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
      globalTid INTEGER, textId INTEGER);
    INSERT INTO NVTX_EVENTS VALUES (90, 300, 59, NULL, 16777216 * 5 + 9, 4),
      (95, 99, 60, 'load', 16777216 * 5 + 9, NULL), (96, NULL, 34, 'mark', 16777216 * 5 + 9, NULL);
  )");
  ASSERT_TRUE(read) << read.error().ToString();
  std::vector<std::string> names;
  for (size_t event = 0; event < read->size(); ++event) names.emplace_back(read->NameOf(event));
  EXPECT_EQ(names,
            (std::vector<std::string>{"step 1", "load", "cudaLaunchKernel", "sgemm(float*)",
                                      "Memcpy HtoD", "Memset", "Stream Sync", "CUDA graph 12"}));
  EXPECT_EQ(read->CopyOf(4)->from, MemorySpace::kPageable);
  EXPECT_EQ(read->CopyOf(4)->to, MemorySpace::kDevice);
  EXPECT_EQ(read->CopyOf(5)->bytes, 64);
}

TEST(Nsys, ReadsOldFilesWithFewerColumns) {
  const auto read = ReadSql(R"(
    CREATE TABLE StringIds (id INTEGER, value TEXT);
    INSERT INTO StringIds VALUES (3, 'sgemm');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, shortName INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 1, 7, 3), (30, 25, 1, 7, 3);)");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->size(), 1u);
  EXPECT_EQ(read->NameOf(0), "sgemm");
  EXPECT_EQ(read->TrackOf(0).device, 1);
  EXPECT_EQ(read->notes,
            (std::vector<std::string>{"1 events without a plausible time were left out"}));
}

TEST(Nsys, SaysWhatIsWrong) {
  EXPECT_EQ(ReadSql("CREATE TABLE x (a)").error().what,
            "the SQLite file has no CUDA or NVTX events");
  std::string bytes = Database(kNsys);
  for (size_t i = 16; i < 200; ++i) bytes[i] = '\x55';
  const auto file = SqliteFile::FromBytes(bytes);
  if (file) EXPECT_FALSE(ReadNsys(*file, "test"));
}

TEST(Nsys, AViewThatNeverEndsIsNoTable) {
  const auto read = ReadSql(R"(
    CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
      WITH RECURSIVE all_times(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM all_times)
      SELECT start, start + 1 AS end FROM all_times;)");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "the SQLite file has no CUDA or NVTX events");
}

TEST(Nsys, SaysThatRowsAreMissing) {
  std::string sql = kNsys;
  for (int i = 0; i < 4000; ++i)
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(200 + i) + ", " +
           std::to_string(201 + i) + ", 0, 83886089, 4, 1, 0);";
  std::string bytes = Database(sql);
  const size_t page = 4096;
  for (size_t i = bytes.size() / 2 / page * page; i < bytes.size() - 2 * page; ++i)
    bytes[i] = '\x55';
  const auto file = SqliteFile::FromBytes(bytes);
  ASSERT_TRUE(file);
  const auto read = ReadNsys(*file, "test");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->notes.back(), "the file is damaged: rows of a table could not be read");
}

TEST(OpenTrace, TheContentsDecide) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "rank10.sqlite", Database(kNsys)));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "rank2.json", kTrace));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "notes.txt", "no trace"));
  const auto files = TracesOfFolder(folder.path());
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].filename(), "rank2.json");
  for (const Path& file : *files) EXPECT_TRUE(OpenTrace(file)) << file;
  EXPECT_EQ(OpenTrace(folder.path() / "none").error().code, ErrorCode::kNotFound);
  TemporaryDirectory empty;
  EXPECT_EQ(TracesOfFolder(empty.path()).error().what, "no trace in this folder");
}

TEST(OpenTrace, SaysThatAPackedFileIsCutOff) {
  const std::string whole = ReadFile(kData + "pytorch_cpu.json.gz").value();
  TemporaryDirectory folder;
  const Path cut = folder.path() / "cut.json.gz";
  ASSERT_TRUE(WriteFileAtomic(cut, whole.substr(0, whole.size() * 3 / 4)));
  const auto read = OpenTrace(cut);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_LT(read->size(), 615u);
  EXPECT_EQ(read->notes.back(),
            "the file ends early (the gzip data is damaged or cut off); what came before is shown");
}

}  // namespace
}  // namespace atunner::trace
