#include "atunner/workflow/state.h"

namespace atunner::workflow {
namespace {

Json AppendedTo(Json list, const Json& update) {
  if (!list.is_array()) list = Json::array();
  if (update.is_array())
    list.insert(list.end(), update.begin(), update.end());
  else
    list.push_back(update);
  return list;
}

}  // namespace

Channel LastValue(std::string name, Json initial) {
  return {std::move(name), Channel::Kind::kLast, std::move(initial), nullptr};
}

Channel Appended(std::string name) {
  return {std::move(name), Channel::Kind::kAppend, Json::array(), nullptr};
}

Channel Reduced(std::string name, Json initial, Reducer reduce) {
  return {std::move(name), Channel::Kind::kReduce, std::move(initial), std::move(reduce)};
}

State::State(std::shared_ptr<const std::vector<Channel>> channels)
    : channels_(std::move(channels)), written_(channels_->size(), 0) {
  values_.reserve(channels_->size());
  for (const Channel& channel : *channels_) values_.push_back(channel.initial);
}

int State::IndexOf(std::string_view channel) const {
  for (size_t i = 0; i < channels_->size(); ++i) {
    if ((*channels_)[i].name == channel) return static_cast<int>(i);
  }
  return -1;
}

const Json& State::operator[](std::string_view channel) const {
  const int at = IndexOf(channel);
  ATUNNER_CHECK(at >= 0);
  return values_[static_cast<size_t>(at)];
}

const Json* State::Find(std::string_view channel) const {
  const int at = IndexOf(channel);
  return at < 0 ? nullptr : &values_[static_cast<size_t>(at)];
}

void State::BeginStep() { ++step_; }

Status State::Apply(const Updates& updates) {
  for (const Update& update : updates) {
    const int found = IndexOf(update.channel);
    if (found < 0) return Invalid("the graph has no channel '" + update.channel + "'");
    const auto at = static_cast<size_t>(found);
    const Channel& channel = (*channels_)[at];
    if (channel.kind == Channel::Kind::kLast && written_[at] == step_ && step_ != 0)
      return Invalid("two updates of one super-step write the channel '" + channel.name + "'", "",
                     "give the channel a reducer");
    written_[at] = step_;
    switch (channel.kind) {
      case Channel::Kind::kLast:
        values_[at] = update.value;
        break;
      case Channel::Kind::kAppend:
        values_[at] = AppendedTo(std::move(values_[at]), update.value);
        break;
      case Channel::Kind::kReduce:
        values_[at] = channel.reduce(std::move(values_[at]), update.value);
        break;
    }
  }
  return {};
}

Json State::ToJson() const {
  Json json = Json::object();
  for (size_t i = 0; i < values_.size(); ++i) json[(*channels_)[i].name] = values_[i];
  return json;
}

Result<State> State::FromJson(std::shared_ptr<const std::vector<Channel>> channels,
                              const Json& json) {
  State state(std::move(channels));
  if (!json.is_object()) return Invalid("a state is a JSON object of channels");
  for (const auto& [name, value] : json.items()) {
    const int at = state.IndexOf(name);
    if (at < 0) return Invalid("the graph has no channel '" + name + "'");
    state.values_[static_cast<size_t>(at)] = value;
  }
  return state;
}

}  // namespace atunner::workflow
