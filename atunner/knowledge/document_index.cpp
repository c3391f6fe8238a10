#include "atunner/knowledge/document_index.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "atunner/base/digest.h"
#include "atunner/knowledge/chunks.h"
#include "atunner/knowledge/handbook.h"
#include "atunner/knowledge/rule.h"
#include "atunner/store/statement.h"

namespace atunner::knowledge {
namespace {

constexpr size_t kMostBytesOfAFile = size_t{16} << 20;
constexpr int kBusyMilliseconds = 20000;

// `porter` reduces words to their stems, so that "conflicts" finds "conflict".
constexpr const char* kCreate = R"(
CREATE VIRTUAL TABLE IF NOT EXISTS chunks USING fts5(
  document UNINDEXED, heading, body, tokenize = 'porter unicode61');
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
PRAGMA user_version = 1;
)";

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}

/// Words that stand in almost every question.
bool IsCommon(const std::string& word) {
  static const std::set<std::string> kCommon = {
      "a",      "an",  "and", "are",  "at",   "be",    "by",  "can",  "do",     "does", "for",
      "from",   "how", "i",   "if",   "in",   "is",    "it",  "my",   "of",     "on",   "or",
      "should", "the", "to",  "what", "when", "which", "why", "with", "kernel", "cuda", "gpu"};
  return kCommon.contains(word);
}

/// The query as FTS5 takes it: "bank" OR "conflicts".
std::string MatchOf(const std::string& query) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : query + " ") {
    if (IsWord(c)) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  const bool all_common = std::ranges::all_of(words, IsCommon);
  std::string match;
  for (const std::string& one : words) {
    if (!all_common && IsCommon(one)) continue;
    match += (match.empty() ? "\"" : " OR \"") + one + "\"";
  }
  return match;
}

bool IsText(const Path& path) {
  const std::string extension = path.extension().string();
  return extension == ".md" || extension == ".txt" || extension == ".html" || extension == ".htm";
}

