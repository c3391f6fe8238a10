#include "atunner/jobs/system/yaml.h"

#include <yaml.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <utility>

namespace atunner::jobs {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr int kMostDepth = 16;

std::unexpected<Error> At(size_t line, const std::string& what, const std::string& hint = {}) {
  return Invalid(what, "line " + std::to_string(line), hint);
}

template <class Number>
bool Reads(const std::string& text, Number& number) {
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// A plain scalar by the core schema.
Json Plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null") return nullptr;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (int64_t integer = 0; Reads(text, integer)) return integer;
  if (double number = 0; Reads(text, number) && std::isfinite(number)) return number;
  return text;
}

/// One event of the parser; freed by the next one.
class Events {
 public:
  explicit Events(std::string_view text) {
    ready_ = yaml_parser_initialize(&parser_) == 1;
    if (!ready_) return;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Events() {
    Free();
    if (ready_) yaml_parser_delete(&parser_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  Result<const yaml_event_t*> Next() {
    if (!ready_) return Fail(ErrorCode::kUnavailable, "no memory for YAML's parser");
    Free();
    if (yaml_parser_parse(&parser_, &event_) == 1) {
      held_ = true;
      return &event_;
    }
    return At(parser_.problem_mark.line + 1,
              parser_.problem != nullptr ? parser_.problem : "not YAML");
  }

 private:
  void Free() {
    if (held_) yaml_event_delete(&event_);
    held_ = false;
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool ready_ = false, held_ = false;
};

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : events_(text) {}

  Result<YamlDocument> Read() {
    ATUNNER_TRY(const yaml_event_t* event, events_.Next());  // the stream's begin
    ATUNNER_TRY(event, events_.Next());
    if (event->type == YAML_STREAM_END_EVENT) return At(1, "the file is empty");
    ATUNNER_TRY(event, events_.Next());
    ATUNNER_TRY(document_.value, Value(*event, "", 0));
    ATUNNER_TRY(event, events_.Next());  // the document's end
    ATUNNER_TRY(event, events_.Next());
    if (event->type != YAML_STREAM_END_EVENT)
      return At(event->start_mark.line + 1, "a second document");
    return std::move(document_);
  }

 private:
  Result<Json> Value(const yaml_event_t& event, const std::string& path, int depth) {
    const size_t line = event.start_mark.line + 1;
    document_.lines.emplace(path, line);
    if (depth > kMostDepth) return At(line, "nested too deeply");
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return Scalar(event, line);
      case YAML_MAPPING_START_EVENT:
        if (event.data.mapping_start.anchor != nullptr || event.data.mapping_start.tag != nullptr)
          return At(line, "anchors and tags are not supported", "write the values out");
        return Mapping(path, depth);
      case YAML_SEQUENCE_START_EVENT:
        if (event.data.sequence_start.anchor != nullptr || event.data.sequence_start.tag != nullptr)
          return At(line, "anchors and tags are not supported", "write the values out");
        return List(path, depth);
      default:
        return At(line, "aliases are not supported", "write the values out");
    }
  }

  static Result<Json> Scalar(const yaml_event_t& event, size_t line) {
    const auto& scalar = event.data.scalar;
    if (scalar.anchor != nullptr || scalar.tag != nullptr)
      return At(line, "anchors and tags are not supported", "write the values out");
    std::string text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    return scalar.style == YAML_PLAIN_SCALAR_STYLE ? Plain(text) : Json(std::move(text));
  }

  Result<Json> Mapping(const std::string& path, int depth) {
    Json map = Json::object();
    for (;;) {
      ATUNNER_TRY(const yaml_event_t* event, events_.Next());
      if (event->type == YAML_MAPPING_END_EVENT) return map;
      const size_t line = event->start_mark.line + 1;
      if (event->type != YAML_SCALAR_EVENT) return At(line, "a key must be a text");
      const std::string key(reinterpret_cast<const char*>(event->data.scalar.value),
                            event->data.scalar.length);
      if (map.contains(key)) return At(line, "the key '" + key + "' occurs twice");
      ATUNNER_TRY(event, events_.Next());
      ATUNNER_TRY(map[key], Value(*event, path.empty() ? key : path + "." + key, depth + 1));
    }
  }

  Result<Json> List(const std::string& path, int depth) {
    Json list = Json::array();
    for (;;) {
      ATUNNER_TRY(const yaml_event_t* event, events_.Next());
      if (event->type == YAML_SEQUENCE_END_EVENT) return list;
      const std::string at = path + "[" + std::to_string(list.size()) + "]";
      ATUNNER_TRY(Json value, Value(*event, at, depth + 1));
      list.push_back(std::move(value));
    }
  }

  Events events_;
  YamlDocument document_;
};

}  // namespace

Result<YamlDocument> ParseYaml(std::string_view text) {
  if (text.size() > kMostBytes) return Invalid("larger than 1 MB", "the configuration");
  return YamlReader(text).Read();
}

}  // namespace atunner::jobs
