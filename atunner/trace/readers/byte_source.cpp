#include "atunner/trace/readers/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace atunner::trace {
namespace {

/// zlib's reader passes plain files through.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(gzFile file) : file_(file) { gzbuffer(file_, 1u << 18); }
  ~FileSource() override { gzclose(file_); }

  size_t Read(char* room, size_t bytes) override {
    const int got = gzread(file_, room, static_cast<unsigned>(std::min<size_t>(bytes, 1u << 30)));
    if (got <= 0) Diagnose(got);
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
  std::string problem() const override { return problem_; }

 private:
  void Diagnose(int got) {
    int code = Z_OK;
    gzerror(file_, &code);
    if (got < 0 || code == Z_BUF_ERROR) problem_ = "the gzip data is damaged or cut off";
  }

  gzFile file_;
  std::string problem_;
};

}  // namespace

size_t TextSource::Read(char* room, size_t bytes) {
  const size_t taken = std::min(bytes, left_.size());
  if (taken > 0) std::memcpy(room, left_.data(), taken);
  left_.remove_prefix(taken);
  return taken;
}

Result<std::unique_ptr<ByteSource>> OpenSource(const Path& path) {
  ATUNNER_RETURN_IF_ERROR(ReadStart(path, 1));  // says clearly what is wrong with the path
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Invalid("cannot be read", path.string());
  return std::make_unique<FileSource>(file);
}

}  // namespace atunner::trace
