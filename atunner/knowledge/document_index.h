// Documents for retrieval, in an SQLite file with a full-text index (FTS5), ranked by BM25. The
// handbook is always part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/json/json.h"

struct sqlite3;

namespace atunner::knowledge {

/// One piece of a document that matches a query.
struct Found {
  std::string document;  ///< "handbook/bank-conflicts", or the path of a file that was added
  std::string heading;
  std::string text;
  double score = 0;  ///< BM25; larger is better
};

struct Document {
  std::string name;
  int64_t chunks = 0;
  int64_t bytes = 0;
};

class DocumentIndex {
 public:
  /// Opens or makes the file; an empty path keeps everything in memory. kInvalidInput for a file
  /// that cannot be written or is no such index.
  static Result<std::unique_ptr<DocumentIndex>> Open(const Path& file);
  ~DocumentIndex();

  /// The best matches. Every word of the query counts, none is required; its characters are words
  /// only, never operators. At most one piece of a document unless `several`.
  Result<std::vector<Found>> Search(const std::string& query, size_t most, bool several = false);
  /// Adds the .md, .txt and .html files of a folder and its sub-folders, or one file; a document
  /// that is known is replaced. Returns the number of documents. kNotFound for a missing path.
  Result<int64_t> Add(const Path& path);
  Result<std::vector<Document>> Documents();
  /// {"rules": […], "documents": [{"document", "chunks": [{"heading", "text"}, …]}, …]}.
  Result<Json> Export();

 private:
  explicit DocumentIndex(sqlite3* handle, Path file) : handle_(handle), file_(std::move(file)) {}
  Status Prepare();
  Status AddHandbook();
  Status AddFile(const Path& path, const std::string& name);
  Status Put(const std::string& document, const std::string& text);
  Status Execute(const char* sql);
  std::unexpected<Error> Failure(const std::string& action) const;

  sqlite3* handle_;
  Path file_;
};

}  // namespace atunner::knowledge
