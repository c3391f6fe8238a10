// The state of a flow: named channels with JSON values. A node reads the state as it was when the
// super-step began, and returns updates. The engine applies the updates of all nodes of a step
// together, in the order of the tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"

namespace atunner::workflow {

/// Joins an update with the channel's value and returns the new value.
using Reducer = std::function<Json(Json value, const Json& update)>;

/// A named part of the state, and how updates change it.
struct Channel {
  enum class Kind : uint8_t {
    kLast,    ///< the update replaces the value; two updates in one super-step are an error
    kAppend,  ///< the value is a list; an update that is a list is appended element by element
    kReduce,  ///< `reduce` joins them
  };
  std::string name;
  Kind kind = Kind::kLast;
  Json initial;
  Reducer reduce = nullptr;
};

Channel LastValue(std::string name, Json initial = nullptr);
Channel Appended(std::string name);
Channel Reduced(std::string name, Json initial, Reducer reduce);

struct Update {
  std::string channel;
  Json value;
};
using Updates = std::vector<Update>;

/// The values of a graph's channels.
class State {
 public:
  explicit State(std::shared_ptr<const std::vector<Channel>> channels);

  /// The value of a channel that the graph declares; any other name is a bug of the caller.
  const Json& operator[](std::string_view channel) const;
  /// nullptr for a name that is no channel.
  const Json* Find(std::string_view channel) const;
  const std::vector<Channel>& channels() const { return *channels_; }

  /// Begins a super-step: until the next call, each kLast channel may be written once.
  void BeginStep();
  /// kInvalidInput for an unknown channel, or a second write to a kLast channel in this step.
  Status Apply(const Updates& updates);

  /// {"channel": value, …}.
  Json ToJson() const;
  /// Channels that `json` lacks keep their initial values; kInvalidInput for an unknown channel.
  static Result<State> FromJson(std::shared_ptr<const std::vector<Channel>> channels,
                                const Json& json);

 private:
  int IndexOf(std::string_view channel) const;

  std::shared_ptr<const std::vector<Channel>> channels_;
  std::vector<Json> values_;
  std::vector<uint32_t> written_;  ///< number of the step that wrote the channel last
  uint32_t step_ = 0;
};

}  // namespace atunner::workflow
