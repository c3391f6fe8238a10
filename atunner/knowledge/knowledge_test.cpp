#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#include "atunner/base/random.h"
#include "atunner/knowledge/chunks.h"
#include "atunner/knowledge/document_index.h"
#include "atunner/knowledge/handbook.h"
#include "atunner/knowledge/rule.h"

namespace atunner::knowledge {

void FuzzChunks(std::string_view text);  // chunks_fuzz.cpp

namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::unique_ptr<DocumentIndex> InMemory() { return DocumentIndex::Open("").value(); }

TEST(Rules, NameKnownBottlenecksAndPages) {
  std::set<std::string_view> ids;
  for (const Rule& rule : Rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_NE(FindPage(rule.page), nullptr) << rule.id;
    EXPECT_GT(rule.weight, 0) << rule.id;
    EXPECT_LE(rule.weight, 1) << rule.id;
    const Json json = ToJson(rule);
    for (const Json& word : json["when"])
      EXPECT_THAT(std::vector(Bottlenecks().begin(), Bottlenecks().end()),
                  Contains(word.get<std::string>()))
          << rule.id;
  }
  for (const std::string_view bottleneck : Bottlenecks())
    EXPECT_TRUE(std::ranges::any_of(Rules(), [&](const Rule& rule) {
      return rule.HelpsAgainst(bottleneck);
    })) << bottleneck;
}

TEST(Rules, MatchParametersByNameOrBeginning) {
  const Rule* rule = FindRule("larger-tiles");
  ASSERT_NE(rule, nullptr);
  EXPECT_TRUE(rule->IsAbout("tile_m"));
  EXPECT_TRUE(rule->IsAbout("tile_rows"));
  EXPECT_FALSE(rule->IsAbout("stages"));
  EXPECT_FALSE(rule->HelpsAgainst("launch"));
  EXPECT_EQ(FindRule("no such rule"), nullptr);
}

TEST(Handbook, PagesHaveTitlesAndSources) {
  EXPECT_GE(Handbook().size(), 15u);
  for (const Page& page : Handbook()) {
    EXPECT_TRUE(page.text.starts_with("# ")) << page.name;
    EXPECT_THAT(std::string(page.text), HasSubstr("**Source.**")) << page.name;
  }
}

TEST(Chunks, FollowHeadingsAndKeepCodeTogether) {
  const auto chunks = ChunksOfMarkdown("# A\none\n## B\ntwo\n```\n# no heading\n```\n# C\nthree\n");
  ASSERT_THAT(chunks, SizeIs(3));
  EXPECT_EQ(chunks[0].heading, "A");
  EXPECT_EQ(chunks[1].heading, "A > B");
  EXPECT_THAT(chunks[1].text, HasSubstr("# no heading"));
  EXPECT_EQ(chunks[2].heading, "C");
}

TEST(Chunks, LongTextsAreDivided) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "A line of forty characters, give or take\n\n";
  EXPECT_GT(ChunksOfMarkdown(text, 500).size(), 5u);
  EXPECT_GT(ChunksOfMarkdown(std::string(1, 'x') + std::string(9000, '\n') + "y", 10).size(), 1u);
  EXPECT_THAT(ChunksOfMarkdown("\n \n"), IsEmpty());
}

TEST(Chunks, HtmlBecomesText) {
  const std::string text = TextOfHtml(
      "<html><style>x{}</style><h2 class='a'>Banks &amp; words</h2><p>a &lt; b<script>alert(1)"
      "</script><!-- <b>hidden</b> --><br>c");
  EXPECT_THAT(text, HasSubstr("## Banks & words"));
  EXPECT_THAT(text, HasSubstr("a < b"));
  EXPECT_THAT(text, Not(HasSubstr("alert")));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_EQ(TextOfHtml("a <b"), "a ");
}

TEST(Chunks, DamagedDocumentsDoNoHarm) {
  const std::string good = "<h1>A</h1><p>one &lt; two<script>x</script># B\n```\ncode\n```\n\ntext";
  Random random(1);
  for (int i = 0; i < 3000; ++i) FuzzChunks(Mutated(good, random));
}

TEST(DocumentIndex, QueriesAreWordsNotSyntax) {
  const auto index = InMemory();
  for (const char* query : {"\"", "bank AND (", "NEAR(bank, 3)", "bank*", "-bank", "a\" OR \"b",
                            "body:bank", "'; DROP TABLE chunks; --", "\xff\xfe bank"})
    EXPECT_TRUE(index->Search(query, 3).has_value()) << query;
  EXPECT_THAT(index->Search("", 3).value(), IsEmpty());
  EXPECT_THAT(index->Search("bank conflicts", 0).value(), IsEmpty());
  EXPECT_THAT(index->Search("zzzzqq", 3).value(), IsEmpty());
  EXPECT_THAT(index->Search("bank conflicts", 3).value(), Not(IsEmpty()));
}

TEST(DocumentIndex, AddsFoldersAndReplacesDocuments) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "a" / "x.md", "# Zebra\nstripes\n").has_value());
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "y.html", "<h1>Okapi</h1>zebroid").has_value());
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "z.bin", "zebra").has_value());
  const Path file = folder.path() / "index" / "k.db";
  const auto index = DocumentIndex::Open(file).value();
  EXPECT_EQ(index->Add(folder.path()).value(), 2);
  EXPECT_EQ(index->Add(folder.path()).value(), 2);
  auto found = index->Search("zebra stripe", 5).value();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].document, HasSubstr("x.md"));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "a" / "x.md", "# Horse\nplain\n").has_value());
  ASSERT_TRUE(index->Add(folder.path() / "a" / "x.md"));
  EXPECT_THAT(index->Search("stripes", 5).value(), IsEmpty());
  EXPECT_EQ(index->Documents().value().size(), Handbook().size() + 2);
  EXPECT_EQ(DocumentIndex::Open(file).value()->Search("horse", 5).value().size(), 1u);
}

TEST(DocumentIndex, RefusesWhatIsNotThere) {
  const TemporaryDirectory folder;
  const auto index = InMemory();
  EXPECT_EQ(index->Add(folder.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(index->Add(folder.path()).error().code, ErrorCode::kInvalidInput);
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "k.db", std::string(5000, 'x')).has_value());
  EXPECT_FALSE(DocumentIndex::Open(folder.path() / "k.db"));
}

TEST(DocumentIndex, ExportHasRulesAndDocuments) {
  const Json json = InMemory()->Export().value();
  EXPECT_EQ(json["rules"].size(), Rules().size());
  EXPECT_EQ(json["documents"].size(), Handbook().size());
  EXPECT_THAT(json["documents"][0]["chunks"][0]["text"].get<std::string>(), Not(IsEmpty()));
}

}  // namespace
}  // namespace atunner::knowledge
