#include "atunner/tune/tune_event.h"

#include <nlohmann/json.hpp>

namespace atunner {

std::string_view Name(TuneEvent::Kind kind) {
  switch (kind) {
    case TuneEvent::Kind::kStarted:
      return "started";
    case TuneEvent::Kind::kBaseline:
      return "baseline";
    case TuneEvent::Kind::kTrial:
      return "trial";
    case TuneEvent::Kind::kFinalists:
      return "finalists";
    case TuneEvent::Kind::kFinished:
      return "finished";
  }
  return "trial";
}

Json ToJson(const TuneEvent& event) {
  Json json{{"event", Name(event.kind)},
            {"trials_done", event.trials_done},
            {"seconds", event.seconds},
            {"space_size", event.space_size}};
  if (event.trial) json["trial"] = ToJson(*event.trial);
  if (event.baseline) json["baseline"] = ToJson(*event.baseline);
  if (event.best_ns) json["best_ns"] = *event.best_ns;
  if (!event.text.empty()) json["text"] = event.text;
  return json;
}

}  // namespace atunner
