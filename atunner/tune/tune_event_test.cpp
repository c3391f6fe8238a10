#include "atunner/tune/tune_event.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace atunner {
namespace {

TEST(TuneEvent, OwnsWhatItReports) {
  TuneEvent event;
  {
    Trial trial;
    trial.number = 12;
    trial.note = "short-lived";
    event.trial = trial;
  }
  const TuneEvent kept = event;
  event.trial.reset();
  EXPECT_EQ(kept.trial->note, "short-lived");
}

TEST(TuneEvent, IsJson) {
  TuneEvent event{.kind = TuneEvent::Kind::kBaseline, .trials_done = 3, .seconds = 1.5};
  event.baseline = Baseline{.name = "cuBLAS"};
  event.best_ns = 250;
  const Json json = ToJson(event);
  EXPECT_EQ(json["event"], "baseline");
  EXPECT_EQ(json["baseline"]["name"], "cuBLAS");
  EXPECT_EQ(json["best_ns"], 250);
  EXPECT_EQ(json["trials_done"], 3);
  EXPECT_FALSE(json.contains("trial"));
  EXPECT_FALSE(json.contains("text"));
}

}  // namespace
}  // namespace atunner
