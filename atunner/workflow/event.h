// Progress of a flow, as values that a listener may keep, queue or send elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "atunner/model/json/json.h"

namespace atunner::workflow {

struct FlowEvent {
  enum class Kind : uint8_t {
    kStarted,  ///< the flow begins, or goes on from a checkpoint
    kTaskStarted,
    kTaskFinished,  ///< `value`: the updates
    kTaskKnown,     ///< an earlier process ran the task; it is not repeated
    kTaskRetried,   ///< `text`: the error; another attempt follows
    kTaskFailed,
    kCheckpoint,  ///< a super-step has ended
    kQuestion,    ///< `value`: what a person must decide
    kCustom,      ///< `value`: from NodeContext::emit
    kFinished,
    kCancelled,
  };
  Kind kind = Kind::kStarted;
  std::string flow;
  std::string node;        ///< "" where it is about the flow
  int64_t task = 0;        ///< position in the super-step
  int64_t step = 0;        ///< super-steps before this one
  int64_t checkpoint = 0;  ///< number of the last one written; 0 without checkpoints
  Json value = nullptr;
  std::string text = "";
};

/// "started", "task_started", …
std::string_view Name(FlowEvent::Kind kind);
Json ToJson(const FlowEvent& event);

/// Called from one thread at a time, but not always from the same.
using FlowListener = std::function<void(const FlowEvent&)>;

}  // namespace atunner::workflow