/// The text files of a folder, in the order of their names.
std::vector<Path> FilesIn(const Path& folder) {
  std::vector<Path> files;
  std::error_code failed;
  for (auto at = std::filesystem::recursive_directory_iterator(
           folder, std::filesystem::directory_options::skip_permission_denied, failed);
       !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) {
    if (at->is_regular_file(failed) && IsText(at->path())) files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

std::string HandbookDigest() {
  std::vector<std::string> fields;
  for (const Page& page : Handbook()) {
    fields.emplace_back(page.name);
    fields.emplace_back(page.text);
  }
  return DigestOf(fields).ToHex();
}

}  // namespace

std::unexpected<Error> DocumentIndex::Failure(const std::string& action) const {
  return Invalid("cannot " + action + ": " + sqlite3_errmsg(handle_), file_.string(),
                 "move the file away if it is damaged; it is made again");
}

Result<std::unique_ptr<DocumentIndex>> DocumentIndex::Open(const Path& file) {
  if (file.has_parent_path()) ATUNNER_RETURN_IF_ERROR(MakeDirectories(file.parent_path()));
  sqlite3* handle = nullptr;
  const std::string name = file.empty() ? ":memory:" : file.string();
  const int code = sqlite3_open_v2(name.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<DocumentIndex> index(new DocumentIndex(handle, file));
  if (code != SQLITE_OK) return index->Failure("open the knowledge");
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  ATUNNER_RETURN_IF_ERROR(index->Prepare());
  return index;
}

DocumentIndex::~DocumentIndex() { sqlite3_close(handle_); }

Status DocumentIndex::Execute(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Failure("prepare the knowledge");
}

Status DocumentIndex::Prepare() {
  ATUNNER_RETURN_IF_ERROR(Execute(kCreate));
  std::string known;
  {
    Statement select(handle_, "SELECT value FROM facts WHERE name = 'handbook'");
    if (select.Step() == SQLITE_ROW) known = select.Column(0);
  }
  return known == HandbookDigest() ? Status() : AddHandbook();
}

Status DocumentIndex::AddHandbook() {
  ATUNNER_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  ATUNNER_RETURN_IF_ERROR(
      Execute("DELETE FROM chunks WHERE document >= 'handbook/' AND document < 'handbook0'"));
  for (const Page& page : Handbook())
    ATUNNER_RETURN_IF_ERROR(Put("handbook/" + std::string(page.name), std::string(page.text)));
  Statement insert(handle_, "INSERT OR REPLACE INTO facts VALUES ('handbook', ?)");
  insert.Text(1, HandbookDigest());
  if (insert.Step() != SQLITE_DONE) return Failure("add the handbook");
  return Execute("COMMIT");
}

Status DocumentIndex::Put(const std::string& document, const std::string& text) {
  Statement remove(handle_, "DELETE FROM chunks WHERE document = ?");
  remove.Text(1, document);
  if (remove.Step() != SQLITE_DONE) return Failure("replace a document");
  for (const Chunk& chunk : ChunksOfMarkdown(text)) {
    Statement insert(handle_, "INSERT INTO chunks (document, heading, body) VALUES (?, ?, ?)");
    insert.Text(1, document).Text(2, chunk.heading).Text(3, chunk.text);
    if (insert.Step() != SQLITE_DONE) return Failure("add a document");
  }
  return {};
}

Status DocumentIndex::AddFile(const Path& path, const std::string& name) {
  ATUNNER_TRY(const std::string bytes, ReadFile(path, kMostBytesOfAFile));
  const bool is_html = path.extension().string().starts_with(".htm");
  return Put(name, is_html ? TextOfHtml(bytes) : bytes);
}

Result<int64_t> DocumentIndex::Add(const Path& path) {
  if (!Exists(path))
    return Fail(ErrorCode::kNotFound, "there is no file or folder of this name", path.string());
  const std::vector<Path> files = IsFolder(path) ? FilesIn(path) : std::vector{path};
  if (files.empty())
    return Invalid("there is no .md, .txt or .html file in this folder", path.string());
  ATUNNER_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  for (const Path& file : files) {
    std::error_code failed;
    const Path absolute = std::filesystem::absolute(file, failed);
    if (auto added = AddFile(file, failed ? file.string() : absolute.string()); !added) {
      (void)Execute("ROLLBACK");
      return std::unexpected(added.error());
    }
  }
  ATUNNER_RETURN_IF_ERROR(Execute("COMMIT"));
  return std::ssize(files);
}

Result<std::vector<Found>> DocumentIndex::Search(const std::string& query, size_t most,
                                                 bool several) {
  std::vector<Found> found;
  const std::string match = MatchOf(query);
  if (match.empty() || most == 0) return found;
  // A word in a heading says more about a piece than one in its text.
  Statement select(handle_,
                   "SELECT document, heading, body, bm25(chunks, 0, 4, 1) FROM chunks "
                   "WHERE chunks MATCH ? ORDER BY bm25(chunks, 0, 4, 1), rowid LIMIT ?");
  select.Text(1, match).Integer(2, static_cast<int64_t>(8 * most));
  int code = 0;
  while (found.size() < most && (code = select.Step()) == SQLITE_ROW) {
    Found one{select.Column(0), select.Column(1), select.Column(2), -select.RealColumn(3)};
    const auto same = [&](const Found& other) { return other.document == one.document; };
    if (several || std::ranges::none_of(found, same)) found.push_back(std::move(one));
  }
  if (code != SQLITE_DONE && code != SQLITE_ROW) return Failure("search");
  return found;
}

Result<std::vector<Document>> DocumentIndex::Documents() {
  Statement select(handle_,
                   "SELECT document, count(*), sum(length(body)) FROM chunks GROUP BY document "
                   "ORDER BY document");
  std::vector<Document> documents;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW)
    documents.push_back({select.Column(0), select.IntegerColumn(1), select.IntegerColumn(2)});
  if (code != SQLITE_DONE) return Failure("list documents");
  return documents;
}

Result<Json> DocumentIndex::Export() {
  Json rules = Json::array();
  for (const Rule& rule : Rules()) rules.push_back(ToJson(rule));
  Json documents = Json::array();
  Statement select(handle_, "SELECT document, heading, body FROM chunks ORDER BY document, rowid");
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) {
    const std::string document = select.Column(0);
    if (documents.empty() || documents.back()["document"] != document)
      documents.push_back({{"document", document}, {"chunks", Json::array()}});
    documents.back()["chunks"].push_back(
        {{"heading", select.Column(1)}, {"text", select.Column(2)}});
  }
  if (code != SQLITE_DONE) return Failure("export");
  return Json{{"rules", std::move(rules)}, {"documents", std::move(documents)}};
}

}  // namespace atunner::knowledge
