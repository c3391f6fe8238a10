#include "atunner/trace/readers/kineto_reader.h"

#include <fmt/format.h>

#include <string_view>

#include "atunner/trace/readers/decimal_time.h"
#include "atunner/trace/readers/json_scanner.h"
#include "atunner/trace/readers/kineto_event.h"

namespace atunner::trace {
namespace {

/// Reads top down: document, events, event, arguments. Each method returns false when the text is
/// no JSON or ends.
class KinetoReader {
 public:
  KinetoReader(ByteSource& source, Timeline& timeline)
      : scanner_(source), timeline_(timeline), events_(timeline) {}

  bool ReadDocument() {
    if (scanner_.Peek() == '[') return ReadEvents();
    return Object([this](Field field) {
      switch (field) {
        case Field::kTraceEvents:
          return ReadEvents();
        case Field::kDeviceProperties:
          return Array([this] { return ReadDevice(); });
        case Field::kDistributedInfo:
          return ReadDistributed();
        default:
          return scanner_.SkipValue();
      }
    });
  }

  JsonScanner& scanner() { return scanner_; }
  KinetoEvents& events() { return events_; }

 private:
  /// Calls `member` with each key; it reads the value.
  template <class Member>
  bool Object(Member member) {
    if (!scanner_.Take('{')) return false;
    if (scanner_.Take('}')) return true;
    std::string_view key;
    do {
      if (!scanner_.String(key)) return false;
      const Field field = FieldOf(key);
      if (!scanner_.Take(':') || !member(field)) return false;
    } while (scanner_.Take(','));
    return scanner_.Take('}');
  }

  template <class Element>
  bool Array(Element element) {
    if (!scanner_.Take('[')) return false;
    if (scanner_.Take(']')) return true;
    do {
      if (!element()) return false;
    } while (scanner_.Take(','));
    return scanner_.Take(']');
  }

  /// True at a value that is not made of others.
  bool AtScalar() {
    const char c = scanner_.Peek();
    return c != '{' && c != '[';
  }
  bool Scalar(std::string_view& text) {
    return scanner_.Peek() == '"' ? scanner_.String(text) : scanner_.Literal(text);
  }

  bool ReadEvents() {
    return Array([this] { return AtScalar() ? scanner_.SkipValue() : ReadEvent(); });
  }

  bool ReadEvent() {
    if (scanner_.Peek() != '{') return scanner_.SkipValue();
    events_.Begin();
    const bool whole = Object([this](Field field) {
      if (field == Field::kArgs && scanner_.Peek() == '{') return ReadArguments();
      return ReadField(field);
    });
    if (whole) events_.End();
    return whole;
  }

  bool ReadArguments() {
    return Object([this](Field field) {
      if (field == Field::kName) return ReadLabel();
      if (field == Field::kInputDims || field == Field::kInputDims2021) return ReadDims();
      if ((field == Field::kGrid || field == Field::kBlock) && scanner_.Peek() == '[')
        return Array([this, field] { return ReadExtent(field); });
      return ReadField(field);
    });
  }

  bool ReadField(Field field) {
    if (field == Field::kNone || !AtScalar()) return scanner_.SkipValue();
    std::string_view text;
    if (scanner_.Peek() == '"') {
      if (!scanner_.String(text)) return false;
      events_.SetText(field, text);
    } else {
      if (!scanner_.Literal(text)) return false;
      events_.SetNumber(field, text);
    }
    return true;
  }

  bool ReadLabel() {
    std::string_view text;
    if (!AtScalar()) return scanner_.SkipValue();
    if (!Scalar(text)) return false;
    events_.current().label = timeline_.strings.Intern(text);
    return true;
  }

  bool ReadExtent(Field field) {
    std::string_view text;
    if (!AtScalar()) return scanner_.SkipValue();
    if (!Scalar(text)) return false;
    events_.SetExtent(field, text);
    return true;
  }

  /// Copies nested arrays of numbers without white space: "[[16,32],[4]]".
  bool ReadDims() {
    size_t depth = 0;
    std::string_view text;
    do {
      const char c = scanner_.Peek();
      if (c == '[' || c == ']' || c == ',') {
        scanner_.Take(c);
        events_.AppendDims({&c, 1});
        if (c == ']' && depth == 0) return false;
        depth += c == '[' ? 1 : 0;
        depth -= c == ']' ? 1 : 0;
      } else if (c == '{') {
        return false;
      } else {
        if (!Scalar(text)) return false;
        events_.AppendDims(text);
      }
    } while (depth > 0);
    return true;
  }

  bool ReadDevice() {
    if (scanner_.Peek() != '{') return scanner_.SkipValue();
    DeviceInfo& device = timeline_.devices.emplace_back();
    return Object([this, &device](Field field) {
      std::string_view text;
      if (!AtScalar()) return scanner_.SkipValue();
      if (!Scalar(text)) return false;
      if (field == Field::kName) device.name = text;
      const int64_t value = IntegerOf(text).value_or(0);
      if (field == Field::kId) device.id = static_cast<int32_t>(value);
      if (field == Field::kTotalMemory) device.memory_bytes = value;
      if (field == Field::kMultiprocessors) device.multiprocessors = static_cast<int32_t>(value);
      return true;
    });
  }

  bool ReadDistributed() {
    if (scanner_.Peek() != '{') return scanner_.SkipValue();
    return Object([this](Field field) {
      std::string_view text;
      if (!AtScalar()) return scanner_.SkipValue();
      if (!Scalar(text)) return false;
      if (field == Field::kBackend) timeline_.backend = text;
      const int64_t value = IntegerOf(text).value_or(0);
      if (field == Field::kRank) timeline_.rank = static_cast<int>(value);
      if (field == Field::kWorldSize) timeline_.world_size = static_cast<int>(value);
      return true;
    });
  }

  JsonScanner scanner_;
  Timeline& timeline_;
  KinetoEvents events_;
};

std::unexpected<Error> NoTrace(const std::string& what, const std::string& where) {
  return Invalid(what, where,
                 "a trace is the JSON that torch.profiler's export_chrome_trace writes (also "
                 ".json.gz) or the SQLite file of `nsys export --type sqlite`");
}

}  // namespace

Result<Timeline> ReadKineto(ByteSource& source, const std::string& where) {
  Timeline timeline;
  timeline.source = where;
  KinetoReader reader(source, timeline);
  const bool whole = reader.ReadDocument();
  const bool early = !whole && reader.scanner().Peek() == '\0';
  if (!whole && !(early && reader.events().seen() > 0))
    return NoTrace(fmt::format("no JSON from byte {} on", reader.scanner().offset()), where);
  if (reader.events().seen() == 0) return NoTrace("no events that a profiler records", where);
  reader.events().Finish();
  if (early || !source.problem().empty()) {
    const std::string why = source.problem().empty() ? "" : " (" + source.problem() + ")";
    timeline.notes.push_back(fmt::format("the file ends early{}; what came before is shown", why));
  }
  timeline.Finish();
  return timeline;
}

}  // namespace atunner::trace
